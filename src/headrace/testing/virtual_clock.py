"""Time that passes only when told: a heap of things to happen, and the moment that it has come to.

One thread, no waiting. What is due at the same moment happens in the order in which it was asked for, so the same calls give
the same run.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]


class VirtualClock:
    """The time in milliseconds, and what is still to come."""

    __slots__ = ("_heap", "_sequence", "now_ms")

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self._heap: list[tuple[int, int, Action]] = []
        self._sequence = 0

    def __call__(self) -> int:
        return self.now_ms

    def __len__(self) -> int:
        return len(self._heap)

    def after(self, delay_ms: int, action: Action) -> None:
        """Let something happen so many milliseconds from now."""
        self._sequence += 1
        heappush(self._heap, (self.now_ms + delay_ms, self._sequence, action))

    def step(self) -> bool:
        """Go to the next thing to happen and let it. False if there is none."""
        if not self._heap:
            return False
        self.now_ms, _, action = heappop(self._heap)
        action()
        return True
