"""Asks the controller for changes of the ISR that leaders on this broker want. A rim module.

A proposal whose fate is not known stays in force, so that old and proposed members count, and is sent again; it ends with
the controller's word on the partition, which comes with the changes. Only what the controller certainly did not take is
withdrawn.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from headrace.broker.clock import Clock
from headrace.broker.live_settings import LiveSettings
from headrace.controller.core import Controller
from headrace.controller.driver import NotController
from headrace.controller.isr import AlterPartition, IsrAnswer, IsrMember, IsrProposal
from headrace.coordination.store import StoreFailed
from headrace.replication.leader import LeaderState
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.wire.error_code import ErrorCode

_logger = logging.getLogger(__name__)

_INTERVAL_S: Final = 0.1
_PAUSE_AFTER_REFUSAL_MS: Final = 1_000
_CERTAINLY_NOT_TAKEN: Final = frozenset((ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST))


class IsrUpdates:
    """The proposals of one broker."""

    def __init__(
        self,
        broker_id: int,
        partitions: PartitionTable,
        controller: Controller,
        live_settings: LiveSettings,
        broker_epoch: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._broker_id = broker_id
        self._partitions = partitions
        self._controller = controller
        self._live_settings = live_settings
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._not_before: dict[Partition, int] = {}

    async def run(self) -> None:
        """Propose what is due, until cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL_S)
            proposals = self._due()
            if proposals:
                await self._propose(proposals)

    def _due(self) -> dict[Partition, IsrProposal]:
        now_ms = self._clock()
        max_lag_ms = self._live_settings.current.replica_lag_time_max_ms
        due: dict[Partition, IsrProposal] = {}
        for partition in self._partitions:
            leader = partition.leader
            if leader is None or leader.replica_count == 1:
                continue
            if self._not_before.get(partition, 0) > now_ms:
                continue
            isr = leader.proposed_isr or leader.next_isr(now_ms=now_ms, max_lag_ms=max_lag_ms)
            if isr is not None:
                due[partition] = _proposal(partition, leader, isr)
                if leader.proposed_isr is None:
                    leader.propose(isr)
        return due

    async def _propose(self, proposals: dict[Partition, IsrProposal]) -> None:
        request = AlterPartition(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            proposals=tuple(proposals.values()),
        )
        try:
            answer = await self._controller.ask(request)
        except (NotController, StoreFailed) as error:
            _logger.warning("the ISR cannot be changed now: %s", error)
            return
        by_place = {(one.topic_id, one.partition): one for one in answer.partitions}
        for partition, proposal in proposals.items():
            one = by_place.get((proposal.topic_id, proposal.partition))
            if one is not None:
                self._settle(partition, proposal, one)

    def _settle(self, partition: Partition, proposal: IsrProposal, answer: IsrAnswer) -> None:
        leader = partition.leader
        if leader is None or leader.leader_epoch != proposal.leader_epoch:
            return
        now_ms = self._clock()
        if answer.state is not None:
            _logger.info("%s: in sync are %s", partition.topic_partition, answer.state.isr)
            self._not_before.pop(partition, None)
            partition.isr_decided(answer.state, now_ms=now_ms)
            return
        self._not_before[partition] = now_ms + _PAUSE_AFTER_REFUSAL_MS
        if answer.error in _CERTAINLY_NOT_TAKEN and leader.proposed_isr is not None:
            leader.withdraw()


def _proposal(partition: Partition, leader: LeaderState, isr: tuple[int, ...]) -> IsrProposal:
    return IsrProposal(
        topic_id=partition.topic_id,
        partition=partition.topic_partition.partition,
        leader_epoch=leader.leader_epoch,
        partition_epoch=leader.partition_epoch,
        new_isr=tuple(
            IsrMember(broker_id=member, broker_epoch=leader.broker_epoch(member)) for member in isr
        ),
    )
