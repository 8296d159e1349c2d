"""Looking again for a moment before going to sleep, when the next request is likely to be near. A hot module.

A client that waits for each answer sends its next request a few dozen microseconds after it. A core that has gone to
sleep meanwhile takes about as long to wake up, on a virtual machine longer than a small request takes to be answered.
So, when the one client that there was something to do for comes back soon after its answer, the loop goes on turning for
that while. It costs nothing when requests are far apart or come from many, at most one such while when they end, and
it stops where the machine has other work for the core: time that passes for the clock but not for this thread is time that
somebody else needed.
"""

from collections.abc import Callable
from typing import Final

_LITTLE_BYTES: Final = 4096
_REVIEW_S: Final = 0.01  # how often it is looked whether the core was ours
_LEAST_SHARE: Final = 0.9  # of it
_REST_S: Final = 0.1  # without polling, where it was not

CallSoon = Callable[[Callable[[], None]], object]


class BusyPoll:
    """One for a loop. `arrived` before a request is dealt with, `answered` after."""

    __slots__ = (
        "_call_soon",
        "_clock",
        "_cpu_clock",
        "_is_near",
        "_is_turning",
        "_last_client",
        "_longest_s",
        "_not_before",
        "_review_from",
        "_review_from_cpu",
        "_since",
        "changes",
    )

    def __init__(
        self,
        call_soon: CallSoon,
        longest_s: float,
        *,
        clock: Callable[[], float],
        cpu_clock: Callable[[], float],
    ) -> None:
        self._call_soon = call_soon
        self._longest_s = longest_s
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._since = 0.0  # the last answer
        self._last_client: object = None  # who got it
        self._is_near = False  # whether a request of theirs has come soon after it
        self._is_turning = False
        self._not_before = 0.0
        self._review_from = self._review_from_cpu = 0.0
        self.changes = 0  # how often another client came than the one before

    def arrived(self, client: object, nbytes: int) -> None:
        """There is something to do. Much at once takes so long that the wake-up does not matter."""
        if client is not self._last_client:
            self._last_client = client
            self.changes += 1
            self._is_near = False
            return
        self._is_near = nbytes <= _LITTLE_BYTES and self._clock() - self._since < self._longest_s

    def answered(self) -> None:
        """It is done; now or soon the loop has nothing to do."""
        now = self._since = self._clock()
        if self._is_near and not self._is_turning and now >= self._not_before:
            self._is_turning = True
            self._review_from, self._review_from_cpu = now, self._cpu_clock()
            self._call_soon(self._look_again)

    def _look_again(self) -> None:
        now = self._clock()
        is_over = now - self._since >= self._longest_s
        if is_over or now - self._review_from >= _REVIEW_S:
            cpu_s = self._cpu_clock()
            if cpu_s - self._review_from_cpu < _LEAST_SHARE * (now - self._review_from):
                self._not_before = now + _REST_S
                is_over = True
            self._review_from, self._review_from_cpu = now, cpu_s
        if is_over:
            self._is_turning = False
        else:
            self._call_soon(self._look_again)
