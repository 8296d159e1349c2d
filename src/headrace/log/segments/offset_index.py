"""`.index`: offset → position in the segment, sparse. Rebuilt from the `.log` file whenever in doubt.

Entry, 8 bytes big endian: i32 last offset of a batch, less the segment's base offset; i32 position of that batch.
Both columns grow strictly. Entries of the segment being written stay in memory until `flush`: a crash loses nothing,
because recovery rebuilds the index of every segment that was not flushed.
"""

from bisect import bisect_right
from struct import Struct
from typing import Final

from headrace.log.files.disk import File
from headrace.log.segments.index_file import IndexFile

_ENTRY: Final = Struct(">ii")


class OffsetIndex(IndexFile):
    """The offset index of one segment."""

    __slots__ = ()

    def __init__(self, file: File, base_offset: int, max_bytes: int) -> None:
        super().__init__(file, _ENTRY, base_offset, max_bytes)

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
        self._keep(keep)

    def _entry(self, number: int) -> tuple[int, int]:
        relative, position = self._fields(number)
        return relative, position
