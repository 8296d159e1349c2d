"""Asks the controller to raise leader epochs and producer ids that logs of this broker have seen already. A rim module.

That is the case when a backup of the coordination store was restored. `replica_hosting` finds such logs and leads none of them until the
controller has published a higher leader epoch.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.replicas.replica_hosting import ReplicaHosting
from headrace.clock import Clock
from headrace.controller.core import Controller
from headrace.controller.driver import NotController
from headrace.controller.raise_epochs import PRODUCER_IDS_A_SECOND, LogEpoch, RaiseEpochs
from headrace.coordination.store import StoreFailed

_logger = logging.getLogger(__name__)

_INTERVAL_S: Final = 0.1
_PAUSE_AFTER_FAILURE_S: Final = 1.0


class EpochRaising:
    """The logs of one broker that are newer than the coordination store."""

    def __init__(
        self,
        cluster: ClusterView,
        replica_hosting: ReplicaHosting,
        controller: Controller,
        broker_epoch: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._hosting = replica_hosting
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._is_told = False  # whether the operator was told
        self._are_ids_raised = False  # asked once for each run of the broker

    async def run(self) -> None:
        """Ask the controller whenever an epoch or a producer id must be raised, until cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL_S)
            request = self.due()
            if request is not None and not await self._ask(request):
                await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)

    def due(self) -> RaiseEpochs | None:
        """The request that the controller should get now; None if nothing must be raised."""
        logs = tuple(
            LogEpoch(topic_id=where.topic_id, partition=where.partition, leader_epoch=epoch)
            for where, epoch in self._hosting.newer_logs().items()
        )
        are_ids_behind = (
            not self._are_ids_raised
            and self._hosting.highest_producer_id >= self._cluster.state.next_producer_id
        )
        if not self._hosting.is_registered or not (logs or are_ids_behind):
            return None
        # Derived from the clock, because logs of other brokers may hold higher ids, and a client may have invented those in our logs.
        above_all = self._clock() // 1_000 * PRODUCER_IDS_A_SECOND
        return RaiseEpochs(
            broker_id=self._cluster.broker_id,
            broker_epoch=self._broker_epoch(),
            logs=logs,
            first_producer_id=-1 if self._are_ids_raised else above_all,
        )

    async def _ask(self, request: RaiseEpochs) -> bool:
        if not self._is_told:
            self._is_told = True
            _logger.warning(
                "the coordination store is older than the logs (%d partitions to lead have newer leader epochs):"
                " was a backup restored? Leader epochs and producer ids are raised above those of the logs."
                " What else to check is in docs/operating/cluster.md, a restored backup",
                len(request.logs),
            )
        try:
            error = await self._controller.ask(request)
        except (NotController, StoreFailed) as failure:
            _logger.info("leader epochs cannot be raised now: %s", failure)
            return False
        self._are_ids_raised |= not error
        return not error
