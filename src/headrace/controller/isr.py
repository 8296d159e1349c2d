"""Leaders propose who is in sync; the controller decides (AlterPartition, KIP-497).

Owns the fences: a proposal counts only if it comes from the living incarnation of the leader of
this very leader epoch, builds on the newest state (partition epoch), and adds no replica whose
broker is gone, going, not the incarnation that the leader has seen (KIP-841, KIP-903), or cannot use its replica.
"""

from collections.abc import Mapping
from uuid import UUID

import msgspec

from headrace.controller.changes import PartitionChanged
from headrace.controller.cluster_state import Topic
from headrace.controller.core import Core, Decision, Group
from headrace.controller.elections import with_isr
from headrace.controller.reassignment import arrived, write_assignment
from headrace.controller.values import PartitionState
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode

ANY_BROKER_EPOCH = -1


class IsrMember(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that the leader regards as in sync, and the broker epoch of its last fetch."""

    broker_id: int
    broker_epoch: int = ANY_BROKER_EPOCH


class IsrProposal(msgspec.Struct, frozen=True, kw_only=True):
    """The ISR that a leader proposes for one partition."""

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
    state: PartitionState | None = None


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
        taken = _Taken(core)
        for proposal in self.proposals:
            where = (proposal.topic_id, proposal.partition)
            answer = self._judge(core, proposal)
            if where in answers:  # the second of two builds on what the first makes obsolete
                answer = _refused(proposal, ErrorCode.INVALID_UPDATE_VERSION)
            elif answer.state is not None:
                taken.take(core.state.topics_by_id[proposal.topic_id], proposal)
            answers[where] = answer
        groups, changes = taken.writes()
        states = {(change.topic, change.index): change.partition for change in changes}
        return Decision(
            answer=AlterPartitionAnswer(
                partitions=tuple(_told(core, answer, states) for answer in answers.values())
            ),
            groups=groups,
            changes=changes,
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


def _fence(partition: PartitionState, proposal: IsrProposal, broker_id: int) -> ErrorCode | None:
    """Is this from the leader, about the newest state?"""
    if (
        proposal.leader_epoch > partition.leader_epoch
        or proposal.partition_epoch > partition.partition_epoch
    ):
        return (
            ErrorCode.NOT_CONTROLLER
        )  # the leader knows a later state, so there is a later controller
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if partition.leader != broker_id:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return None


def _unfit(core: Core, partition: PartitionState, proposal: IsrProposal) -> ErrorCode | None:
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
        if (proposal.topic_id, proposal.partition) in broker.offline:
            return ErrorCode.INELIGIBLE_REPLICA
        if member.broker_epoch not in (ANY_BROKER_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return None


class _Taken:
    """The proposals of one request that are taken; those that end a move of replicas are one write for each topic."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._changed: dict[TopicPartition, PartitionState] = {}
        self._arrived: dict[str, dict[int, PartitionState]] = {}

    def take(self, topic: Topic, proposal: IsrProposal) -> None:
        index = proposal.partition
        before = topic.partitions[index]
        members = tuple(member.broker_id for member in proposal.new_isr)
        after = with_isr(before, members)
        there = arrived(after, self._core.eligible())
        if there != after:
            self._arrived.setdefault(topic.name, {})[index] = there
        elif after != before:
            self._changed[TopicPartition(topic.name, index)] = after

    def writes(self) -> tuple[tuple[Group, ...], tuple[PartitionChanged, ...]]:
        groups: list[Group] = []
        changes: list[PartitionChanged] = []
        for (topic, index), after in self._changed.items():
            group, change = self._core.write_partition(topic, index, after)
            groups.append(group)
            changes.append(change)
        for topic, partitions in self._arrived.items():
            topic_groups, moved = write_assignment(self._core, topic, partitions)
            groups += topic_groups
            changes += moved
        return tuple(groups), tuple(changes)


def _told(
    core: Core, answer: IsrAnswer, states: Mapping[tuple[str, int], PartitionState]
) -> IsrAnswer:
    """The answer with what holds from now on."""
    before = answer.state
    if before is None:
        return answer
    name = core.state.topics_by_id[answer.topic_id].name
    after = states.get((name, answer.partition), before)
    has_moved = after.leader != before.leader
    error = ErrorCode.NEW_LEADER_ELECTED if has_moved else ErrorCode.NONE
    return msgspec.structs.replace(answer, error=error, state=after)
