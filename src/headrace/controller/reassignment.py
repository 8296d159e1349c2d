"""Moving replicas to other brokers, step by step (KIP-455).

Owns the steps. While a partition moves, its replicas are the wanted ones and the leaving ones
together; it arrives when all that were added are in sync, and then the leaving ones go, in the
same write as the leadership if that has to move too. A move can be taken back until then.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from headrace.controller.assignments import check_assignment
from headrace.controller.changes import Change, PartitionChanged
from headrace.controller.core import Core, Decision, Group
from headrace.controller.create_partitions import topic_node
from headrace.controller.elections import clean_leader, complete_copies, with_isr, with_leader
from headrace.controller.values import NO_LEADER, PartitionState
from headrace.coordination.nodes import TopicNode
from headrace.coordination.store import Operation, Set
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused

replace = msgspec.structs.replace


class PartitionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for one partition of a request."""

    partition: TopicPartition
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class AlterReassignments(msgspec.Struct, frozen=True, kw_only=True):
    """Some partitions shall move; None takes a move back."""

    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    allow_factor_change: bool = True

    def decide(self, core: Core) -> Decision[tuple[PartitionAnswer, ...]]:
        """Start or take back what can be; each partition stands for itself."""
        answers: dict[TopicPartition, PartitionAnswer] = {}
        moved: dict[str, dict[int, PartitionState]] = {}
        for where, target in self.targets.items():
            try:
                after = self._after(core, where, target)
            except Refused as refused:
                answers[where] = PartitionAnswer(
                    partition=where, error=refused.error_code, message=refused.message
                )
                continue
            answers[where] = PartitionAnswer(partition=where)
            if after != core.state.partition(*where):
                moved.setdefault(where.topic, {})[where.partition] = after
        groups: list[Group] = []
        changes: list[Change] = []
        for topic, partitions in moved.items():
            topic_groups, topic_changes = write_assignment(core, topic, partitions)
            if all(map(core.fits, topic_groups)):
                groups += topic_groups
                changes += topic_changes
            else:
                answers.update(_too_large(core, topic, partitions))
        return Decision(
            answer=tuple(answers.values()), groups=tuple(groups), changes=tuple(changes)
        )

    def _after(
        self, core: Core, where: TopicPartition, target: tuple[int, ...] | None
    ) -> PartitionState:
        if where.topic not in core.state.topics:
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"Unable to find a topic named {where.topic}.",
            )
        partition = core.state.partition(*where)
        if partition is None or partition.is_new:
            topic_id = core.state.topics[where.topic].topic_id
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"Unable to find partition {topic_id}:{where.partition}.",
            )
        if target is None:
            if not partition.is_reassigning:
                raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
            return _taken_back(partition, core, where)
        check_assignment(core, target)
        if not self.allow_factor_change and len(target) != len(partition.target_replicas):
            raise Refused(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {len(partition.target_replicas)} to "
                f"{len(target)}",
            )
        moving = _led(_under_way(partition, target), core, where)
        return arrived(moving, core.eligible())


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A partition on its way."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ListReassignments(msgspec.Struct, frozen=True, kw_only=True):
    """List reassignments under way of these partitions, or of all partitions if none is named."""

    partitions: tuple[TopicPartition, ...] | None = None

    def decide(self, core: Core) -> Decision[tuple[Move, ...]]:
        """Look; nothing changes."""
        topics = core.state.topics
        wanted = self.partitions
        if wanted is None:
            wanted = tuple(
                TopicPartition(name, index)
                for name, topic in topics.items()
                for index in range(len(topic.partitions))
            )
        moves = []
        for where in dict.fromkeys(wanted):
            partition = core.state.partition(*where)
            if partition is not None and partition.is_reassigning:
                moves.append(
                    Move(
                        partition=where,
                        replicas=partition.replicas,
                        adding=partition.adding,
                        removing=partition.removing,
                    )
                )
        return Decision(answer=tuple(moves))


def _under_way(partition: PartitionState, target: tuple[int, ...]) -> PartitionState:
    """The partition on its way from where it was before any move to the target."""
    settled = [broker for broker in partition.replicas if broker not in partition.adding]
    leaving = tuple(broker for broker in settled if broker not in target)
    # What an earlier, abandoned move was adding goes at once.
    return replace(
        partition,
        replicas=target + leaving,
        adding=tuple(broker for broker in target if broker not in settled),
        removing=leaving,
        isr=tuple(b for b in partition.isr if b in target or b in leaving),
        elr=tuple(b for b in partition.elr if b in target or b in leaving),
    )


def arrived(partition: PartitionState, eligible: set[int]) -> PartitionState:
    """The partition at its target if all that were added are in sync; else as it is."""
    if not partition.is_reassigning:
        return partition
    target = partition.target_replicas
    isr = tuple(broker for broker in partition.isr if broker in target)
    if not isr or not set(partition.adding) <= set(isr):
        return partition
    leader = partition.leader
    if leader not in isr:
        heir = next((b for b in target if b in isr and b in eligible), None)
        if heir is None:
            return partition
        leader = heir
    there = replace(
        partition,
        replicas=target,
        adding=(),
        removing=(),
        elr=tuple(broker for broker in partition.elr if broker in target),
    )
    there = with_isr(there, isr)
    return there if leader == partition.leader else with_leader(there, leader)


def _taken_back(partition: PartitionState, core: Core, where: TopicPartition) -> PartitionState:
    """The partition where it was before the move."""
    settled = tuple(broker for broker in partition.replicas if broker not in partition.adding)
    back = replace(
        partition,
        replicas=settled,
        adding=(),
        removing=(),
        isr=tuple(broker for broker in partition.isr if broker in settled),
        elr=tuple(broker for broker in partition.elr if broker in settled),
    )
    return _led(back, core, where)


def _led(partition: PartitionState, core: Core, where: TopicPartition) -> PartitionState:
    """The partition with other replicas, under another leader if its own is not among them any more.

    Refused if no replica would be left that has everything committed, because a replica that goes deletes its log.
    """
    before = core.state.topics[where.topic].partitions[where.partition]
    copies = complete_copies(before)
    keeps_a_copy = not copies or bool(copies.intersection(partition.replicas))
    if keeps_a_copy and partition.leader in (*partition.replicas, NO_LEADER):
        return partition
    heir = clean_leader(partition, core.eligible()) if keeps_a_copy else None
    if heir is None:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {where.topic}:{where.partition} because it "
            "would require an unclean leader election.",
        )
    return with_leader(partition, heir)


def _fenced(before: PartitionState, after: PartitionState) -> PartitionState:
    """A removed replica deletes its log. If it is added again, none of its earlier fetches may count.

    So there is a new leader epoch, even for the same leader.
    """
    is_same_epoch = after.leader_epoch == before.leader_epoch
    if is_same_epoch and not set(before.replicas) <= set(after.replicas):
        return replace(after, leader_epoch=after.leader_epoch + 1)
    return after


def _too_large(
    core: Core, topic: str, indexes: Iterable[int]
) -> dict[TopicPartition, PartitionAnswer]:
    text = (
        f"The assignment of topic {topic} would be too large for the coordination store, which takes "
        f"{core.max_group_bytes} bytes in one write. Reassign fewer partitions at a time."
    )
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    places = [TopicPartition(topic, index) for index in indexes]
    return {each: PartitionAnswer(partition=each, error=code, message=text) for each in places}


def write_assignment(
    core: Core, topic: str, after: Mapping[int, PartitionState]
) -> tuple[list[Group], list[PartitionChanged]]:
    """The topic's node and the partitions' states: in one write, or in as many as the store needs.

    Each write holds the states of some partitions and the topic's node with these partitions changed, so after any of
    them node and states agree.
    """
    known = core.state.topics[topic]
    partitions = list(known.partitions)
    path = TopicNode.path(topic)
    version = core.nodes.known[path]
    groups: list[Group] = []
    changes: list[PartitionChanged] = []

    def write(indexes: Sequence[int]) -> None:
        before = partitions.copy()
        for index in indexes:
            partitions[index] = after[index]
        node = topic_node(known.topic_id, partitions)
        operations: list[Operation] = [Set(path, node.encode(), version + len(groups))]
        own_changes = []
        for index in indexes:
            fenced = _fenced(known.partitions[index], after[index])
            group, change = core.write_partition(topic, index, fenced)
            operations += group
            own_changes.append(change)
        if len(indexes) > 1 and not core.fits(tuple(operations)):
            partitions[:] = before
            middle = len(indexes) // 2
            write(indexes[:middle])
            write(indexes[middle:])
        else:
            groups.append(tuple(operations))
            changes.extend(own_changes)

    write(list(after))
    return groups, changes
