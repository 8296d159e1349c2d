"""DeleteRecords (21), versions 0-2: everything below an offset goes; -1 is the high watermark.

v2 flexible. Answers the low watermark: the least log start offset among the replicas on live brokers, as their checkpoints have it. The
answer waits until that has reached the offset, so that the records are not back after a failover or after a kill of all brokers; at the latest
for `timeout_ms`.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, POLICY_VIOLATION for a topic
that is compacted and not deleted from, REQUEST_TIMED_OUT if a live replica has not deleted yet.
"""

import asyncio
from collections.abc import Container

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.replicas.log_start_sync import LogStartSync
from headrace.broker.replicas.partition_lookup import find_partition
from headrace.broker.requests.request_context import RequestContext
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from headrace.wire.refusal import Refusal


async def handle(
    request: DeleteRecordsRequest,
    context: RequestContext,
    *,
    partitions: PartitionTable,
    cluster: ClusterView,
    log_start_sync: LogStartSync,
) -> DeleteRecordsResponse:
    pending: list[_Deletion] = []

    def delete(topic: str, ask: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        result = DeleteRecordsPartitionResult(partition_index=ask.partition_index, low_watermark=-1)
        partition = find_partition(partitions, cluster, topic, ask.partition_index)
        if isinstance(partition, Refusal):
            result.error_code = partition.error_code
            return result
        offset = _delete(partition, ask.offset)
        if isinstance(offset, Refusal):
            result.error_code = offset.error_code
        else:
            pending.append(_Deletion(partition, offset, result))
        return result

    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[delete(topic.name, ask) for ask in topic.partitions]
            )
            for topic in request.topics
        ]
    )
    if pending:
        log_start_sync.request()
        await _wait_for_replicas(pending, cluster, log_start_sync, request.timeout_ms)
    return response


class _Deletion:
    """Records that the leader has deleted; `result` is complete once every live replica has, too."""

    def __init__(
        self, partition: Partition, offset: int, result: DeleteRecordsPartitionResult
    ) -> None:
        self.partition = partition
        self._offset = offset
        self._result = result

    def is_over(self, live: Container[int]) -> bool:
        """Whether nothing is left to wait for; until then the result is what is answered when the time is up."""
        low_watermark = self.partition.low_watermark(live)
        if low_watermark is None:
            self._result.low_watermark = -1
            self._result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return True
        is_done = low_watermark >= self._offset
        self._result.low_watermark = low_watermark
        self._result.error_code = ErrorCode.NONE if is_done else ErrorCode.REQUEST_TIMED_OUT
        return is_done


def _delete(partition: Partition, offset: int) -> int | Refusal:
    config = partition.log.config
    if config.cleanup_compact and not config.cleanup_delete:
        topic = partition.topic_partition.topic
        return Refusal(ErrorCode.POLICY_VIOLATION, f"{topic} is compacted, not deleted from")
    return partition.delete_records(offset)


async def _wait_for_replicas(
    deletions: list[_Deletion], cluster: ClusterView, log_start_sync: LogStartSync, timeout_ms: int
) -> None:
    changed = asyncio.Event()
    log_start_sync.written.add(changed.set)
    for deletion in deletions:
        deletion.partition.log_starts.add(changed.set)
    pending = deletions
    try:
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            while pending := [each for each in pending if not each.is_over(cluster.state.brokers)]:
                await changed.wait()
                changed.clear()
    except TimeoutError:
        pass  # each of the results says so already
    finally:
        log_start_sync.written.remove(changed.set)
        for deletion in deletions:
            deletion.partition.log_starts.remove(changed.set)
