"""Limits how long the event loop reads from one connection before it serves the others. A hot module.

The event loop reads from one connection up to 32 times in a row while there is more. With requests of a megabyte the other
connections would wait for tens of milliseconds, a consumer of these very records among them. A connection whose read budget is
exhausted pauses until the next iteration of the event loop. A pause costs two system calls and one iteration, so the budget is
short only while other connections send, too.
"""

from collections.abc import Callable
from typing import Final

from headrace.broker.net.busy_poll import CallSoon

SHARED_BUDGET_S: Final = 0.0001
ALONE_BUDGET_S: Final = 0.002
SHARED_FOR_S: Final = (
    0.05  # how long after other connections have sent something the short budget holds
)
_REST_S: Final = 0.0003  # without a read for so long, the event loop has iterated or sleeps


class ReadBudget:
    """The read budget of the connections of one listener."""

    __slots__ = (
        "_began",
        "_client",
        "_done",
        "_seen_changes",
        "_shared_until",
        "call_soon",
        "clock",
    )

    def __init__(self, call_soon: CallSoon, clock: Callable[[], float]) -> None:
        self.call_soon = call_soon
        self.clock = clock
        self._client: object = None  # the connection that is being read from
        self._began = 0.0
        self._done = 0.0  # with the last read
        self._seen_changes = 0
        self._shared_until = 0.0

    def is_exhausted(self, client: object, arrived: float, changes: int) -> bool:
        """Whether a connection should pause reading, after its last bytes were handled.

        `changes` counts how often another connection than the previous one sent something.
        """
        now = self.clock()
        if changes != self._seen_changes:
            self._seen_changes = changes
            self._shared_until = now + SHARED_FOR_S
        if client is not self._client or arrived - self._done > _REST_S:
            self._client, self._began = client, arrived
        self._done = now
        if now - self._began < (SHARED_BUDGET_S if now < self._shared_until else ALONE_BUDGET_S):
            return False
        self._client = None
        return True
