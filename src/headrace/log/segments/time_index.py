"""`.timeindex`: timestamp → offset, sparse. Rebuilt from the `.log` file whenever in doubt.

Entry, 12 bytes big endian: i64 timestamp; i32 offset less the segment's base offset. Meaning: no batch up to that
offset has a larger timestamp. Timestamps grow strictly. A last entry is written when a segment is rolled or closed.
"""

from bisect import bisect_right
from struct import Struct
from typing import Final, NamedTuple

from headrace.log.files.disk import File
from headrace.log.segments.index_file import IndexFile

_ENTRY: Final = Struct(">qi")


class TimestampOffset(NamedTuple):
    """A timestamp and the offset of a batch's last record that reached it."""

    timestamp: int
    offset: int


class TimeIndex(IndexFile):
    """The time index of one segment."""

    __slots__ = ("_last",)

    def __init__(self, file: File, base_offset: int, max_bytes: int) -> None:
        super().__init__(file, _ENTRY, base_offset, max_bytes)
        self._last: TimestampOffset | None = None

    @property
    def free_entries(self) -> int:
        """For how many more there is room; without any the segment has to be rolled, which adds one itself."""
        return self._max_entries - 1 - self.entries

    @property
    def last(self) -> TimestampOffset:
        """The largest timestamp known here, or (-1, base offset)."""
        if self._last is None:
            self._last = (
                self._entry(self.entries - 1)
                if self.entries
                else TimestampOffset(-1, self._base_offset)
            )
        return self._last

    def append_if_later(self, timestamp: int, offset: int) -> None:
        """Remember that `timestamp` was first reached at `offset`, if it is a new maximum."""
        if timestamp > self.last.timestamp:
            self._unwritten += _ENTRY.pack(timestamp, offset - self._base_offset)
            self._last = TimestampOffset(timestamp, offset)

    def offset_for(self, timestamp: int) -> int:
        """An offset at or before the first batch that reaches `timestamp`."""
        found = bisect_right(
            range(self.entries), timestamp - 1, key=lambda i: self._entry(i).timestamp
        )
        return self._entry(found - 1).offset if found else self._base_offset

    def truncate(self, offset: int) -> None:
        """Forget entries at or after `offset`."""
        keep = bisect_right(range(self.entries), offset - 1, key=lambda i: self._entry(i).offset)
        self._keep(keep)
        self._last = None

    def clear(self) -> None:
        """Forget everything, before a rebuild."""
        super().clear()
        self._last = None

    def _entry(self, number: int) -> TimestampOffset:
        timestamp, relative = self._fields(number)
        return TimestampOffset(timestamp, self._base_offset + relative)
