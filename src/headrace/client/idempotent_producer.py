"""Writes record batches so that a repeated request never doubles a record, blocking, one request per leader under way.

It owns a producer id and the next sequence of every partition. The order of a partition's runs is kept: the next one is sent
when the last one is acknowledged. With an `OpenTransaction` the records are part of that transaction, which is ended elsewhere
(`transaction_coordinator`): nothing here commits or aborts. After any error it is of no more use, because nobody knows which sequences arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, Self, cast
from uuid import UUID

from headrace.client.cluster_metadata import NO_LEADER, TopicView
from headrace.client.exchange import Disconnected, highest_common_version
from headrace.client.leaders import Leaders
from headrace.client.retries import passes_for_writer
from headrace.client.transaction_coordinator import (
    LAST_PRODUCE_WITHOUT_ADD,
    OpenTransaction,
    TransactionCoordinator,
)
from headrace.errors import HeadraceError
from headrace.ids import NO_LEADER_EPOCH, NO_PRODUCER_ID, NO_TOPIC_ID, TopicPartition
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    NO_SEQUENCE,
    BatchHeader,
    attributes_of,
    pack_header,
    renew_crc,
    sequence_after,
)
from headrace.records.compression import compress
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

if TYPE_CHECKING:
    from headrace.client.connection import Connection

TOPIC_PATIENCE_S: Final = 5.0
ACKS_ALL: Final = -1

_DONE: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class ProduceFailed(HeadraceError):
    """Records could not be written."""


class RecordRun(Protocol):
    """Consecutive records for one partition, in the format of a batch's inside, with offsets counted from zero."""

    @property
    def record_count(self) -> int: ...

    @property
    def payload(self) -> bytes | memoryview: ...

    def halves(self) -> Sequence[Self]:
        """The same records in smaller runs; just itself where there is one record."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceSettings:
    """How records are written."""

    codec: int = 0
    compression_level: int | None = None
    acks: int = ACKS_ALL
    idempotent: bool = True
    request_timeout_ms: int = 30_000
    give_up_after_s: float = 120.0
    metadata_max_age_s: float = (
        1.0  # added partitions are noticed after it; all producers of a query must agree on them
    )


@dataclass(slots=True)
class _Lane:
    """What one partition still has to get."""

    runs: deque[RecordRun] = field(default_factory=deque)
    next_sequence: int = 0
    batch: bytes | None = None  # the first run as it was sent: a retry must send the same bytes


class IdempotentProducer:
    """Writes runs of records. Not to be used again after an error."""

    def __init__(
        self,
        leaders: Leaders,
        settings: ProduceSettings,
        *,
        transaction: OpenTransaction | None = None,
        coordinator: TransactionCoordinator | None = None,
    ) -> None:
        """`coordinator` is needed for a `transaction` whose partitions are not added implicitly."""
        self._leaders = leaders
        self._settings = settings
        self._transaction = transaction
        self._coordinator = coordinator
        self._added: set[TopicPartition] = set()
        self._lanes: dict[TopicPartition, _Lane] = {}
        self._producer_id: int = NO_PRODUCER_ID
        self._producer_epoch = -1
        if transaction is not None:
            self._producer_id = transaction.producer_id
            self._producer_epoch = transaction.producer_epoch
        self._under_way: list[tuple[Connection, list[TopicPartition]]] = []
        self._patience = leaders.time.patience(settings.give_up_after_s)

    def close(self) -> None:
        self._leaders.close()

    def topic(self, name: str) -> TopicView:
        """A topic, created where the cluster creates topics on their first use. Raises ProduceFailed."""
        known = self._newest(name)
        patience = self._leaders.time.patience(TOPIC_PATIENCE_S)
        while known is None or not known.leaders:
            known = self._leaders.topics([name], may_create=True).get(name)
            if known is None and patience.is_over():
                raise ProduceFailed(f"there is no topic {name} in the cluster")
            if known is None:
                patience.pause()
        return known

    def _newest(self, name: str) -> TopicView | None:
        """A topic as it was lately; as it was last seen, where no broker can be reached now."""
        try:
            return self._leaders.topic(name, max_age_s=self._settings.metadata_max_age_s)
        except Disconnected:
            return self._leaders.topic(name)

    def send(self, runs: Iterable[tuple[TopicPartition, RecordRun]], now_ms: int) -> None:
        """Queue runs and send what can be sent; earlier runs are waited for. Raises ProduceFailed."""
        self.flush(now_ms)
        self._patience = self._leaders.time.patience(self._settings.give_up_after_s)
        if self._settings.idempotent and self._producer_id == NO_PRODUCER_ID:
            self._take_producer_id()
        for partition, run in runs:
            self._lanes.setdefault(partition, _Lane()).runs.append(run)
        self._add_partitions()
        self._begin(now_ms)

    def flush(self, now_ms: int) -> None:
        """Return when everything sent is acknowledged. Raises ProduceFailed."""
        while self._under_way or any(lane.runs for lane in self._lanes.values()):
            if not self._under_way:
                self._begin(now_ms)
            self._finish()

    def _add_partitions(self) -> None:
        transaction, coordinator = self._transaction, self._coordinator
        if transaction is None or transaction.adds_implicitly:
            return
        assert coordinator is not None, "partitions have to be added"
        fresh = self._lanes.keys() - self._added
        refusal = coordinator.add_partitions(transaction, fresh) if fresh else None
        if refusal is not None:
            raise ProduceFailed(
                f"{min(fresh)} cannot be added to the transaction of {transaction.transactional_id}:"
                f" {refusal.error_code.name}: {refusal.text}"
            )
        self._added |= fresh

    def _take_producer_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        while True:
            connection = self._leaders.brokers.any()
            try:
                answer = connection.send(request)
            except Disconnected:
                self._leaders.brokers.drop(connection)
            else:
                if not answer.error_code:
                    self._producer_id = answer.producer_id
                    self._producer_epoch = answer.producer_epoch
                    return
                error = ErrorCode.of(answer.error_code)
                if not passes_for_writer(error):
                    raise ProduceFailed(f"no producer id: {error.name}: {error.message}")
            self._wait("no producer id could be had")

    def _wait(self, what: str) -> None:
        if self._patience.is_over():
            raise ProduceFailed(f"{what}, for {self._settings.give_up_after_s:g} s")
        self._patience.pause()

    def _begin(self, now_ms: int) -> None:
        """Send the next run of every partition, one request per leader."""
        of_leader: dict[int, list[TopicPartition]] = {}
        for partition, lane in self._lanes.items():
            if lane.runs:
                of_leader.setdefault(self._leaders.leader_of(partition), []).append(partition)
        nobody = of_leader.pop(NO_LEADER, [])
        for leader, partitions in of_leader.items():
            if not self._begin_at(leader, partitions, now_ms):
                nobody += partitions
        if nobody and not self._under_way:
            self._wait(f"the leader of {nobody[0]} cannot be reached")
            for partition in nobody:
                self._leaders.forget(partition.topic)

    def _begin_at(self, leader: int, partitions: list[TopicPartition], now_ms: int) -> bool:
        try:
            connection = self._leaders.brokers.to(leader)
        except Disconnected:
            return False
        by_topic: dict[str, list[PartitionProduceData]] = {}
        for partition in partitions:
            lane = self._lanes[partition]
            if lane.batch is None:
                lane.batch = self._batch(lane, now_ms)
            entry = PartitionProduceData(index=partition.partition, records=lane.batch)
            by_topic.setdefault(partition.topic, []).append(entry)
        transaction = self._transaction
        request = ProduceRequest(
            transactional_id=None if transaction is None else transaction.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[
                TopicProduceData(name=name, topic_id=self._topic_id(name), partition_data=entries)
                for name, entries in by_topic.items()
            ],
        )
        try:
            version = highest_common_version(request, connection.negotiate())
            if transaction is not None and not transaction.adds_implicitly:
                version = min(version, LAST_PRODUCE_WITHOUT_ADD)
            connection.begin(request, version)
        except Disconnected:
            self._leaders.brokers.drop(connection)
            return False
        self._under_way.append((connection, partitions))
        return True

    def _topic_id(self, name: str) -> UUID:
        view = self._leaders.topic(name)
        return view.topic_id if view is not None else NO_TOPIC_ID

    def _batch(self, lane: _Lane, now_ms: int) -> bytes:
        settings = self._settings
        run = lane.runs[0]
        packed = (
            compress(settings.codec, run.payload, settings.compression_level)
            if settings.codec
            else run.payload
        )
        header = BatchHeader(
            base_offset=0,
            length=HEADER_BYTES - LOG_OVERHEAD + len(packed),
            leader_epoch=NO_LEADER_EPOCH,
            magic=MAGIC,
            crc=0,
            attributes=attributes_of(
                codec=settings.codec, transactional=self._transaction is not None
            ),
            last_offset_delta=run.record_count - 1,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=lane.next_sequence if settings.idempotent else NO_SEQUENCE,
            record_count=run.record_count,
        )
        batch = bytearray(pack_header(header))
        batch += packed
        renew_crc(batch)
        return bytes(batch)

    def _finish(self) -> None:
        """Take the answers of what is under way."""
        moved: set[str] = set()
        waiting, self._under_way = self._under_way, []
        for connection, partitions in waiting:
            try:
                answer = cast(ProduceResponse, connection.finish())
            except Disconnected:
                self._leaders.brokers.drop(connection)
                moved |= {each.topic for each in partitions}
                continue
            names = {self._topic_id(each.topic): each.topic for each in partitions}
            for topic in answer.responses:
                name = topic.name or names[topic.topic_id]
                for each in topic.partition_responses:
                    if not self._settle(TopicPartition(name, each.index), each):
                        moved.add(name)
        if moved:
            self._wait(f"the leaders of {', '.join(sorted(moved))} do not take records")
            for name in moved:
                self._leaders.forget(name)

    def _settle(self, partition: TopicPartition, answer: PartitionProduceResponse) -> bool:
        """Take one partition's answer. False where the same batch has to be sent again."""
        lane = self._lanes[partition]
        error = ErrorCode.of(answer.error_code)
        if error in _DONE:
            run = lane.runs.popleft()
            lane.next_sequence = sequence_after(lane.next_sequence, run.record_count)
            lane.batch = None
            return True
        if error in _TOO_LARGE and lane.runs[0].record_count > 1:
            lane.runs.extendleft(reversed(lane.runs.popleft().halves()))
            lane.batch = None
            return True
        if passes_for_writer(error):
            return False
        raise ProduceFailed(f"{partition}: {error.name}: {answer.error_message or error.message}")
