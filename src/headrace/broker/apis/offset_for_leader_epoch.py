"""OffsetForLeaderEpoch (23), versions 2-4: where an epoch ended, so that a reader notices truncation.

v3 replica id · v4 flexible. An epoch nobody knows: (-1, -1) without an error.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
"""

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.replicas.partition_lookup import find_leader
from headrace.broker.requests.request_context import RequestContext
from headrace.replication.partition_table import PartitionTable
from headrace.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from headrace.wire.refusal import Refusal


def handle(
    request: OffsetForLeaderEpochRequest,
    context: RequestContext,
    *,
    partitions: PartitionTable,
    cluster: ClusterView,
) -> OffsetForLeaderEpochResponse:
    def answer(topic: str, ask: OffsetForLeaderPartition) -> EpochEndOffset:
        partition = find_leader(
            partitions,
            cluster,
            topic,
            ask.partition,
            current_leader_epoch=ask.current_leader_epoch,
        )
        if isinstance(partition, Refusal):
            return EpochEndOffset(partition=ask.partition, error_code=partition.error_code)
        log = partition.log
        end = log.leader_epochs.end_offset_for(ask.leader_epoch, log.log_end_offset)
        return EpochEndOffset(
            partition=ask.partition, leader_epoch=end.epoch, end_offset=end.end_offset
        )

    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[answer(topic.topic, ask) for ask in topic.partitions]
            )
            for topic in request.topics
        ]
    )
