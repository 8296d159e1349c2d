"""DescribeTopicPartitions (75), version 0: topics by name, page by page, a page being so many partitions (KIP-966).

No topics means all. Topics come in the order of their names; a page ends after `response_partition_limit` partitions, or
the broker's `max.request.partition.size.limit`, and its cursor says where the next one begins.
Errors, per topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, and for a cursor that fits nothing INVALID_REQUEST.
"""

from collections.abc import Collection, Mapping
from uuid import UUID

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.reachable_brokers import NO_BROKER, reachable_brokers
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.security.authorized_operations import TOPIC_OPERATIONS
from headrace.controller.cluster_state import Topic
from headrace.controller.topics import name_fault
from headrace.controller.values import PartitionState
from headrace.internal_topics import INTERNAL_TOPICS
from headrace.settings.live_settings import LiveSettings
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(
    request: DescribeTopicPartitionsRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    live_settings: LiveSettings,
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    names = [topic.name for topic in request.topics] or list(cluster.state.topics)
    first_partition = 0
    if cursor is not None:
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names):
            return _cursor_refused(request)
        names = [name for name in names if name >= cursor.topic_name]
        first_partition = cursor.partition_index
    reachable = reachable_brokers(cluster, context.connection)
    offline = cluster.state.offline_replicas()
    most = live_settings.current.max_request_partition_size_limit
    room = max(1, min(most, request.response_partition_limit))
    response = DescribeTopicPartitionsResponse()
    described: list[DescribeTopicPartitionsResponseTopic] = []
    response.topics = described
    for name in sorted(set(names)):
        if not room:
            response.next_cursor = _cursor_at(name, 0)
            break
        topic = cluster.state.topics.get(name)
        if topic is None:
            described.append(_missing(name))
            continue
        first = first_partition if cursor is not None and name == cursor.topic_name else 0
        described.append(_found(topic, range(first, first + room), reachable, offline))
        room -= len(described[-1].partitions)
        if first + len(described[-1].partitions) < len(topic.partitions):
            response.next_cursor = _cursor_at(name, first + len(described[-1].partitions))
            break
    return response


def _cursor_at(name: str, index: int) -> DescribeTopicPartitionsResponseCursor:
    return DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=index)


def _cursor_refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=topic.name
            )
            for topic in request.topics
        ]
    )


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name_fault(name) is None
        else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _found(
    topic: Topic,
    page: range,
    reachable: Collection[int],
    offline: Mapping[tuple[UUID, int], Collection[int]],
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(index, partition, reachable, offline.get((topic.topic_id, index), ()))
            for index, partition in enumerate(topic.partitions[page.start : page.stop], page.start)
        ],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    index: int, partition: PartitionState, reachable: Collection[int], failed: Collection[int]
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=partition.leader if partition.leader in reachable else NO_BROKER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=[
            replica
            for replica in partition.replicas
            if replica not in reachable or replica in failed
        ],
    )
