"""When a read of records is complete: enough bytes, too many, or no more time. Pure."""

from __future__ import annotations


class ReadPlan:
    """Counts the bytes of one read. A first record is taken whatever its size, so that no record stops a consumer."""

    def __init__(self, *, min_bytes: int, max_bytes: int, deadline: float) -> None:
        """A negative `min_bytes` means that the read lasts until its deadline."""
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._deadline = deadline
        self._size = 0
        self._count = 0

    def fits(self, size: int) -> bool:
        """Whether a record of this size belongs to the read."""
        return not self._count or self._size + size < self._max_bytes

    def add(self, size: int) -> None:
        """A record was taken."""
        self._size += size
        self._count += 1

    @property
    def has_enough(self) -> bool:
        """Whether waiting for more records makes no sense."""
        return self._size >= self._max_bytes or (0 <= self._min_bytes < self._size)

    def remaining_s(self, now: float) -> float:
        """How long to wait for more records."""
        return max(0.0, self._deadline - now)

    def is_over(self, now: float) -> bool:
        """Whether the time is up."""
        return now >= self._deadline
