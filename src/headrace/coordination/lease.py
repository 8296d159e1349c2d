"""Lease on a session with the coordination store: until when the store cannot have ended the session.

Owns the deadline. A broker acts on what its session gives it (leadership, coordination of groups) only until then, because
another broker may be elected as soon as the session is over. The deadline follows from the moment at which a request that
the store answered was sent, never from the arrival of its answer, because the store counts from the arrival of the request.
Who moves the deadline is the store's connection; who asks are partitions, at every append.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Final

# Counts the time during which the machine was suspended, where there is such a clock: sessions end meanwhile, too.
clock: Final[Callable[[], float]] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)

# Session id, when the confirmed request was sent, the session time-out that the servers granted, in seconds.
OnConfirmed = Callable[[int, float, float], None]


class SessionLease:
    """`until` is a reading of the clock; another thread may set it."""

    __slots__ = ("_clock", "until")

    def __init__(self, clock: Callable[[], float] = clock, until: float = -math.inf) -> None:
        self._clock = clock
        self.until = until

    def is_over(self) -> bool:
        """Whether the session may have ended."""
        return self._clock() >= self.until

    def remaining_s(self) -> float:
        """How long the session lives at least; not above zero when it may have ended."""
        return self.until - self._clock()


# Of a session that cannot end before the process does.
ENDLESS: Final = SessionLease(until=math.inf)
