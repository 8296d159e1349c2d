"""Busy polling: the event loop keeps polling for a moment before it sleeps, when the next request is likely to be near. A hot module.

A client that waits for each answer sends its next request a few dozen microseconds after the answer. Waking a sleeping core takes
about as long, on a virtual machine longer than answering a small request. So, while one client alone sends requests, each soon
after the answer to the last one, the event loop polls for up to `headrace.busy.poll.us` instead of sleeping. Polling costs nothing
when requests are far apart or come from several clients, and one such period when they end. It pauses when other processes need
the core, because then more time passes on the clock than on the CPU clock of this thread.
"""

from collections.abc import Callable
from typing import Final

_LITTLE_BYTES: Final = 4096
_REVIEW_S: Final = 0.01  # how often the CPU time of this thread is compared with the clock
_LEAST_SHARE: Final = (
    0.9  # of that period, spent on the CPU; below it, other processes need the core
)
_REST_S: Final = 0.1  # without polling after that

CallSoon = Callable[[Callable[[], None]], object]


class BusyPoll:
    """One for each event loop. Connections call `arrived` before they handle requests and `answered` after."""

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
        self._since = 0.0  # time of the last answer
        self._last_client: object = None  # to which client
        self._is_near = False  # whether that client's next request came soon after an answer
        self._is_turning = False
        self._not_before = 0.0
        self._review_from = self._review_from_cpu = 0.0
        self.changes = 0  # how often a request came from another client than the previous one

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
