"""Whose turn it is to be read from: nobody keeps the loop to themselves for long. A hot module.

A loop reads on from one connection as long as there is more, up to 32 times: with requests of a megabyte others wait for
tens of milliseconds, a consumer of these very records among them. So whoever has been read from for a while stands back
until the loop has come round: others are served, and answers that are ready leave. Standing back costs two
system calls and a turn of the loop, so turns are short in company only.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Final

from headrace.broker.busy_poll import CallSoon

IN_COMPANY_S: Final = 0.0001
ALONE_S: Final = 0.002
COMPANY_S: Final = 0.05  # for so long after others have sent something
_REST_S: Final = 0.0003  # without a read: the loop has come round, or is asleep


class LoopShare:
    """One for a listener."""

    __slots__ = (
        "_began",
        "_client",
        "_company_until",
        "_done",
        "_seen_changes",
        "call_soon",
        "clock",
    )

    def __init__(self, call_soon: CallSoon, clock: Callable[[], float] = perf_counter) -> None:
        self.call_soon = call_soon
        self.clock = clock
        self._client: object = None  # who is being read from
        self._began = 0.0
        self._done = 0.0  # with the last read
        self._seen_changes = 0
        self._company_until = 0.0

    def is_used_up(self, client: object, arrived: float, changes: int) -> bool:
        """After dealing with what has arrived from a client: whether it should stand back now.

        `changes` counts how often somebody sent something who was not the last to do so.
        """
        now = self.clock()
        if changes != self._seen_changes:
            self._seen_changes = changes
            self._company_until = now + COMPANY_S
        if client is not self._client or arrived - self._done > _REST_S:
            self._client, self._began = client, arrived
        self._done = now
        if now - self._began < (IN_COMPANY_S if now < self._company_until else ALONE_S):
            return False
        self._client = None
        return True
