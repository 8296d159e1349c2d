"""Virtual time of a simulated world, and the order in which things happen in it.

Owns the clock, one heap of actions and the source of chance. An action is due at a moment; actions of the same moment run in the
order of their scheduling. The digest is a checksum over the moment of every step and everything that was noted, so that two
runs can be compared.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Final, TypeAlias
from zlib import crc32

Action: TypeAlias = Callable[[], None]

MILLISECOND_US: Final = 1_000
SECOND_US: Final = 1_000_000


class Scheduled:
    """An action that is due at `when_us`, unless it is cancelled."""

    __slots__ = ("action", "when_us")

    def __init__(self, when_us: int, action: Action) -> None:
        self.when_us = when_us
        self.action: Action | None = action

    def cancel(self) -> None:
        """Do not run the action."""
        self.action = None


class Scheduler:
    """The clock in microseconds, and what is to happen."""

    __slots__ = ("_heap", "_sequence", "chance", "digest", "now_us", "steps")

    def __init__(self, chance: Random, start_us: int = 0) -> None:
        self.chance = chance
        self.now_us = start_us
        self.steps = 0
        self.digest = 0
        self._heap: list[tuple[int, int, Scheduled]] = []
        self._sequence = 0

    def at(self, when_us: int, action: Action) -> Scheduled:
        """Run an action at a moment; a moment that has passed is now."""
        self._sequence = sequence = self._sequence + 1
        when_us = max(when_us, self.now_us)
        scheduled = Scheduled(when_us, action)
        heappush(self._heap, (when_us, sequence, scheduled))
        return scheduled

    def after(self, delay_us: int, action: Action) -> Scheduled:
        """Run an action so many microseconds from now."""
        return self.at(self.now_us + delay_us, action)

    def step(self) -> bool:
        """Run the next action. Returns whether there was one."""
        heap = self._heap
        while heap:
            when_us, _, scheduled = heappop(heap)
            action = scheduled.action
            if action is None:
                continue
            scheduled.action = None
            self.now_us = when_us
            self.steps += 1
            self.digest = (31 * self.digest + when_us) & 0xFFFFFFFF
            action()
            return True
        return False

    def next_us(self) -> int | None:
        """When the next action is due; None if there is none."""
        heap = self._heap
        while heap and heap[0][2].action is None:
            heappop(heap)
        return heap[0][0] if heap else None

    def clear(self) -> None:
        """Forget what was to happen."""
        self._heap.clear()

    def draw_us(self, least_us: int, most_us: int) -> int:
        """A time span, drawn evenly."""
        return least_us + int(self.chance.random() * (most_us - least_us + 1))

    def note(self, data: bytes) -> None:
        """Put something that happened now into the digest."""
        self.digest = crc32(data, self.digest ^ (self.now_us & 0xFFFFFFFF))
