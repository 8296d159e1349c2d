"""`.index`: offset → position in the segment, sparse. Rebuilt from the `.log` file whenever in doubt.

Entry, 8 bytes big endian: i32 last offset of a batch, less the segment's base offset; i32 position of that batch.
Both columns grow strictly. Entries of the segment being written stay in memory until `flush`: a crash loses nothing,
because recovery rebuilds the index of every segment that was not flushed.
"""

from bisect import bisect_right
from struct import Struct
from typing import Final

from headrace.log.files.disk import File
from headrace.log.segments.entry_block import EntryBlock

_ENTRY: Final = Struct(">ii")
ENTRY_BYTES: Final = _ENTRY.size


class OffsetIndex:
    """The offset index of one segment."""

    __slots__ = ("_base_offset", "_block", "_file", "_max_entries", "_unwritten")

    def __init__(self, file: File, base_offset: int, max_bytes: int) -> None:
        self._file = file
        self._block = EntryBlock(file, _ENTRY)
        self._base_offset = base_offset
        self._max_entries = max_bytes // ENTRY_BYTES
        self._unwritten = bytearray()

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return (self._file.size + len(self._unwritten)) // ENTRY_BYTES

    @property
    def free_entries(self) -> int:
        """For how many more there is room; without any the segment has to be rolled."""
        return self._max_entries - self.entries

    @property
    def last_position(self) -> int:
        """Position of the last entry's batch; 0 without entries."""
        return self._entry(self.entries - 1)[1] if self.entries else 0

    def append(self, last_offset: int, position: int) -> None:
        """Remember that the batch at `position` ends with `last_offset`."""
        self._unwritten += _ENTRY.pack(last_offset - self._base_offset, position)

    def position_for(self, offset: int) -> int:
        """Where to start looking for `offset`: the greatest entry at or below it, else the start.

        An entry names its batch's last offset, so the batch that holds `offset` never starts before that position
        unless it is that very batch.
        """
        return self.position_well_before(offset, 0)

    def position_well_before(self, offset: int, entries: int) -> int:
        """Where a batch starts that stands that many entries before the one for `offset`, else the start."""
        relative = offset - self._base_offset
        found = bisect_right(range(self.entries), relative, key=lambda i: self._entry(i)[0])
        return self._entry(found - 1 - entries)[1] if found > entries else 0

    def position_before(self, position: int) -> int:
        """The greatest indexed batch start at or before `position`."""
        found = bisect_right(range(self.entries), position, key=lambda i: self._entry(i)[1])
        return self._entry(found - 1)[1] if found else 0

    def truncate(self, offset: int, position: int) -> None:
        """Forget batches that end at or after `offset` or start at or after `position`."""
        relative = offset - self._base_offset
        keep = bisect_right(range(self.entries), relative - 1, key=lambda i: self._entry(i)[0])
        while keep and self._entry(keep - 1)[1] >= position:
            keep -= 1
        self._keep(keep * ENTRY_BYTES)

    def _keep(self, size: int) -> None:
        written = self._file.size
        del self._unwritten[max(0, size - written) :]
        if size < written:
            self._file.truncate(size)
            self._block.forget()

    def clear(self) -> None:
        """Forget everything, before a rebuild."""
        self._unwritten.clear()
        self._file.truncate(0)
        self._block.forget()

    def flush(self) -> None:
        """Write what is only in memory."""
        if self._unwritten:
            self._file.append(self._unwritten)
            self._unwritten = bytearray()

    @property
    def has_whole_entries(self) -> bool:
        """Whether the file's size is possible; anything else means a rebuild."""
        return self._file.size % ENTRY_BYTES == 0

    @property
    def file(self) -> File:
        """The file itself, for syncing, renaming and removal."""
        return self._file

    def _entry(self, number: int) -> tuple[int, int]:
        at = number * ENTRY_BYTES
        written = self._file.size
        if at >= written:
            return _ENTRY.unpack_from(self._unwritten, at - written)
        relative, position = self._block.entry(number)
        return relative, position
