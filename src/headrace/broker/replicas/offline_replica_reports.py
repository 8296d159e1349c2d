"""Tells the controller which replicas this broker cannot use, because a disk failed under them. A rim module.

A report names all unusable replicas that the cluster state does not show as offline. So no report is lost when the controller
changes or an answer does not come.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.controller.core import Controller
from headrace.controller.driver import NotController
from headrace.controller.offline_replicas import ReplicasOffline
from headrace.coordination.store import StoreFailed
from headrace.ids import TopicPartition
from headrace.log.log_dirs import LogDirs
from headrace.replication.partition_table import PartitionTable

_logger = logging.getLogger(__name__)

_INTERVAL_S: Final = 0.2
_PAUSE_AFTER_FAILURE_S: Final = 2.0


class OfflineReplicaReports:
    """Reports the replicas that are assigned to this broker and cannot be used."""

    def __init__(
        self,
        cluster: ClusterView,
        partitions: PartitionTable,
        log_dirs: LogDirs,
        controller: Controller,
        broker_epoch: Callable[[], int],
        all_roles_applied: Callable[[], bool],
    ) -> None:
        """`all_roles_applied` is false while role changes are queued: their replicas may be usable."""
        self._cluster = cluster
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._all_roles_applied = all_roles_applied
        self._last_told: frozenset[tuple[UUID, int]] = frozenset()

    async def run(self) -> None:
        """Report replicas that the controller does not know to be offline, until cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL_S)
            untold = self.untold()
            if untold is not None and not await self._tell(untold):
                await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)

    def untold(self) -> ReplicasOffline | None:
        """The report that the controller should get now; None if it knows all."""
        us = self._cluster.state.brokers.get(self._cluster.broker_id)
        epoch = self._broker_epoch()
        if us is None or us.epoch != epoch or not self._all_roles_applied():
            return None
        unusable = self._unusable()
        if unusable == us.offline:
            return None
        return ReplicasOffline(broker_id=us.broker_id, broker_epoch=epoch, replicas=unusable)

    def _unusable(self) -> frozenset[tuple[UUID, int]]:
        log_dirs = self._log_dirs
        if not log_dirs.offline and not log_dirs.broken:
            return frozenset()
        everywhere = bool(log_dirs.offline)
        return frozenset(
            (topic.topic_id, index)
            for topic in self._cluster.state.topics.values()
            for index, partition in enumerate(topic.partitions)
            if self._cluster.broker_id in partition.replicas
            and self._partitions.get(topic.name, index) is None
            and (everywhere or TopicPartition(topic.name, index) in log_dirs.broken)
        )

    async def _tell(self, untold: ReplicasOffline) -> bool:
        if untold.replicas != self._last_told:
            _logger.warning("%d replicas here cannot be used", len(untold.replicas))
            self._last_told = untold.replicas
        try:
            error = await self._controller.ask(untold)
        except (NotController, StoreFailed) as failure:
            _logger.info("the controller cannot be told now: %s", failure)
            return False
        return not error
