"""Applies queued role changes in slices, between which the event loop serves clients. A rim module.

`ReplicaHosting` applies the first few role changes of a creation or an election at once. The others wait in its queue, because
applying thousands of them at a time would delay every client, and if this broker is the controller, all other brokers. A request
that created partitions is answered when the queue is empty.
"""

import asyncio
from typing import Final

from headrace.broker.replicas.replica_hosting import ReplicaHosting
from headrace.controller.changes import ChangeBatch

PARTITIONS_PER_SLICE: Final = 16  # a few milliseconds


class RoleApplication:
    """One event loop owns it; `run` until cancelled."""

    def __init__(self, replica_hosting: ReplicaHosting) -> None:
        self._hosting = replica_hosting
        self._is_wanted = asyncio.Event()
        self._is_done = asyncio.Event()
        self._is_done.set()

    def apply(self, batch: ChangeBatch) -> None:
        """Apply the changes that the controller published; many role changes are only queued."""
        self._hosting.apply(batch)
        if self._hosting.has_queued_roles:
            self._is_done.clear()
            self._is_wanted.set()

    async def all_applied(self) -> None:
        """Wait until the queue is empty."""
        await self._is_done.wait()

    async def run(self) -> None:
        """Apply the queued role changes, a few partitions at a time."""
        while True:
            await self._is_wanted.wait()
            if not self._hosting.apply_queued(PARTITIONS_PER_SLICE):
                self._is_wanted.clear()
                self._is_done.set()
            await asyncio.sleep(0)
