"""WriteTxnMarkers (27), versions 1-2: a transaction coordinator ends transactions in the partitions that this broker leads.

v2 transaction version of each marker. Answered when the markers are committed; they may be repeated. Each is fenced by the
producer's epoch and the coordinator's epoch; under transaction version 2 its epoch must be above the one that the transaction wrote in.
A copy that arrives over a connection which its sender has given up is not written.
Markers for `__consumer_offsets` go through the shard of the groups there, whose offsets they make count.
Errors, per partition: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION,
KAFKA_STORAGE_ERROR, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT; INVALID_REQUEST for a producer id or an epoch below 0.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.coordinators.marker_senders import MarkerSenders
from headrace.broker.replicas.partition_lookup import find_partition
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_context import RequestContext
from headrace.clock import Clock
from headrace.coordinator.group.groups import Groups
from headrace.internal_topics import CONSUMER_OFFSETS
from headrace.records.control_batch import TxnMarker
from headrace.replication.completion import Completion
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.settings.live_settings import LiveSettings
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from headrace.wire.refusal import Refusal

_FIRST_WITH_EPOCH_BUMP: Final = 2  # transaction version
_NOT_READY: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


async def handle(
    request: WriteTxnMarkersRequest,
    context: RequestContext,
    *,
    partitions: PartitionTable,
    cluster: ClusterView,
    groups: Groups,
    live_settings: LiveSettings,
    clock: Clock,
    long_work: LongWork,
    marker_senders: MarkerSenders,
) -> WriteTxnMarkersResponse | Completion:
    results: dict[int, _ProducerResults] = {}
    waits: list[Callable[[Completion], None]] = []
    slices = long_work.slices()
    for asked in request.markers:
        marker = _marker(asked)
        of_producer = results.setdefault(asked.producer_id, {})
        for topic in asked.topics:
            of_topic = of_producer.setdefault(topic.name, {})
            for index in dict.fromkeys(topic.partition_indexes):  # named twice, marked once
                await slices.pause()
                result = of_topic[index] = WritableTxnMarkerPartitionResult(partition_index=index)
                if _is_given_up(context, marker_senders):
                    result.error_code = ErrorCode.REQUEST_TIMED_OUT
                    continue
                if not _is_possible(marker):
                    result.error_code = ErrorCode.INVALID_REQUEST
                    continue
                partition = find_partition(partitions, cluster, topic.name, index)
                if isinstance(partition, Refusal):
                    result.error_code = partition.error_code
                    continue
                if topic.name == CONSUMER_OFFSETS:
                    result.error_code = (
                        ErrorCode.REQUEST_TIMED_OUT
                    )  # until the group's shard answers
                    ended = asyncio.ensure_future(groups.end_transaction(index, marker))
                    waits.append(partial(_wait_for_shard, ended, result))
                    continue
                appended = partition.append_marker(marker, now_ms=clock())
                if isinstance(appended, Refusal):
                    result.error_code = appended.error_code
                else:
                    wait = partial(
                        _wait_for_partition,
                        partition,
                        appended.last_offset + 1,
                        partition.leader_epoch,
                        result,
                    )
                    waits.append(wait)
    # Not before: a completion may be done, or its time up, between two slices.
    timeout_s = live_settings.current.request_timeout_ms / 1000
    completion = Completion(lambda: _response(results), timeout_s=timeout_s)
    for begin_waiting in waits:
        begin_waiting(completion)
    return completion


def _is_given_up(context: RequestContext, marker_senders: MarkerSenders) -> bool:
    """Whether the sender has repeated these markers over a newer connection. Asked after each pause."""
    connection = context.connection
    is_given_up = marker_senders.is_given_up(context.client_id, connection.connection_id)
    if is_given_up:
        connection.close("its sender has written transaction markers over a newer connection")
    return is_given_up


def _wait_for_partition(
    partition: Partition,
    next_offset: int,
    leader_epoch: int,
    result: WritableTxnMarkerPartitionResult,
    completion: Completion,
) -> None:
    refuse = partial(setattr, result, "error_code")
    completion.add(partition, next_offset, refuse, leader_epoch=leader_epoch)


def _wait_for_shard(
    ended: asyncio.Future[Any],
    result: WritableTxnMarkerPartitionResult,
    completion: Completion,
) -> None:
    completion.wait_for(ended, partial(_take, result))


def _take(result: WritableTxnMarkerPartitionResult, error: ErrorCode) -> None:
    """What a group's shard says. A transaction coordinator looks for the leader again after NOT_LEADER_OR_FOLLOWER."""
    result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _NOT_READY else error


_ProducerResults = dict[str, dict[int, WritableTxnMarkerPartitionResult]]


def _marker(asked: WritableTxnMarker) -> TxnMarker:
    return TxnMarker(
        producer_id=asked.producer_id,
        producer_epoch=asked.producer_epoch,
        coordinator_epoch=asked.coordinator_epoch,
        is_commit=asked.transaction_result,
        has_epoch_bump=asked.transaction_version >= _FIRST_WITH_EPOCH_BUMP,
    )


def _is_possible(marker: TxnMarker) -> bool:
    return marker.producer_id >= 0 and marker.producer_epoch >= 0


def _response(results: dict[int, _ProducerResults]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(name=name, partitions=list(partitions.values()))
                    for name, partitions in topics.items()
                ],
            )
            for producer_id, topics in results.items()
        ]
    )
