"""Elections on request (ElectLeaders): of preferred leaders, or unclean ones.

Owns when such an election is needed and possible. The preferred leader is the first replica of
the assignment; giving it the lead spreads leaders as the placement meant it.
"""

import enum

import msgspec

from headrace.controller.changes import Change
from headrace.controller.core import Core, Decision, Group
from headrace.controller.elections import clean_leader, elect, with_leader
from headrace.controller.reassignment import PartitionAnswer
from headrace.controller.values import NO_LEADER, PartitionState
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused


class ElectionType(enum.IntEnum):
    """The numbers are those of ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectLeaders(msgspec.Struct, frozen=True, kw_only=True):
    """Elect leaders of these partitions, or of all partitions if none is named."""

    election_type: ElectionType = ElectionType.PREFERRED
    partitions: tuple[TopicPartition, ...] | None = None

    def decide(self, core: Core) -> Decision[tuple[PartitionAnswer, ...]]:
        """Elect where it is needed and possible."""
        everywhere = self.partitions is None
        wanted = _all_partitions(core) if self.partitions is None else self.partitions
        answers = []
        groups: list[Group] = []
        changes: list[Change] = []
        for where in dict.fromkeys(wanted):
            try:
                after = self._after(core, where)
            except Refused as refused:
                if everywhere and refused.error_code is ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                answers.append(
                    PartitionAnswer(
                        partition=where, error=refused.error_code, message=refused.message
                    )
                )
                continue
            group, change = core.write_partition(where.topic, where.partition, after)
            groups.append(group)
            changes.append(change)
            answers.append(PartitionAnswer(partition=where))
        return Decision(answer=tuple(answers), groups=tuple(groups), changes=tuple(changes))

    def _after(self, core: Core, where: TopicPartition) -> PartitionState:
        if where.topic not in core.state.topics:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {where.topic}")
        partition = core.state.partition(*where)
        if partition is None or partition.is_new:
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"No such partition as {where.topic}-{where.partition}",
            )
        if self.election_type is ElectionType.PREFERRED:
            preferred = partition.replicas[0]
            if partition.leader == preferred:
                raise Refused(ErrorCode.ELECTION_NOT_NEEDED)
            if preferred not in partition.isr or preferred not in core.eligible():
                raise Refused(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
            return with_leader(partition, preferred)
        if partition.leader != NO_LEADER:
            raise Refused(ErrorCode.ELECTION_NOT_NEEDED)
        unsure = core.removed(core.live()).intersection(partition.replicas)
        if unsure and clean_leader(partition, core.eligible()) is None:
            raise Refused(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"The session of broker {min(unsure)} has not ended yet: it may still lead."
                " Try again when it has",
            )
        topic_id = core.state.topics[where.topic].topic_id
        offline = core.state.offline_replicas().get((topic_id, where.partition), set())
        candidates = core.eligible() - offline
        after = elect(partition, candidates, unclean=True)
        if after.leader == NO_LEADER:
            raise Refused(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        return after


def _all_partitions(core: Core) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(name, index)
        for name, topic in core.state.topics.items()
        for index in range(len(topic.partitions))
    )


def imbalanced(core: Core) -> tuple[TopicPartition, ...]:
    """The partitions whose preferred leader could lead, but does not."""
    eligible = core.eligible()
    return tuple(
        TopicPartition(name, index)
        for name, topic in core.state.topics.items()
        for index, partition in enumerate(topic.partitions)
        if partition.leader not in (NO_LEADER, partition.replicas[0])
        and partition.replicas[0] in eligible
        and partition.replicas[0] in partition.isr
    )
