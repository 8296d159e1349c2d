"""Produce (0), versions 3-13: batches for partitions.

v5 log start offset · v7 zstd · v8 per-record errors · v9 flexible · v10 current leader (KIP-951) · v13 topic ids.
Advertised from 0 on, as Kafka does: older librdkafka switches compression off without it. 0-2 are refused.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER, CORRUPT_MESSAGE,
INVALID_RECORD, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, OUT_OF_ORDER_SEQUENCE_NUMBER, NOT_ENOUGH_REPLICAS, …
acks=all and an ISR that becomes too small after the append: as long as it is, nothing is committed (KIP-966), so that the
answer is that of the time-out, unless the ISR grows again before. NOT_ENOUGH_REPLICAS_AFTER_APPEND if it is committed all the same.
Batches in flight behind one that was refused are refused with it: `refused_batches`.
Kafka opens every batch. Here, the first records of each connection are opened, so that a producer that encodes them wrongly is told so
by its first request; the later ones only where their topic asks for it.
A batch of a transaction that is not open in its partition waits for the transaction's coordinator, and the connection's next request
behind it (KIP-890): `txn_verification`. From version 12 on the coordinator adds the partition to the transaction by that.
Errors of transactions: INVALID_TXN_STATE (TRANSACTION_ABORTABLE from version 11 on), INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING,
CONCURRENT_TRANSACTIONS from version 12 on, TRANSACTIONAL_ID_AUTHORIZATION_FAILED without a transactional id. What passes by itself
is NOT_ENOUGH_REPLICAS, which every producer retries.
"""

from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.net.refused_batches import TopicKey
from headrace.broker.replicas.partition_lookup import missing
from headrace.broker.requests.fast_path import FastPath
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.produce_append import append_batches, note_unacknowledged
from headrace.broker.requests.produce_fast_path import ProduceFastPath
from headrace.broker.requests.produce_form import topic_key
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.requests.txn_verification import (
    Errors,
    TxnProducer,
    TxnSupport,
    TxnVerification,
    of_produce,
    produce_error,
)
from headrace.broker.telemetry.traffic import UNKNOWN_TOPIC, Traffic
from headrace.clock import Clock
from headrace.errors import MalformedMessage
from headrace.internal_topics import INTERNAL_TOPICS
from headrace.log.append_check import OPEN_FIRST, Opened
from headrace.log.append_result import Appended
from headrace.log.producers.producer_state import NOT_VERIFIED, Verification
from headrace.log.record_check import check_steps, fault_among_first
from headrace.log.steps import Steps
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    read_header,
)
from headrace.records.compression import Codec
from headrace.replication.completion import Completion
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
from headrace.wire.refusal import Refusal

ADVERTISED_FROM: Final = 0
_ADMIN_CLIENT: Final = "__admin_client"  # Kafka lets its own tools write to internal topics
_FIRST_WITH_ZSTD: Final = 7
_KNOWN_ACKS: Final = (-1, 0, 1)
_FIRST_RECORDS: Final = 500  # of a connection's first request, which are opened
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

Answered: TypeAlias = list[Piece] | Completion | None
Records = bytes | memoryview | None
"""A view of the request's frame; the other types are for messages made by hand."""


def fast_path(*, partitions: PartitionTable, traffic: Traffic, clock: Clock) -> FastPath:
    """For producers that send one request like the other."""
    return ProduceFastPath(partitions, traffic, clock)


def handle(
    request: ProduceRequest,
    context: RequestContext,
    *,
    partitions: PartitionTable,
    cluster: ClusterView,
    traffic: Traffic,
    clock: Clock,
    long_work: LongWork,
    txn_verification: TxnVerification,
) -> "Answered | Coroutine[Any, Any, Answered]":
    call = _Produce(request, context, partitions, cluster, traffic, clock(), txn_verification)
    topics: list[ProduceTopicResult] = []
    for topic in request.topic_data:
        name = topic.name
        if context.version >= FIRST_WITH_IDS:
            name = partitions.topic_name(topic.topic_id) or _known_name(cluster, topic.topic_id)
        call.turn_to(name, topic_key(topic, context.version))
        results = [call.append(ask.index, ask.records) for ask in topic.partition_data]
        topics.append(ProduceTopicResult(topic.name, topic.topic_id, results))
    if call.unverified:
        return _when_verified(call, request, context.version, topics, long_work, clock)
    if call.unopened:
        return _when_opened(call, request, context.version, topics, long_work, clock)
    return _answer(call, request, context.version, topics)


async def _when_verified(
    call: "_Produce",
    request: ProduceRequest,
    version: int,
    topics: list[ProduceTopicResult],
    long_work: LongWork,
    clock: Clock,
) -> Answered:
    """Append what the transaction's coordinator agrees to, and answer. The connection's next request waits meanwhile."""
    errors = await call.verify()
    for unverified in call.unverified:
        error = errors.get(unverified.partition.topic_partition)
        outcome = call.append_verified(unverified, error, clock())
        topics = _with_result(topics, unverified.result, outcome)
    return await _when_opened(call, request, version, topics, long_work, clock)


async def _when_opened(
    call: "_Produce",
    request: ProduceRequest,
    version: int,
    topics: list[ProduceTopicResult],
    long_work: LongWork,
    clock: Clock,
) -> Answered:
    """Append what takes long to open, and answer. The connection's next request waits meanwhile: order is kept."""
    for unopened in call.unopened:
        log, now_ms = unopened.partition.log, clock()
        opened = Opened(log.config, await long_work.run(unopened.steps(now_ms)))
        while opened.config is not log.config:
            opened = Opened(log.config, await long_work.run(unopened.steps(now_ms)))
        outcome = call.append_opened(unopened, opened, now_ms)
        topics = _with_result(topics, unopened.result, outcome)
    return _answer(call, request, version, topics)


def _with_result(
    topics: list[ProduceTopicResult], before: ProducePartitionResult, after: ProducePartitionResult
) -> list[ProduceTopicResult]:
    return [
        topic._replace(partitions=[after if each is before else each for each in topic.partitions])
        for topic in topics
    ]


def _answer(
    call: "_Produce", request: ProduceRequest, version: int, topics: list[ProduceTopicResult]
) -> Answered:
    if request.acks == 0:
        if call.has_failed:
            raise MalformedMessage("acks=0 and an error: closing is the only way to tell")
        return None
    if not call.uncommitted:
        return [encode_produce_response(version, topics)]
    completion = Completion(
        lambda: [encode_produce_response(version, topics)], timeout_s=request.timeout_ms / 1000
    )
    for batch in call.uncommitted:
        # Other batches of the request may have taken long to open since this one was appended.
        completion.add(
            batch.partition,
            batch.next_offset,
            partial(call.refuse_later, batch),
            leader_epoch=batch.leader_epoch,
        )
    return completion


class _Uncommitted(NamedTuple):
    """A batch that was appended in this leader epoch, up to `next_offset`, and its place in the answer."""

    partition: Partition
    leader_epoch: int
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
    verified: Verification | None

    def steps(self, now_ms: int) -> Steps[bytearray | Refusal | None]:
        log = self.partition.log
        return check_steps(self.records, self.header, log.config, now_ms, log.topic_partition)


class _Unverified(NamedTuple):
    """A batch of a transaction that is not open in the partition, and its place in the answer."""

    topic: str
    topic_key: TopicKey
    partition: Partition
    records: memoryview
    header: BatchHeader
    result: ProducePartitionResult


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
        "_txn_producer",
        "_unproven_records",
        "_verification",
        "_verifications",
        "_version",
        "has_failed",
        "refused_batches",
        "uncommitted",
        "unopened",
        "unverified",
    )

    def __init__(
        self,
        request: ProduceRequest,
        context: RequestContext,
        partitions: PartitionTable,
        cluster: ClusterView,
        traffic: Traffic,
        now_ms: int,
        verification: TxnVerification,
    ) -> None:
        self._acks = request.acks
        self._transactional_id = request.transactional_id
        self._version = context.version
        self._may_write_internal = context.client_id == _ADMIN_CLIENT
        self._partitions = partitions
        self._cluster = cluster
        self._traffic = traffic
        self._now_ms = now_ms
        self._verification = verification
        self._txn_producer: TxnProducer | None = None
        self.has_failed = False
        self._unproven_records = 0 if context.connection.has_produced else _FIRST_RECORDS
        context.connection.has_produced = True
        self.refused_batches = context.connection.refused_batches
        self.unopened: list[_Unopened] = []
        self.unverified: list[_Unverified] = []
        self._verifications: list[Verification | None] = []  # of the unverified
        self.uncommitted: list[_Uncommitted] = []

    def turn_to(self, topic: str, key: TopicKey) -> None:
        """The appends that follow are for this topic."""
        self._topic, self._topic_key = topic, key
        self._hosted = self._partitions.of_topic(topic) or {}
        self._counters = self._traffic.of(topic if self._hosted else UNKNOWN_TOPIC)

    def append(self, index: int, records: Records) -> ProducePartitionResult:
        """Give one partition its batch."""
        header = self._header_of(records)
        if isinstance(header, Refusal):
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
            return self._fail(index, Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, text))
        assert isinstance(records, memoryview)
        if header is not None:
            fault = self._refuse_before_append(index, partition, records, header)
            if fault is not None:
                return self._appended(index, partition, header, fault)
            if _may_open_txn(header) and partition.is_leader:
                return self._append_transactional(index, partition, records, header)
        return self._append(index, partition, records, header)

    def _append(
        self,
        index: int,
        partition: Partition,
        records: memoryview,
        header: BatchHeader | None,
        verified: Verification | None = None,
    ) -> ProducePartitionResult:
        appended = append_batches(
            partition,
            (records,),
            () if header is None else (header,),
            self._acks,
            self._now_ms,
            self._counters,
            verified=verified,
        )
        if appended is OPEN_FIRST and header is not None:
            result = ProducePartitionResult(index, 0)
            self.unopened.append(
                _Unopened(
                    self._topic, self._topic_key, partition, records, header, result, verified
                )
            )
            return result
        return self._appended(index, partition, header, appended)

    # ---- transactions

    def _append_transactional(
        self, index: int, partition: Partition, records: memoryview, header: BatchHeader
    ) -> ProducePartitionResult:
        """Append a batch of a transaction that is open in the partition, or have it wait for its verification."""
        producer = TxnProducer(
            self._transactional_id or "", header.producer_id, header.producer_epoch
        )
        if self._txn_producer not in (None, producer):
            text = "transactional batches of several producers in one request"
            return self._fail(index, Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING, text))
        self._txn_producer = producer
        if not self._verification.is_needed(of_produce(self._version)):
            return self._append(index, partition, records, header, NOT_VERIFIED)
        if partition.log.producers.has_open_txn(header.producer_id, header.producer_epoch):
            return self._append(index, partition, records, header)
        result = ProducePartitionResult(index, 0)
        self.unverified.append(
            _Unverified(self._topic, self._topic_key, partition, records, header, result)
        )
        return result

    def _begin_verification(self) -> None:
        is_implicit = of_produce(self._version) is TxnSupport.IMPLICIT
        self._verifications = [
            each.partition.log.producers.verification(
                each.header.producer_id,
                each.header.producer_epoch,
                each.header.base_sequence,
                self._now_ms,
                is_implicit=is_implicit,
            )
            for each in self.unverified
        ]

    async def verify(self) -> Errors:
        """Ask the transaction's coordinator about everything that waits for it."""
        assert self._txn_producer is not None
        partitions = [each.partition.topic_partition for each in self.unverified]
        support = of_produce(self._version)
        errors = await self._verification.verify(
            self._txn_producer, partitions, support, self._begin_verification
        )
        return {each: produce_error(error, support) for each, error in errors.items()}

    def append_verified(
        self, unverified: _Unverified, error: ErrorCode | None, now_ms: int
    ) -> ProducePartitionResult:
        """Give a partition a batch whose transaction is verified, unless it was found not to be open (`error`). In their order."""
        topic, key, partition, records, header, result = unverified
        verification = self._verifications.pop(0)
        self.turn_to(topic, key)
        self._now_ms = now_ms
        if error is None:
            return self._append(result.index, partition, records, header, verification)
        refused = Refusal(error, "the partition could not be verified to be in the transaction")
        self.refused_batches.add(key, result.index, header, refused)
        return self._fail(result.index, refused)

    # ---- records

    def _fault(
        self, partition: Partition, records: memoryview, header: BatchHeader
    ) -> Refusal | None:
        """What is wrong with the first records of a connection."""
        count = min(self._unproven_records, header.record_count)
        self._unproven_records -= max(0, count)
        log = partition.log
        return fault_among_first(records, header, count, log.config, log.topic_partition)

    def _refuse_before_append(
        self, index: int, partition: Partition, records: memoryview, header: BatchHeader
    ) -> Refusal | None:
        """Why a batch is not given to the log: its records are faulty, or others are missing before it."""
        fault = self._fault(partition, records, header) if self._unproven_records else None
        if fault is None and partition.is_overtaking(header):
            return self.refused_batches.refuse_overtaking(
                self._topic_key, index, header, partition.leader_epoch
            )
        return fault

    def append_opened(
        self, unopened: _Unopened, opened: Opened, now_ms: int
    ) -> ProducePartitionResult:
        """Give a partition a batch that has been opened."""
        topic, key, partition, records, header, result, verified = unopened
        self.turn_to(topic, key)
        appended = append_batches(
            partition,
            (records,),
            (header,),
            self._acks,
            now_ms,
            self._counters,
            opened,
            verified,
        )
        return self._appended(result.index, partition, header, appended)

    def _appended(
        self,
        index: int,
        partition: Partition,
        header: BatchHeader | None,
        appended: Appended | Refusal,
    ) -> ProducePartitionResult:
        if isinstance(appended, Refusal):
            if header is not None:
                self.refused_batches.add(self._topic_key, index, header, appended)
            failure = self._fail(index, appended)
            if appended.error_code not in _WITHOUT_LOG_START:
                failure.log_start_offset = partition.log.log_start_offset
            return failure
        base_offset, last_offset, log_append_time_ms, *_ = appended
        result = ProducePartitionResult(
            index, 0, base_offset, log_append_time_ms, partition.log.log_start_offset
        )
        assert header is not None, "the log refuses what has no header"
        if self._acks == -1 and partition.high_watermark <= last_offset:
            self.uncommitted.append(
                _Uncommitted(
                    partition,
                    partition.leader_epoch,
                    last_offset + 1,
                    result,
                    self._topic_key,
                    header,
                )
            )
        return result

    def refuse_later(self, batch: _Uncommitted, error_code: ErrorCode) -> None:
        """A batch that was appended is not acknowledged."""
        result = batch.result
        result.error_code, result.base_offset = error_code, -1
        note_unacknowledged(
            error_code, batch.header, batch.topic_key, result.index, self.refused_batches
        )

    def _header_of(self, records: Records) -> BatchHeader | Refusal | None:
        """The batch's header; None if there is not even that, which the log refuses."""
        if self._acks not in _KNOWN_ACKS:
            text = f"acks={self._acks} is none of -1, 0, 1"
            return Refusal(ErrorCode.INVALID_REQUIRED_ACKS, text)
        if not records:
            return Refusal(ErrorCode.INVALID_RECORD, "exactly one record batch is needed")
        if len(records) < HEADER_BYTES:
            return None
        header = read_header(records)
        if header.magic != MAGIC or header.length + LOG_OVERHEAD != len(records):
            return Refusal(ErrorCode.INVALID_RECORD, "exactly one whole record batch is needed")
        if 0 <= header.attributes < Codec.ZSTD:  # a codec every version may use, nothing else
            return header
        return self._refuse_attributes(header) or header

    def _refuse_attributes(self, header: BatchHeader) -> Refusal | None:
        if header.codec == Codec.ZSTD and self._version < _FIRST_WITH_ZSTD:
            return Refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs version 7 or later")
        if header.is_transactional and self._transactional_id is None:
            return Refusal(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transaction without an id"
            )
        return None

    def _missing(self, index: int) -> Refusal:
        if not self._topic and self._version >= FIRST_WITH_IDS:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        return missing(self._cluster, self._topic, index)

    def _fail(self, index: int, refused: Refusal) -> ProducePartitionResult:
        self.has_failed = True
        self._counters.produce_requests += 1
        self._counters.failed_produce_requests += 1
        return _refusal(index, refused, self._cluster, self._topic)


def _may_open_txn(header: BatchHeader) -> bool:
    """Whether a batch is to be verified; other transactional ones are refused by the log."""
    return header.is_transactional and header.has_producer_id and not header.is_control


def _known_name(cluster: ClusterView, topic_id: UUID) -> str:
    topic = cluster.state.topics_by_id.get(topic_id)
    return "" if topic is None else topic.name


def _refusal(
    index: int, refused: Refusal, cluster: ClusterView, topic: str
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
