"""How many bytes of requests may be in memory at once, over all connections (pure).

A connection that would exceed the budget waits until others have been answered. One that holds nothing is always let in:
a single request larger than the budget must still be served. If all that is held are parts of requests, waiting would
never end: so one of those that wait, the favoured, goes on reading. Whoever owns the connections ends it if it is silent.
"""

from collections.abc import Callable, Hashable


class MemoryBudget:
    """Counts bytes; wakes those who wait."""

    __slots__ = ("_limit_bytes", "_waiting", "favoured", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.used_bytes = 0
        self.favoured: Hashable | None = None
        self._waiting: dict[Hashable, Callable[[], None]] = {}

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
            self._wake_next()

    def may_go_on(self, holder: Hashable) -> bool:
        """Whether `holder`, who holds some of the memory, may take more; the first to ask is favoured."""
        if not self.is_exhausted:
            return True
        if self.favoured is None:
            self.favoured = holder
        return self.favoured is holder

    def wait(self, holder: Hashable, wake: Callable[[], None]) -> None:
        """Call `wake` once there is room, or when it is the holder's turn to be favoured."""
        self._waiting[holder] = wake

    def leave(self, holder: Hashable) -> None:
        """`holder` no longer holds anything, nor waits."""
        self._waiting.pop(holder, None)
        if self.favoured is holder:
            self.favoured = None
            if self._waiting and self.is_exhausted:
                self.favoured = next(iter(self._waiting))
                self._wake_next()

    def _wake_next(self) -> None:
        holder = next(iter(self._waiting))
        self._waiting.pop(holder)()
