"""OffsetCommit (8), versions 2-10: a group's positions.

v3 throttle time · v5 no retention time any more · v6 leader epoch · v7 static members · v8 flexible · v9 KIP-848 groups,
GROUP_ID_NOT_FOUND · v10 topic ids.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE; the same for all that exist:
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID, GROUP_ID_NOT_FOUND.
"""

from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.cluster_state import Topic
from headrace.coordinator.group.groups import Groups
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_FIRST_WITH_IDS: Final = 10


async def handle(
    request: OffsetCommitRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    groups: Groups,
) -> OffsetCommitResponse:
    known: list[OffsetCommitRequestTopic] = []
    answers: list[OffsetCommitResponseTopic] = []
    for asked in request.topics:
        topic, error = _topic(asked, context.version, cluster)
        there, missing = _divided(asked, topic)
        if topic is not None and there:
            known.append(
                OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=there)
            )
        answers.append(
            OffsetCommitResponseTopic(
                name=asked.name,
                topic_id=asked.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in missing
                ],
            )
        )
    if not known:
        return OffsetCommitResponse(topics=answers)
    request.topics = known
    response = await groups.commit_offsets(context.version, request)
    return OffsetCommitResponse(topics=_joined([*answers, *response.topics], context.version))


def _topic(
    asked: OffsetCommitRequestTopic, version: int, cluster: ClusterView
) -> tuple[Topic | None, ErrorCode]:
    """The topic, and the error for partitions that do not exist."""
    if version < _FIRST_WITH_IDS:
        return cluster.state.topics.get(asked.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = cluster.state.topics_by_id.get(asked.topic_id)
    if topic is None:
        return None, ErrorCode.UNKNOWN_TOPIC_ID
    return topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _divided(
    asked: OffsetCommitRequestTopic, topic: Topic | None
) -> tuple[list[OffsetCommitRequestPartition], list[OffsetCommitRequestPartition]]:
    count = 0 if topic is None else len(topic.partitions)
    there: list[OffsetCommitRequestPartition] = []
    missing: list[OffsetCommitRequestPartition] = []
    for partition in asked.partitions:
        (there if 0 <= partition.partition_index < count else missing).append(partition)
    return there, missing


def _joined(
    topics: list[OffsetCommitResponseTopic], version: int
) -> list[OffsetCommitResponseTopic]:
    """Each topic once, with all its partitions."""
    joined: dict[object, OffsetCommitResponseTopic] = {}
    for topic in topics:
        first = joined.setdefault(
            topic.topic_id if version >= _FIRST_WITH_IDS else topic.name, topic
        )
        if first is not topic:
            first.partitions = [*first.partitions, *topic.partitions]
    return list(joined.values())
