"""The offsets a group has committed: reading, setting and deleting them at its coordinator."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.client.admin.admin import Admin
from headrace.client.admin.groups import ask_coordinator
from headrace.client.admin.partitions import by_topic
from headrace.client.cluster_metadata import Node
from headrace.ids import TopicPartition
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from headrace.wire.refusal import Refusal, refusal_of, require

# From the next version on topics travel by id only.
_LAST_WITH_NAMES = 9
_NOTHING_COMMITTED = -1
_NO_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """Where a group goes on in a partition."""

    offset: int
    leader_epoch: int | None
    metadata: str


def committed_offsets(admin: Admin, group_id: str) -> dict[TopicPartition, CommittedOffset]:
    """Everything a group has committed. Raises Refused."""

    def read(
        answer: OffsetFetchResponse, _coordinator: Node
    ) -> dict[TopicPartition, CommittedOffset]:
        found: dict[TopicPartition, CommittedOffset] = {}
        require(answer.error_code)
        for group in answer.groups:
            require(group.error_code)
            for topic in group.topics:
                for each in topic.partitions:
                    _keep(found, topic.name, each)
        for old_topic in answer.topics:
            for old in old_topic.partitions:
                _keep(found, old_topic.name, old)
        return found

    request = OffsetFetchRequest(
        group_id=group_id,
        topics=None,
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)],
    )
    return ask_coordinator(admin, group_id, request, read, at_most=_LAST_WITH_NAMES)


def _keep(
    found: dict[TopicPartition, CommittedOffset],
    topic: str,
    each: OffsetFetchResponsePartition | OffsetFetchResponsePartitions,
) -> None:
    require(each.error_code)
    if each.committed_offset == _NOTHING_COMMITTED:
        return
    epoch = each.committed_leader_epoch
    found[TopicPartition(topic, each.partition_index)] = CommittedOffset(
        offset=each.committed_offset,
        leader_epoch=None if epoch == _NO_EPOCH else epoch,
        metadata=each.metadata or "",
    )


def alter_offsets(admin: Admin, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group that has no members. Raises Refused."""

    def read(answer: OffsetCommitResponse, _coordinator: Node) -> None:
        for topic in answer.topics:
            for each in topic.partitions:
                require(each.error_code)

    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offsets[TopicPartition(topic, number)],
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(offsets)
        ],
    )
    ask_coordinator(admin, group_id, request, read, at_most=_LAST_WITH_NAMES)


def delete_offsets(
    admin: Admin, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Refusal | None]:
    """Delete what a group has committed for partitions; what was refused, by partition. Raises Refused."""

    def read(
        answer: OffsetDeleteResponse, _coordinator: Node
    ) -> dict[TopicPartition, Refusal | None]:
        require(answer.error_code)
        return {
            TopicPartition(topic.name, each.partition_index): refusal_of(each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        }

    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                ],
            )
            for topic, numbers in by_topic(partitions)
        ],
    )
    return ask_coordinator(admin, group_id, request, read)
