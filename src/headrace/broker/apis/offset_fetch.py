"""OffsetFetch (9), versions 1-10: the committed positions of groups.

v2 null topics are all, error of the group · v3 throttle time · v5 leader epoch · v6 flexible · v7 require_stable · v8 several
groups · v9 member epoch of KIP-848 · v10 topic ids. No position: offset -1 without an error. What was committed for an earlier
topic of the same name is no position, in every version.
Errors, per group: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR; per partition: UNKNOWN_TOPIC_ID.
"""

from typing import Final
from uuid import UUID

from headrace.broker.cluster_view import ClusterView
from headrace.broker.request import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.ids import NO_TOPIC_ID
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_FIRST_WITH_IDS: Final = 10


async def handle(
    request: OffsetFetchRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    groups: Groups,
) -> OffsetFetchResponse:
    def topic_id_of(name: str) -> UUID:
        topic = cluster.state.topics.get(name)
        return NO_TOPIC_ID if topic is None else topic.topic_id

    if context.version < _FIRST_WITH_IDS:
        return await groups.fetch_offsets(context.version, request, topic_id_of)
    unknown = [_take_unknown(group, cluster) for group in request.groups]
    response = await groups.fetch_offsets(context.version, request, topic_id_of)
    for answer, topics in zip(response.groups, unknown, strict=True):
        _give_ids(answer, cluster)
        if answer.error_code == ErrorCode.NONE:
            answer.topics = [*answer.topics, *map(_unknown, topics)]
    return response


def _take_unknown(
    group: OffsetFetchRequestGroup, cluster: ClusterView
) -> list[OffsetFetchRequestTopics]:
    """Give the topics of a request their names; those that have none are taken out and returned."""
    unknown = []
    known = []
    for asked in group.topics or ():
        topic = cluster.state.topics_by_id.get(asked.topic_id)
        if topic is None:
            unknown.append(asked)
        else:
            asked.name = topic.name
            known.append(asked)
    if group.topics is not None:
        group.topics = known
    return unknown


def _give_ids(answer: OffsetFetchResponseGroup, cluster: ClusterView) -> None:
    """Offsets of a topic that no longer exists cannot be told by id, and are left out."""
    topics = []
    for found in answer.topics:
        topic = cluster.state.topics.get(found.name)
        if topic is not None:
            found.topic_id = topic.topic_id
            topics.append(found)
    answer.topics = topics


def _unknown(asked: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=asked.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for index in asked.partition_indexes
        ],
    )
