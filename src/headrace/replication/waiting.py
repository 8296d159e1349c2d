"""Callbacks that wait for a partition: until an offset is committed, or until there is more to read (pure).

A callback that waits for an offset is called once. One that waits for a change is called each time until it is removed.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

OnCommitted: TypeAlias = Callable[[bool], None]
"""Called with True when the offset is committed, False when this broker no longer leads."""

OnChange: TypeAlias = Callable[[], None]


class OffsetWaiters:
    """Waiting until the high watermark reaches an offset."""

    __slots__ = ("_heap", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, OnCommitted]] = []
        self._sequence = count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, offset: int, waiter: OnCommitted) -> None:
        """Wait until everything below `offset` is committed."""
        heappush(self._heap, (offset, next(self._sequence), waiter))

    def release(self, high_watermark: int) -> None:
        """Call the callbacks whose offset the high watermark has reached, in order."""
        while self._heap and self._heap[0][0] <= high_watermark:
            heappop(self._heap)[2](True)

    def dismiss(self) -> None:
        """Call all callbacks, because this broker no longer leads."""
        waiting, self._heap = self._heap, []
        for _, _, waiter in sorted(waiting, key=lambda entry: entry[:2]):
            waiter(False)


class ChangeWaiters:
    """Waiting until there is more to read, or the partition's role changes."""

    __slots__ = ("_waiters", "times")

    def __init__(self) -> None:
        self._waiters: dict[OnChange, None] = {}
        self.times = (
            0  # notifications so far: a waiter that begins to wait sees whether it has missed one
        )

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, waiter: OnChange) -> None:
        """Call on each notification until removed."""
        self._waiters[waiter] = None

    def remove(self, waiter: OnChange) -> None:
        """Remove a callback, if it waits."""
        self._waiters.pop(waiter, None)

    def notify(self) -> None:
        """There is more to read."""
        self.times += 1
        if self._waiters:
            for waiter in tuple(self._waiters):
                waiter()
