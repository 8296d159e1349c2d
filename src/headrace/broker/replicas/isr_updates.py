"""Asks the controller for changes of the ISR that leaders on this broker want. A rim module.

What is asked and what an answer means is decided by `controller.isr_proposals`.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.clock import Clock
from headrace.controller.core import Controller
from headrace.controller.driver import NotController
from headrace.controller.isr_proposals import IsrProposals, Proposed, request_of
from headrace.coordination.store import StoreFailed
from headrace.replication.partition_table import PartitionTable
from headrace.settings.live_settings import LiveSettings

_logger = logging.getLogger(__name__)

_INTERVAL_S: Final = 0.1


class IsrUpdates:
    """The proposals of one broker."""

    def __init__(
        self,
        cluster: ClusterView,
        partitions: PartitionTable,
        controller: Controller,
        live_settings: LiveSettings,
        broker_epoch: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self._controller = controller
        self._live_settings = live_settings
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._proposals = IsrProposals()

    async def run(self) -> None:
        """Propose what is due, until cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL_S)
            proposed = self._proposals.due(
                self._partitions,
                now_ms=self._clock(),
                max_lag_ms=self._live_settings.current.replica_lag_time_max_ms,
                eligible=self._cluster.state.eligible(),
            )
            if proposed:
                await self._propose(proposed)

    async def _propose(self, proposed: Proposed) -> None:
        request = request_of(self._cluster.broker_id, self._broker_epoch(), proposed)
        try:
            answer = await self._controller.ask(request)
        except (NotController, StoreFailed) as error:
            _logger.warning("the ISR cannot be changed now: %s", error)
            return
        self._proposals.answered(proposed, answer, now_ms=self._clock())
