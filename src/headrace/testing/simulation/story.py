"""What happened in a run, in sentences, for whoever reads the report of a failure."""

from collections import deque
from typing import Final, NamedTuple

from headrace.testing.virtual.scheduler import Scheduler

_REMEMBERED: Final = 2_000


class Told(NamedTuple):
    """One thing that happened, and when, in microseconds since the start."""

    at_us: int
    text: str


class Violation(AssertionError):
    """Something that must never happen has happened. The text begins with the name of the rule."""

    @property
    def rule(self) -> str:
        """The name of the rule."""
        return str(self).partition(":")[0]


class Story:
    """The newest things that happened; older ones are forgotten."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._start_us = scheduler.now_us
        self.told: deque[Told] = deque(maxlen=_REMEMBERED)

    @property
    def now_ms(self) -> int:
        """Milliseconds since the start."""
        return (self._scheduler.now_us - self._start_us) // 1_000

    def tell(self, text: str) -> None:
        """Something happened now."""
        self._scheduler.note(text.encode())
        self.told.append(Told(self._scheduler.now_us - self._start_us, text))
