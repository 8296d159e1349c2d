"""Gives many partitions their roles in turns with everything else that a broker does. A rim module.

`Roles` settles the first few of a creation, or of an election, at once; the others wait here, so that thousands of partitions
do not make every other client wait, nor the brokers that a controller has to tell. Whoever asked for new ones is answered when
all have been taken up.
"""

import asyncio
from typing import Final

from headrace.broker.roles import Roles
from headrace.controller.changes import ChangeBatch

PARTITIONS_PER_TURN: Final = 16  # a few milliseconds


class RoleTurns:
    """One event loop owns it; `run` until cancelled."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._is_wanted = asyncio.Event()
        self._is_done = asyncio.Event()
        self._is_done.set()

    def apply(self, batch: ChangeBatch) -> None:
        """Take in what the controller published, or begin to."""
        self._roles.apply(batch)
        if self._roles.has_unsettled:
            self._is_done.clear()
            self._is_wanted.set()

    async def settled(self) -> None:
        """Wait until nothing is left to be taken up."""
        await self._is_done.wait()

    async def run(self) -> None:
        """Settle what waits, a few partitions at a time."""
        while True:
            await self._is_wanted.wait()
            if not self._roles.settle_some(PARTITIONS_PER_TURN):
                self._is_wanted.clear()
                self._is_done.set()
            await asyncio.sleep(0)
