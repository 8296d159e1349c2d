"""How many bytes of requests may be in memory at once, over all connections (pure).

A connection that would exceed the budget waits until others have been answered. A connection that holds no memory is always
let in, because a single request larger than the budget must still be served. If all memory is held by incomplete requests, waiting
would never end. So one connection in the middle of a request, the favoured one, goes on until it holds no memory any more. The
listener closes it if it is silent.
"""

from collections.abc import Callable, Hashable


class MemoryBudget:
    """Counts the bytes of requests in memory, and wakes connections that wait for room."""

    __slots__ = ("_limit_bytes", "_waiting", "favoured", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.used_bytes = 0
        self.favoured: Hashable | None = None
        self._waiting: dict[Hashable, tuple[Callable[[], None], bool]] = {}

    @property
    def is_exhausted(self) -> bool:
        """Whether reading should pause."""
        return self.used_bytes >= self._limit_bytes

    def take(self, count: int) -> None:
        """Bytes have arrived."""
        self.used_bytes += count

    def give_back(self, count: int) -> None:
        """Requests have been answered: connections that wait go on if there is room now."""
        self.used_bytes -= count
        while self._waiting and self.used_bytes < self._limit_bytes:
            self._wake(next(iter(self._waiting)))

    def may_go_on(self, holder: Hashable, *, is_mid_request: bool) -> bool:
        """Whether `holder`, who holds some of the memory, may take more."""
        if not self.is_exhausted:
            return True
        if self.favoured is None and is_mid_request:
            self.favoured = holder
        return self.favoured is holder

    def wait(self, holder: Hashable, wake: Callable[[], None], *, is_mid_request: bool) -> None:
        """Call `wake` once there is room, or when the holder becomes the favoured one."""
        self._waiting[holder] = (wake, is_mid_request)

    def leave(self, holder: Hashable) -> None:
        """`holder` no longer holds anything, nor waits."""
        self._waiting.pop(holder, None)
        if self.favoured is holder:
            self.favoured = None
            if self.is_exhausted:
                halves = (
                    each for each, (_, is_mid_request) in self._waiting.items() if is_mid_request
                )
                self.favoured = next(halves, None)
                if self.favoured is not None:
                    self._wake(self.favoured)

    def _wake(self, holder: Hashable) -> None:
        wake, _ = self._waiting.pop(holder)
        wake()
