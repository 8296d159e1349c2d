"""Fixed-size entries of an index file, read in blocks: the last block is kept, because a binary search ends within one.

Owns the copy of that block and must be told when the file's content changes other than by appending.
"""

from struct import Struct
from typing import Any, Final

from headrace.log.files.disk import File

_BLOCK_ENTRIES: Final = 512


class EntryBlock:
    """The entries of one file. Reads, never maps: a bad sector is an error then (decision 0008)."""

    __slots__ = ("_block", "_file", "_format", "_start")

    def __init__(self, file: File, entry_format: Struct) -> None:
        self._file = file
        self._format = entry_format
        self._block = b""
        self._start = 0  # of the block, in the file

    def entry(self, number: int) -> tuple[Any, ...]:
        """The fields of an entry that was written."""
        size = self._format.size
        at = number * size - self._start
        if not 0 <= at < len(self._block):
            self._start = number // _BLOCK_ENTRIES * _BLOCK_ENTRIES * size
            self._block = self._file.read(self._start, _BLOCK_ENTRIES * size)
            at = number * size - self._start
        return self._format.unpack_from(self._block, at)

    def forget(self) -> None:
        """The file was cut: what was read may be replaced by other entries."""
        self._block = b""
