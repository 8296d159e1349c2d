"""Index file of fixed-size entries: what the offset index and the time index have in common.

Owns the entries that are not written yet, and a copy of the block that was read last, because a binary search ends within one
block. What the fields of an entry mean is left to the subclass.
"""

from struct import Struct
from typing import Any, Final

from headrace.log.files.disk import File

_BLOCK_ENTRIES: Final = 512


class IndexFile:
    """Entries of one segment. Reads the file and never maps it, so that a bad sector is an error (decision 0008)."""

    __slots__ = (
        "_base_offset",
        "_block",
        "_block_start",
        "_file",
        "_format",
        "_max_entries",
        "_unwritten",
    )

    def __init__(self, file: File, entry_format: Struct, base_offset: int, max_bytes: int) -> None:
        self._file = file
        self._format = entry_format
        self._base_offset = base_offset
        self._max_entries = max_bytes // entry_format.size
        self._unwritten = bytearray()
        self._block = b""
        self._block_start = 0  # position in the file

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return (self._file.size + len(self._unwritten)) // self._format.size

    def clear(self) -> None:
        """Forget everything, before a rebuild."""
        self._unwritten.clear()
        self._file.truncate(0)
        self._block = b""

    def flush(self) -> None:
        """Write what is only in memory."""
        if self._unwritten:
            self._file.append(self._unwritten)
            self._unwritten = bytearray()

    @property
    def has_whole_entries(self) -> bool:
        """Whether the file's size is possible; anything else means a rebuild."""
        return self._file.size % self._format.size == 0

    @property
    def file(self) -> File:
        """The file itself, for syncing, renaming and removal."""
        return self._file

    def _fields(self, number: int) -> tuple[Any, ...]:
        """The fields of an entry, as they are stored."""
        at, written = number * self._format.size, self._file.size
        if at >= written:
            return self._format.unpack_from(self._unwritten, at - written)
        if not 0 <= at - self._block_start < len(self._block):
            block_bytes = _BLOCK_ENTRIES * self._format.size
            self._block_start = at // block_bytes * block_bytes
            self._block = self._file.read(self._block_start, block_bytes)
        return self._format.unpack_from(self._block, at - self._block_start)

    def _keep(self, entries: int) -> None:
        """Cut all entries but the first ones."""
        size, written = entries * self._format.size, self._file.size
        del self._unwritten[max(0, size - written) :]
        if size < written:
            self._file.truncate(size)
            self._block = b""  # other entries may take the place of those that were read
