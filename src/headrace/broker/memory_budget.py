"""How many bytes of requests may be in memory at once, over all connections (pure).

A connection that would exceed the budget waits until others have been answered. One that holds nothing is always let in:
a single request larger than the budget must still be served.
"""

from collections.abc import Callable


class MemoryBudget:
    """Counts bytes; wakes those who wait."""

    __slots__ = ("_limit_bytes", "_waiting", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.used_bytes = 0
        self._waiting: dict[Callable[[], None], None] = {}

    @property
    def is_exhausted(self) -> bool:
        """Whether reading should pause."""
        return self.used_bytes >= self._limit_bytes

    def take(self, count: int) -> None:
        """Bytes have arrived."""
        self.used_bytes += count

    def give_back(self, count: int) -> None:
        """Bytes have been dealt with; whoever waits may go on when there is room."""
        self.used_bytes -= count
        while self._waiting and self.used_bytes < self._limit_bytes:
            wake = next(iter(self._waiting))
            del self._waiting[wake]
            wake()

    def wait(self, wake: Callable[[], None]) -> None:
        """Call `wake` once there is room."""
        self._waiting[wake] = None

    def forget(self, wake: Callable[[], None]) -> None:
        """Whoever waited is gone."""
        self._waiting.pop(wake, None)
