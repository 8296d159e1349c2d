"""Produce (0), versions 3-13: batches for partitions.

v5 log start offset · v7 zstd · v8 per-record errors · v9 flexible · v10 current leader (KIP-951) · v13 topic ids.
Advertised from 0 on, as Kafka does: older librdkafka switches compression off without it. 0-2 are refused.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, CORRUPT_MESSAGE,
INVALID_RECORD, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, OUT_OF_ORDER_SEQUENCE_NUMBER, NOT_ENOUGH_REPLICAS, …
acks=all and an ISR that becomes too small after the append: as long as it is, nothing is committed (KIP-966), so that the
answer is that of the time-out, unless the ISR grows again before. NOT_ENOUGH_REPLICAS_AFTER_APPEND if it is committed all the same.
Batches in flight behind one that was refused are refused with it: `refused_batches`.
Left out: transactions.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from headrace.broker.clock import Clock
from headrace.broker.cluster_view import ClusterView
from headrace.broker.long_work import LongWork
from headrace.broker.partition_lookup import missing
from headrace.broker.refused_batches import RefusedBatches, TopicKey
from headrace.broker.request import RequestContext
from headrace.broker.traffic import UNKNOWN_TOPIC, Traffic
from headrace.errors import MalformedMessage
from headrace.ids import INTERNAL_TOPICS
from headrace.log.append_check import OPEN_FIRST, Opened
from headrace.log.append_result import Appended, Refused
from headrace.log.record_check import check_steps
from headrace.log.steps import Steps
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    read_header,
)
from headrace.records.compression import Codec
from headrace.replication.partition import NOT_LEADER, Partition
from headrace.replication.partition_table import PartitionTable
from headrace.wire.codec import Piece
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    ProduceRequest,
    TopicProduceData,
)
from headrace.wire.produce_response_codec import (
    FIRST_WITH_IDS,
    ProduceErrorDetails,
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)

ADVERTISED_FROM: Final = 0
_ADMIN_CLIENT: Final = "__admin_client"  # Kafka lets its own tools write to internal topics
_FIRST_WITH_ZSTD: Final = 7
_KNOWN_ACKS: Final = (-1, 0, 1)
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

Answered: TypeAlias = "list[Piece] | asyncio.Future[list[Piece]] | None"
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
    long_work: LongWork,
) -> "Answered | Coroutine[Any, Any, list[Piece] | None]":
    call = _Produce(request, context, partitions, cluster, traffic, clock())
    topics: list[ProduceTopicResult] = []
    for topic in request.topic_data:
        name = topic.name
        if context.version >= FIRST_WITH_IDS:
            name = partitions.topic_name(topic.topic_id) or _known_name(cluster, topic.topic_id)
        call.turn_to(name, topic_key(topic, context.version))
        results = [call.append(ask.index, ask.records) for ask in topic.partition_data]
        topics.append(ProduceTopicResult(topic.name, topic.topic_id, results))
    if call.unopened:
        return _when_opened(call, request, context.version, topics, long_work, clock)
    return _answer(call, request, context.version, topics)


async def _when_opened(
    call: "_Produce",
    request: ProduceRequest,
    version: int,
    topics: list[ProduceTopicResult],
    long_work: LongWork,
    clock: Clock,
) -> list[Piece] | None:
    """Append what takes long to open, and answer. The connection's next request waits meanwhile: order is kept."""
    for unopened in call.unopened:
        log, now_ms = unopened.partition.log, clock()
        opened = Opened(log.config, await long_work.run(unopened.steps(now_ms)))
        while opened.config is not log.config:
            opened = Opened(log.config, await long_work.run(unopened.steps(now_ms)))
        outcome = call.append_opened(unopened, opened, now_ms)
        topics = [
            topic._replace(
                partitions=[
                    outcome if each is unopened.result else each for each in topic.partitions
                ]
            )
            for topic in topics
        ]
    answered = _answer(call, request, version, topics)
    return await answered if isinstance(answered, asyncio.Future) else answered


def _answer(
    call: "_Produce", request: ProduceRequest, version: int, topics: list[ProduceTopicResult]
) -> Answered:
    if request.acks == 0:
        if call.has_failed:
            raise MalformedMessage("acks=0 and an error: closing is the only way to tell")
        return None
    if call.waiting:
        return when_committed(
            call.waiting, request.timeout_ms, version, topics, call.refused_batches
        )
    return [encode_produce_response(version, topics)]


class Uncommitted(NamedTuple):
    """A batch that stands in the log up to `next_offset`, and its place in the answer."""

    partition: Partition
    next_offset: int
    result: ProducePartitionResult
    topic_key: TopicKey
    header: BatchHeader


class _Unopened(NamedTuple):
    """A batch that the log wants opened first, and its place in the answer."""

    topic: str
    topic_key: TopicKey
    partition: Partition
    records: memoryview
    header: BatchHeader
    result: ProducePartitionResult

    def steps(self, now_ms: int) -> Steps[bytearray | Refused | None]:
        log = self.partition.log
        return check_steps(self.records, self.header, log.config, now_ms, log.topic_partition)


class _Produce:
    """One request on its way through the partitions, topic by topic."""

    __slots__ = (
        "_acks",
        "_cluster",
        "_counters",
        "_hosted",
        "_may_write_internal",
        "_now_ms",
        "_partitions",
        "_topic",
        "_topic_key",
        "_traffic",
        "_transactional_id",
        "_version",
        "has_failed",
        "refused_batches",
        "unopened",
        "waiting",
    )

    def __init__(
        self,
        request: ProduceRequest,
        context: RequestContext,
        partitions: PartitionTable,
        cluster: ClusterView,
        traffic: Traffic,
        now_ms: int,
    ) -> None:
        self._acks = request.acks
        self._transactional_id = request.transactional_id
        self._version = context.version
        self._may_write_internal = context.client_id == _ADMIN_CLIENT
        self._partitions = partitions
        self._cluster = cluster
        self._traffic = traffic
        self._now_ms = now_ms
        self.has_failed = False
        self.refused_batches = context.connection.refused_batches
        self.unopened: list[_Unopened] = []
        self.waiting: list[Uncommitted] = []

    def turn_to(self, topic: str, key: TopicKey) -> None:
        """The appends that follow are for this topic."""
        self._topic, self._topic_key = topic, key
        self._hosted = self._partitions.of_topic(topic) or {}
        self._counters = self._traffic.of(topic if self._hosted else UNKNOWN_TOPIC)

    def append(self, index: int, records: Records) -> ProducePartitionResult:
        """Give one partition its batch."""
        counters = self._counters
        counters.produce_requests += 1
        header = self._header_of(records)
        if isinstance(header, Refused):
            return self._fail(index, header)
        if header is not None and self.refused_batches:
            refused = self.refused_batches.refusal_of(self._topic_key, index, header)
            if refused is not None:
                return self._fail(index, refused)
        partition = self._hosted.get(index)
        if partition is None:
            refused = self._missing(index)
            if header is not None:
                self.refused_batches.add(self._topic_key, index, header, refused)
            return self._fail(index, refused)
        if self._topic in INTERNAL_TOPICS and not self._may_write_internal:
            text = f"{self._topic} is an internal topic"
            return self._fail(index, Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, text))
        assert isinstance(records, memoryview)
        appended = partition.append(records, acks=self._acks, now_ms=self._now_ms, header=header)
        if appended is OPEN_FIRST and header is not None:
            result = ProducePartitionResult(index, 0)
            self.unopened.append(
                _Unopened(self._topic, self._topic_key, partition, records, header, result)
            )
            return result
        return self._appended(index, partition, header, appended)

    def append_opened(
        self, unopened: _Unopened, opened: Opened, now_ms: int
    ) -> ProducePartitionResult:
        """Give a partition a batch that has been opened."""
        topic, key, partition, records, header, result = unopened
        self.turn_to(topic, key)
        appended = partition.append(
            records, acks=self._acks, now_ms=now_ms, header=header, opened=opened
        )
        return self._appended(result.index, partition, header, appended)

    def _appended(
        self,
        index: int,
        partition: Partition,
        header: BatchHeader | None,
        appended: Appended | Refused,
    ) -> ProducePartitionResult:
        counters = self._counters
        if isinstance(appended, Refused):
            if header is not None:
                appended = self._refused(index, partition, header, appended)
            failure = self._fail(index, appended)
            if appended.error_code not in _WITHOUT_LOG_START:
                failure.log_start_offset = partition.log.log_start_offset
            return failure
        base_offset, last_offset, log_append_time_ms, is_duplicate = appended
        result = ProducePartitionResult(
            index, 0, base_offset, log_append_time_ms, partition.log.log_start_offset
        )
        assert header is not None, "the log refuses what has no header"
        if not is_duplicate:
            counters.bytes_in += header.size
            counters.messages_in += last_offset - base_offset + 1
        if self._acks == -1 and partition.high_watermark <= last_offset:
            self.waiting.append(
                Uncommitted(partition, last_offset + 1, result, self._topic_key, header)
            )
        return result

    def _refused(
        self, index: int, partition: Partition, header: BatchHeader, refused: Refused
    ) -> Refused:
        """Remember a batch that its partition has refused. Returns what to answer."""
        if (
            refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            and partition.is_behind_gap_of_leader_change(header)
        ):
            refused = self.refused_batches.pass_over_gap(self._topic_key, index, header, refused)
        self.refused_batches.add(self._topic_key, index, header, refused)
        return refused

    def _header_of(self, records: Records) -> BatchHeader | Refused | None:
        """The batch's header; None if there is not even that, which the log refuses."""
        if self._acks not in _KNOWN_ACKS:
            text = f"acks={self._acks} is none of -1, 0, 1"
            return Refused(ErrorCode.INVALID_REQUIRED_ACKS, text)
        if not records:
            return Refused(ErrorCode.INVALID_RECORD, "exactly one record batch is needed")
        if len(records) < HEADER_BYTES:
            return None
        header = read_header(records)
        if header.magic != MAGIC or header.length + LOG_OVERHEAD != len(records):
            return Refused(ErrorCode.INVALID_RECORD, "exactly one whole record batch is needed")
        if 0 <= header.attributes < Codec.ZSTD:  # a codec every version may use, nothing else
            return header
        return self._refuse_attributes(header) or header

    def _refuse_attributes(self, header: BatchHeader) -> Refused | None:
        if header.codec == Codec.ZSTD and self._version < _FIRST_WITH_ZSTD:
            return Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs version 7 or later")
        if header.is_transactional and self._transactional_id is None:
            return Refused(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transaction without an id"
            )
        if header.is_transactional:
            return Refused(ErrorCode.INVALID_TXN_STATE, "transactions are not offered")
        return None

    def _missing(self, index: int) -> Refused:
        if not self._topic and self._version >= FIRST_WITH_IDS:
            return Refused(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        return missing(self._cluster, self._topic, index)

    def _fail(self, index: int, refused: Refused) -> ProducePartitionResult:
        self.has_failed = True
        self._counters.failed_produce_requests += 1
        return _refusal(index, refused, self._cluster, self._topic)


def topic_key(topic: TopicProduceData, version: int) -> TopicKey:
    """What a request of this version names a topic by."""
    return topic.topic_id if version >= FIRST_WITH_IDS else topic.name


def _known_name(cluster: ClusterView, topic_id: UUID) -> str:
    topic = cluster.state.topics_by_id.get(topic_id)
    return "" if topic is None else topic.name


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


def when_committed(
    waiting: list[Uncommitted],
    timeout_ms: int,
    version: int,
    topics: list[ProduceTopicResult],
    refused_batches: RefusedBatches,
) -> "asyncio.Future[list[Piece]]":
    """The answer once every batch is on all in-sync replicas, or the time is up."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Piece]] = loop.create_future()
    open_results = {id(batch.result): batch.result for batch in waiting}

    def settle(batch: Uncommitted, is_committed: bool) -> None:  # noqa: FBT001 (a callback's form)
        partition, _, result, key, header = batch
        if open_results.pop(id(result), None) is None:
            return
        leader = partition.leader
        if not is_committed or leader is None:
            result.error_code, result.base_offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
            refused_batches.add(key, result.index, header, NOT_LEADER)
        elif leader.is_under_min_isr:
            result.error_code, result.base_offset = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1
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
    for batch in waiting:
        batch.partition.committed.add(batch.next_offset, partial(settle, batch))
    return answer
