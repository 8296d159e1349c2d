"""Produce (0), versions 3-13: batches for partitions.

v5 log start offset · v7 zstd · v8 per-record errors · v9 flexible · v10 current leader (KIP-951) · v13 topic ids.
Advertised from 0 on, as Kafka does: older librdkafka switches compression off without it. 0-2 are refused.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, CORRUPT_MESSAGE,
INVALID_RECORD, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, OUT_OF_ORDER_SEQUENCE_NUMBER, NOT_ENOUGH_REPLICAS, …
Left out: transactions.
"""

import asyncio
from functools import partial
from typing import Final
from uuid import UUID

from headrace.broker.clock import Clock
from headrace.broker.cluster_view import ClusterView
from headrace.broker.partition_lookup import missing
from headrace.broker.request import RequestContext
from headrace.broker.traffic import UNKNOWN_TOPIC, TopicTraffic, Traffic
from headrace.errors import MalformedMessage
from headrace.log.append_result import Appended, Refused
from headrace.records.batch_view import HEADER_BYTES, MAGIC, read_header
from headrace.records.compression import Codec
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.wire.codec import Piece
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    ProduceRequest,
)
from headrace.wire.produce_response_codec import (
    FIRST_WITH_IDS,
    ProduceErrorDetails,
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)

ADVERTISED_FROM: Final = 0
INTERNAL_TOPICS: Final = frozenset(
    ("__consumer_offsets", "__transaction_state", "__share_group_state")
)
_ADMIN_CLIENT: Final = "__admin_client"  # Kafka lets its own tools write to internal topics
_FIRST_WITH_ZSTD: Final = 7
# Refusals of an append that say nothing of the log, as Kafka has it.
_WITHOUT_LOG_START: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)

Records = bytes | memoryview | None
"""A view of the request's frame; the other types are for messages made by hand."""


def handle(
    request: ProduceRequest,
    context: RequestContext,
    *,
    partitions: PartitionTable,
    cluster: ClusterView,
    traffic: Traffic,
    clock: Clock,
) -> "list[Piece] | asyncio.Future[list[Piece]] | None":
    call = _Produce(request, context, partitions, cluster, clock())
    topics: list[ProduceTopicResult] = []
    for topic in request.topic_data:
        name = topic.name
        if context.version >= FIRST_WITH_IDS:
            name = partitions.topic_name(topic.topic_id) or _known_name(cluster, topic.topic_id)
        counters = traffic.of(name if partitions.of_topic(name) is not None else UNKNOWN_TOPIC)
        results = [
            call.append(name, ask.index, ask.records, counters) for ask in topic.partition_data
        ]
        topics.append(ProduceTopicResult(topic.name, topic.topic_id, results))
    if request.acks == 0:
        if call.has_failed:
            raise MalformedMessage("acks=0 and an error: closing is the only way to tell")
        return None
    if call.waiting:
        return _when_committed(call.waiting, request.timeout_ms, context.version, topics)
    return [encode_produce_response(context.version, topics)]


class _Produce:
    """One request on its way through the partitions."""

    __slots__ = (
        "_acks",
        "_cluster",
        "_may_write_internal",
        "_now_ms",
        "_partitions",
        "_transactional_id",
        "_version",
        "has_failed",
        "waiting",
    )

    def __init__(
        self,
        request: ProduceRequest,
        context: RequestContext,
        partitions: PartitionTable,
        cluster: ClusterView,
        now_ms: int,
    ) -> None:
        self._acks = request.acks
        self._transactional_id = request.transactional_id
        self._version = context.version
        self._may_write_internal = context.client_id == _ADMIN_CLIENT
        self._partitions = partitions
        self._cluster = cluster
        self._now_ms = now_ms
        self.has_failed = False
        self.waiting: list[tuple[Partition, int, ProducePartitionResult]] = []

    def append(
        self, topic: str, index: int, records: Records, counters: TopicTraffic
    ) -> ProducePartitionResult:
        """Give one partition its batch."""
        counters.produce_requests += 1
        refused = self._check(records)
        if refused is not None:
            return self._fail(topic, index, refused, counters)
        partition = self._partitions.get(topic, index)
        if partition is None:
            by_id = self._version >= FIRST_WITH_IDS
            not_here = _missing(self._cluster, topic, index, by_id=by_id)
            return self._fail(topic, index, not_here, counters)
        if topic in INTERNAL_TOPICS and not self._may_write_internal:
            internal = Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is an internal topic")
            return self._fail(topic, index, internal, counters)
        assert isinstance(records, memoryview)
        appended = partition.append(records, acks=self._acks, now_ms=self._now_ms)
        if isinstance(appended, Refused):
            failure = self._fail(topic, index, appended, counters)
            if appended.error_code not in _WITHOUT_LOG_START:
                failure.log_start_offset = partition.log.log_start_offset
            return failure
        result = _success(index, appended, partition)
        if not appended.duplicate:
            counters.bytes_in += len(records)
            counters.messages_in += appended.last_offset - appended.base_offset + 1
        if self._acks == -1 and partition.high_watermark <= appended.last_offset:
            self.waiting.append((partition, appended.last_offset + 1, result))
        return result

    def _check(self, records: Records) -> Refused | None:
        if self._acks not in (-1, 0, 1):
            return Refused(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks={self._acks} is none of -1, 0, 1"
            )
        if not records:
            return Refused(ErrorCode.INVALID_RECORD, "exactly one record batch is needed")
        if len(records) < HEADER_BYTES:
            return None
        header = read_header(records)
        if header.magic != MAGIC or header.size != len(records):
            return Refused(ErrorCode.INVALID_RECORD, "exactly one whole record batch is needed")
        if header.codec == Codec.ZSTD and self._version < _FIRST_WITH_ZSTD:
            return Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs version 7 or later")
        if header.is_transactional and self._transactional_id is None:
            return Refused(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transaction without an id"
            )
        if header.is_transactional:
            return Refused(ErrorCode.INVALID_TXN_STATE, "transactions are not offered")
        return None

    def _fail(
        self, topic: str, index: int, refused: Refused, counters: TopicTraffic
    ) -> ProducePartitionResult:
        self.has_failed = True
        counters.failed_produce_requests += 1
        return _refusal(index, refused, self._cluster, topic)


def _known_name(cluster: ClusterView, topic_id: UUID) -> str:
    topic = cluster.state.topics_by_id.get(topic_id)
    return "" if topic is None else topic.name


def _missing(cluster: ClusterView, topic: str, index: int, *, by_id: bool) -> Refused:
    if not topic and by_id:
        return Refused(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
    return missing(cluster, topic, index)


def _success(index: int, appended: Appended, partition: Partition) -> ProducePartitionResult:
    return ProducePartitionResult(
        index,
        0,
        appended.base_offset,
        appended.log_append_time_ms,
        partition.log.log_start_offset,
    )


def _refusal(
    index: int, refused: Refused, cluster: ClusterView, topic: str
) -> ProducePartitionResult:
    result = ProducePartitionResult(index, refused.error_code)
    leader = None
    if refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        known = cluster.state.partition(topic, index)
        if known is not None:
            leader = LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.leader_epoch)
    result.details = ProduceErrorDetails(
        refused.message,
        [
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=text)
            for at, text in refused.record_errors
        ],
        leader,
    )
    return result


def _when_committed(
    waiting: list[tuple[Partition, int, ProducePartitionResult]],
    timeout_ms: int,
    version: int,
    topics: list[ProduceTopicResult],
) -> "asyncio.Future[list[Piece]]":
    """The answer once every batch is on all in-sync replicas, or the time is up."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Piece]] = loop.create_future()
    open_results = {id(result): result for _, _, result in waiting}

    def settle(result: ProducePartitionResult, is_committed: bool) -> None:  # noqa: FBT001 (a callback's form)
        if open_results.pop(id(result), None) is None:
            return
        if not is_committed:
            result.error_code, result.base_offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        if not open_results:
            finish()

    def finish() -> None:
        timer.cancel()
        for result in open_results.values():
            result.error_code, result.base_offset = ErrorCode.REQUEST_TIMED_OUT, -1
        open_results.clear()
        if not answer.done():
            answer.set_result([encode_produce_response(version, topics)])

    timer = loop.call_later(timeout_ms / 1000, finish)
    for partition, offset, result in waiting:
        partition.committed.add(offset, partial(settle, result))
    return answer
