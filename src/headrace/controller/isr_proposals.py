"""ISR changes that the leaders on one broker propose, and the effect of the controller's answers (pure).

A proposal whose fate is not known stays in force, so that old and proposed members count, and is sent again; it ends with
the controller's word on the partition. Only what the controller certainly did not take is withdrawn.
"""

import logging
from collections.abc import Collection, Iterable
from typing import Final

from headrace.controller.isr import (
    AlterPartition,
    AlterPartitionAnswer,
    IsrAnswer,
    IsrMember,
    IsrProposal,
)
from headrace.replication.leader import LeaderState
from headrace.replication.partition import Partition
from headrace.wire.error_code import ErrorCode

_logger = logging.getLogger(__name__)

_PAUSE_AFTER_REFUSAL_MS: Final = 1_000
_CERTAINLY_NOT_TAKEN: Final = frozenset((ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST))

Proposed = dict[Partition, IsrProposal]


class IsrProposals:
    """The proposals of one broker. One request at a time: `due`, send, `answered`."""

    def __init__(self) -> None:
        self._not_before: dict[Partition, int] = {}

    def due(
        self,
        partitions: Iterable[Partition],
        *,
        now_ms: int,
        max_lag_ms: int,
        eligible: Collection[int],
    ) -> Proposed:
        """What is to be proposed now; from here on old and new members count.

        Who is not `eligible` is not asked to join: the controller would refuse, and the others with it.
        """
        if self._not_before:
            later = {at: time_ms for at, time_ms in self._not_before.items() if time_ms > now_ms}
            self._not_before = later
        due: Proposed = {}
        for partition in partitions:
            leader = partition.leader
            if leader is None or leader.replica_count == 1:
                continue
            if partition in self._not_before:
                continue
            isr = leader.proposed_isr
            if isr is None:
                wanted = partition.next_isr(now_ms=now_ms, max_lag_ms=max_lag_ms) or leader.isr
                isr = tuple(each for each in wanted if each in leader.isr or each in eligible)
                if set(isr) == set(leader.isr):
                    continue
                leader.propose(isr)
            due[partition] = _proposal(partition, leader, isr)
        return due

    def answered(self, proposed: Proposed, answer: AlterPartitionAnswer, *, now_ms: int) -> None:
        """What the controller said. No answer at all leaves every proposal in force."""
        by_place = {(one.topic_id, one.partition): one for one in answer.partitions}
        for partition, proposal in proposed.items():
            one = by_place.get((proposal.topic_id, proposal.partition))
            if one is not None:
                self._settle(partition, proposal, one, now_ms)

    def _settle(
        self, partition: Partition, proposal: IsrProposal, answer: IsrAnswer, now_ms: int
    ) -> None:
        leader = partition.leader
        if leader is None or leader.leader_epoch != proposal.leader_epoch:
            return
        if answer.state is not None:
            _logger.info("%s: in sync are %s", partition.topic_partition, answer.state.isr)
            self._not_before.pop(partition, None)
            partition.isr_decided(answer.state, now_ms=now_ms)
            return
        self._not_before[partition] = now_ms + _PAUSE_AFTER_REFUSAL_MS
        if answer.error in _CERTAINLY_NOT_TAKEN and leader.proposed_isr is not None:
            leader.withdraw()


def request_of(broker_id: int, broker_epoch: int, proposed: Proposed) -> AlterPartition:
    """The question to the controller."""
    return AlterPartition(
        broker_id=broker_id, broker_epoch=broker_epoch, proposals=tuple(proposed.values())
    )


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
