"""Writes log start offsets to the checkpoints as soon as DeleteRecords has moved one, so that deleted records stay deleted.

Owns the requests for a checkpoint and who is told that it was written. Leaves the files to `upkeep.housekeeping`, which also writes
them every few seconds. Many requests make one checkpoint: log starts that moved while one is written come into the next.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from headrace.replication.waiting import ChangeWaiters

_APART_S: Final = 0.05  # retention moves the log starts of many followers, one after the other


class LogStartSync:
    """Checkpoints of log start offsets on demand."""

    def __init__(self, write_checkpoints: Callable[[], Awaitable[None]]) -> None:
        self._write_checkpoints = write_checkpoints
        self._wanted = asyncio.Event()
        self.written = ChangeWaiters()

    def request(self) -> None:
        """A log start offset has moved."""
        self._wanted.set()

    async def run(self) -> None:
        """Write requested checkpoints, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._write_checkpoints()
            self.written.notify()
            await asyncio.sleep(_APART_S)
