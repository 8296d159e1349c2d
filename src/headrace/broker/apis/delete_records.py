"""DeleteRecords (21), versions 0-2: everything below an offset goes; -1 is the high watermark.

v2 flexible. Answers the new log start offset.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, POLICY_VIOLATION for a topic
that is compacted and not deleted from.
"""

from headrace.broker.cluster_view import ClusterView
from headrace.broker.partition_lookup import find_partition
from headrace.broker.request import RequestContext
from headrace.log.append_result import Refused
from headrace.replication.partition_table import PartitionTable
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def handle(
    request: DeleteRecordsRequest,
    context: RequestContext,
    *,
    partitions: PartitionTable,
    cluster: ClusterView,
) -> DeleteRecordsResponse:
    def delete(topic: str, ask: DeleteRecordsPartition) -> int | Refused:
        partition = find_partition(partitions, cluster, topic, ask.partition_index)
        if isinstance(partition, Refused):
            return partition
        config = partition.log.config
        if config.cleanup_compact and not config.cleanup_delete:
            return Refused(ErrorCode.POLICY_VIOLATION, f"{topic} is compacted, not deleted from")
        return partition.delete_records(ask.offset)

    def answer(topic: str, ask: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        result = delete(topic, ask)
        if isinstance(result, Refused):
            return DeleteRecordsPartitionResult(
                partition_index=ask.partition_index,
                low_watermark=-1,
                error_code=result.error_code,
            )
        return DeleteRecordsPartitionResult(
            partition_index=ask.partition_index, low_watermark=result
        )

    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[answer(topic.name, ask) for ask in topic.partitions]
            )
            for topic in request.topics
        ]
    )
