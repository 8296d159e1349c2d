"""Time that passes only when told: a heap of things to happen, and the moment that it has come to.

One thread, no waiting. What is due at the same moment happens in the order in which it was asked for, so the same calls give
the same run.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]


class Timer:
    """Something that will happen, unless it is called off."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def call_off(self) -> None:
        """It is not to happen; it may have happened already."""
        self.action = None


class VirtualClock:
    """The time in milliseconds, and what is still to come."""

    __slots__ = ("_heap", "_sequence", "now_ms")

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self._heap: list[tuple[int, int, Timer]] = []
        self._sequence = 0

    def __call__(self) -> int:
        return self.now_ms

    def after(self, delay_ms: int, action: Action) -> Timer:
        """Let something happen so many milliseconds from now."""
        self._sequence += 1
        timer = Timer(action)
        heappush(self._heap, (self.now_ms + delay_ms, self._sequence, timer))
        return timer

    def step(self) -> bool:
        """Go to the next thing to happen and let it. False if there is none."""
        while self._heap:
            now_ms, _, timer = heappop(self._heap)
            if timer.action is not None:
                self.now_ms = now_ms
                timer.action()
                return True
        return False
