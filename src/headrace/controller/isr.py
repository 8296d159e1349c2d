"""Leaders propose who is in sync; the controller decides (AlterPartition, KIP-497).

Owns the fences: a proposal counts only if it comes from the living incarnation of the leader of
this very leader epoch, builds on the newest state (partition epoch), and adds no replica whose
broker is gone, going, or not the incarnation that the leader has seen (KIP-841, KIP-903).
"""

from uuid import UUID

import msgspec

from headrace.controller.changes import Change
from headrace.controller.cluster_state import Topic
from headrace.controller.core import Core, Decision, Group
from headrace.controller.elections import with_isr
from headrace.controller.reassignment import arrived, write_assignment
from headrace.controller.values import Partition
from headrace.wire.error_code import ErrorCode

ANY_BROKER_EPOCH = -1


class IsrMember(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that the leader holds for in sync, and the incarnation it saw."""

    broker_id: int
    broker_epoch: int = ANY_BROKER_EPOCH


class IsrProposal(msgspec.Struct, frozen=True, kw_only=True):
    """What a leader proposes for one partition."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[IsrMember, ...]


class IsrAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a proposal; `state` is what holds now, when the proposal was taken."""

    topic_id: UUID
    partition: int
    error: ErrorCode = ErrorCode.NONE
    state: Partition | None = None


class AlterPartitionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An error that holds for all, or what became of each."""

    error: ErrorCode = ErrorCode.NONE
    partitions: tuple[IsrAnswer, ...] = ()


class AlterPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A broker proposes ISRs for partitions that it leads."""

    broker_id: int
    broker_epoch: int
    proposals: tuple[IsrProposal, ...]

    def decide(self, core: Core) -> Decision[AlterPartitionAnswer]:
        """Take the proposals that are not fenced."""
        broker = core.state.brokers.get(self.broker_id)
        if broker is None or broker.epoch != self.broker_epoch:
            return Decision(answer=AlterPartitionAnswer(error=ErrorCode.STALE_BROKER_EPOCH))
        answers: dict[tuple[UUID, int], IsrAnswer] = {}
        groups: list[Group] = []
        changes: list[Change] = []
        for proposal in self.proposals:
            where = (proposal.topic_id, proposal.partition)
            answer = self._judge(core, proposal)
            if where in answers:  # the second of two builds on what the first makes obsolete
                answer = _refused(proposal, ErrorCode.INVALID_UPDATE_VERSION)
            elif answer.state is not None:
                topic = core.state.topics_by_id[proposal.topic_id]
                answer = _take(core, topic, proposal, groups, changes)
            answers[where] = answer
        return Decision(
            answer=AlterPartitionAnswer(partitions=tuple(answers.values())),
            groups=tuple(groups),
            changes=tuple(changes),
        )

    def _judge(self, core: Core, proposal: IsrProposal) -> IsrAnswer:
        topic = core.state.topics_by_id.get(proposal.topic_id)
        if topic is None:
            return _refused(proposal, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = core.state.partition(topic.name, proposal.partition)
        if partition is None or partition.is_new:
            return _refused(proposal, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        fence = _fence(partition, proposal, self.broker_id)
        if fence is None:
            fence = _unfit(core, partition, proposal)
        if fence is not None:
            return _refused(proposal, fence)
        return IsrAnswer(topic_id=proposal.topic_id, partition=proposal.partition, state=partition)


def _refused(proposal: IsrProposal, error: ErrorCode) -> IsrAnswer:
    return IsrAnswer(topic_id=proposal.topic_id, partition=proposal.partition, error=error)


def _fence(partition: Partition, proposal: IsrProposal, broker_id: int) -> ErrorCode | None:
    """Is this from the leader, about the newest state?"""
    if (
        proposal.leader_epoch > partition.leader_epoch
        or proposal.partition_epoch > partition.partition_epoch
    ):
        return ErrorCode.NOT_CONTROLLER  # it knows more than we do: a later controller is at work
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if partition.leader != broker_id:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return None


def _unfit(core: Core, partition: Partition, proposal: IsrProposal) -> ErrorCode | None:
    """Is this a possible ISR?"""
    members = [member.broker_id for member in proposal.new_isr]
    if (
        len(set(members)) != len(members)
        or not set(members) <= set(partition.replicas)
        or partition.leader not in members
    ):
        return ErrorCode.INVALID_REQUEST
    for member in proposal.new_isr:
        broker = core.state.brokers.get(member.broker_id)
        if broker is None or broker.shutting_down:
            return ErrorCode.INELIGIBLE_REPLICA
        if member.broker_epoch not in (ANY_BROKER_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return None


def _take(
    core: Core,
    topic: Topic,
    proposal: IsrProposal,
    groups: list[Group],
    changes: list[Change],
) -> IsrAnswer:
    index = proposal.partition
    before = topic.partitions[index]
    min_isr = core.min_isr(topic.name)
    members = tuple(member.broker_id for member in proposal.new_isr)
    after = with_isr(before, members, min_isr=min_isr)
    there = arrived(after, core.eligible(), min_isr=min_isr)
    if there != after:
        group, (change,) = write_assignment(core, topic.name, {index: there})
    elif after != before:
        group, change = core.write_partition(topic.name, index, after)
    else:
        return IsrAnswer(topic_id=topic.topic_id, partition=index, state=before)
    groups.append(group)
    changes.append(change)
    error = ErrorCode.NONE
    if change.partition.leader != before.leader:
        error = ErrorCode.NEW_LEADER_ELECTED
    return IsrAnswer(topic_id=topic.topic_id, partition=index, error=error, state=change.partition)
