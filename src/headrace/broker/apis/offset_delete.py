"""OffsetDelete (47), version 0: forget a group's positions in topics that it does not consume.

Errors, of the whole: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID,
GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP; per partition: UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC.
"""

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(
    request: OffsetDeleteRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    groups: Groups,
) -> OffsetDeleteResponse:
    known: list[OffsetDeleteRequestTopic] = []
    missing: dict[str, list[OffsetDeleteResponsePartition]] = {}
    for topic in request.topics:
        there = []
        for partition in topic.partitions:
            index = partition.partition_index
            if cluster.state.partition(topic.name, index) is not None:
                there.append(partition)
            else:
                missing.setdefault(topic.name, []).append(
                    OffsetDeleteResponsePartition(
                        partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                )
        if there:
            known.append(OffsetDeleteRequestTopic(name=topic.name, partitions=there))
    response = await groups.delete_offsets(
        OffsetDeleteRequest(group_id=request.group_id, topics=known)
    )
    if response.error_code == ErrorCode.NONE:
        for done in response.topics:
            done.partitions = [*missing.pop(done.name, ()), *done.partitions]
        response.topics = [
            *response.topics,
            *(
                OffsetDeleteResponseTopic(name=name, partitions=partitions)
                for name, partitions in missing.items()
            ),
        ]
    return response
