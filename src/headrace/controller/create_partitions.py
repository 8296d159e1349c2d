"""More partitions for a topic that exists.

Owns where they go: on, as if the topic had been created with them, or where the client wants them.
"""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import msgspec

from headrace.controller.assignments import (
    check_assignment,
    check_count,
    check_fits,
    check_someone_lives,
    first_states,
    racks_for,
    state_groups,
)
from headrace.controller.changes import Change, PartitionsAdded
from headrace.controller.cluster_state import Topic
from headrace.controller.core import Core, Decision, Group
from headrace.controller.placement import place
from headrace.controller.topics import TopicAnswer, check_single
from headrace.controller.values import ConfigKind, PartitionState
from headrace.coordination.nodes import TopicNode
from headrace.ids import text_of_id
from headrace.internal_topics import INTERNAL_TOPICS
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused


class MorePartitions(msgspec.Struct, frozen=True, kw_only=True):
    """A topic shall have `count` partitions; `assignments` are those of the new ones, if given."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


class CreatePartitions(msgspec.Struct, frozen=True, kw_only=True):
    """Some topics shall grow."""

    topics: tuple[MorePartitions, ...]
    validate_only: bool = False

    def decide(self, core: Core) -> Decision[tuple[TopicAnswer, ...]]:
        """Add partitions to each topic that allows it. A refused topic does not affect the others."""
        names = Counter(topic.name for topic in self.topics)
        answers = []
        groups: list[Group] = []
        changes: list[Change] = []
        for wanted in {topic.name: topic for topic in self.topics}.values():
            try:
                check_single(wanted.name, names)
                topic_groups, change = _grow(core, wanted)
            except Refused as refused:
                answers.append(
                    TopicAnswer(name=wanted.name, error=refused.error_code, message=refused.message)
                )
                continue
            answers.append(TopicAnswer(name=wanted.name))
            groups += topic_groups
            changes.append(change)
        if self.validate_only:
            return Decision(answer=tuple(answers))
        return Decision(answer=tuple(answers), groups=tuple(groups), changes=tuple(changes))


def _grow(core: Core, wanted: MorePartitions) -> tuple[list[Group], PartitionsAdded]:
    topic = core.state.topics.get(wanted.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if wanted.count == present:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if wanted.count < present:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {wanted.name} currently has {present} partition(s); {wanted.count} would "
            "not be an increase.",
        )
    if wanted.name in INTERNAL_TOPICS:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The number of partitions of {wanted.name} cannot be changed, because it says which "
            "partition holds a group's committed offsets.",
        )
    additional = wanted.count - present
    check_count(core, additional)
    replicas = _further_replicas(core, topic, wanted, additional)
    partitions = first_states(core, replicas, core.state.config(ConfigKind.TOPIC, topic.name))
    node = topic_node(topic.topic_id, [*topic.partitions, *partitions])
    head: Group = (core.nodes.put(TopicNode.path(topic.name), node.encode()),)
    check_fits(core, topic.name, wanted.count, head)
    groups = [head, *state_groups(core, topic.name, present, partitions)]
    return groups, PartitionsAdded(topic.name, present, partitions)


def _further_replicas(
    core: Core, topic: Topic, wanted: MorePartitions, additional: int
) -> list[tuple[int, ...]]:
    present = len(topic.partitions)
    first = topic.partitions[0].replicas
    if wanted.assignments is not None:
        if len(wanted.assignments) != additional:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {additional} additional partition(s), but only "
                f"{len(wanted.assignments)} assignment(s) were specified.",
            )
        for offset, brokers in enumerate(wanted.assignments):
            check_assignment(core, brokers, factor=len(first))
            check_someone_lives(core, present + offset, brokers)
        return list(wanted.assignments)
    racks = racks_for(core, len(first))
    # Goes on where the placement of the first partitions would have gone on.
    start = sum(1 for broker in racks if broker < first[0]) % len(racks)
    return place(
        racks,
        partitions=additional,
        replication_factor=len(first),
        first_partition=present,
        start_index=start,
        start_shift=start,
    )


def topic_node(topic_id: UUID, partitions: Sequence[PartitionState]) -> TopicNode:
    """What a topic's node says of these partitions."""
    numbered = dict(enumerate(partitions))
    return TopicNode(
        text_of_id(topic_id),
        {index: partition.replicas for index, partition in numbered.items()},
        {index: partition.adding for index, partition in numbered.items() if partition.adding},
        {index: partition.removing for index, partition in numbered.items() if partition.removing},
    )
