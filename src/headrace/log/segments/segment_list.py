"""The segments of one log, in order of base offset. The last one is active: it takes the appends."""

from bisect import bisect_right, insort
from collections.abc import Iterator

from headrace.log.segments.segment import Segment


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


class SegmentList:
    """Never empty once the log is open."""

    __slots__ = ("_segments",)

    def __init__(self) -> None:
        self._segments: list[Segment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def first(self) -> Segment:
        """The oldest segment."""
        return self._segments[0]

    @property
    def active(self) -> Segment:
        """The segment that is appended to."""
        return self._segments[-1]

    @property
    def size(self) -> int:
        """Bytes in all `.log` files."""
        return sum(segment.size for segment in self._segments)

    def add(self, segment: Segment) -> None:
        """Put a segment in its place."""
        insort(self._segments, segment, key=_base_offset)

    def remove(self, segment: Segment) -> None:
        """Take a segment out; its files are the caller's business."""
        self._segments.remove(segment)

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that holds `offset` (or would) and all after it."""
        return self._segments[max(0, self._floor(offset)) :]

    def starting_at_or_after(self, offset: int) -> list[Segment]:
        """Segments whose first offset is not below `offset`."""
        floor = self._floor(offset)
        if floor >= 0 and self._segments[floor].base_offset == offset:
            return self._segments[floor:]
        return self._segments[floor + 1 :]

    def end_of(self, segment: Segment) -> int | None:
        """Base offset of the segment behind; None for the active one."""
        after = self._floor(segment.base_offset) + 1
        return self._segments[after].base_offset if after < len(self._segments) else None

    def _floor(self, offset: int) -> int:
        return bisect_right(self._segments, offset, key=_base_offset) - 1
