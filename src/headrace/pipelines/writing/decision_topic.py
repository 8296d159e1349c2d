"""The decision topic `__headrace_sink_decisions` of a cluster: created on first use, read to its end, written in transactions.

It owns how far this process has read. A decision is written in a transaction of the sink's own transactional id, so that of two
processes that commit the same batch only one can decide it: taking the id fences the other. What decisions mean is `decisions`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from headrace.client.admin.admin import Admin
from headrace.client.admin.configs import ResourceType, describe_configs
from headrace.client.admin.partitions import (
    READ_UNCOMMITTED,
    FoundOffset,
    OffsetSpec,
    list_offsets_at,
)
from headrace.client.admin.topics import BROKER_DEFAULT, create_topic, describe_topics
from headrace.client.idempotent_producer import IdempotentProducer, ProduceSettings
from headrace.client.leaders import Leaders
from headrace.client.partition_fetch import READ_COMMITTED, FetchSettings, PartitionFetch
from headrace.client.transaction_coordinator import (
    OpenTransaction,
    TransactionCoordinator,
    TransactionFailed,
)
from headrace.ids import TopicPartition
from headrace.pipelines.writing.decisions import (
    Decision,
    DecisionLog,
    SinkState,
    completed_record,
    decision_record,
)
from headrace.records.batch_builder import append_record
from headrace.records.batch_reader import Record
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, Refused

DECISION_TOPIC: Final = "__headrace_sink_decisions"
_PARTITIONS: Final = 16
_DECIDING_TIMEOUT_MS: Final = 60_000
# As the cluster keeps its transactions. Small segments, because only closed ones are compacted.
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 * 1024 * 1024),
    "max.message.bytes": str(8 * 1024 * 1024),  # a decision of some fifty thousand tasks
}
_TRANSACTION_TOPIC: Final = "__transaction_state"
_MIN_ISR: Final = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class _OneRecord:
    """`client.idempotent_producer.RecordRun` of one record."""

    payload: bytes
    record_count: int = 1

    def halves(self) -> list[_OneRecord]:
        return [self]


class DecisionTopic:
    """Reads and writes decisions. Used by one thread."""

    def __init__(self, admin: Admin, leaders: Leaders, coordinator: TransactionCoordinator) -> None:
        self._admin = admin
        self._leaders = leaders
        self._coordinator = coordinator
        self._partition_count = 0
        self._logs: dict[TopicPartition, DecisionLog] = {}

    def close(self) -> None:
        self._leaders.close()

    def state_of(self, sink_id: str) -> SinkState:
        """The sink's state, as it is in the topic now. Raises Refused or FetchFailed."""
        partition = self._partition_of(sink_id)
        if partition is None:
            return SinkState()
        log = self._logs.get(partition)
        if log is None:
            log = DecisionLog()
            log.position = self._offset(partition, OffsetSpec.EARLIEST)
            stable = self._offset(partition, OffsetSpec.LATEST, isolation_level=READ_COMMITTED)
            self._read(partition, log)
            log.settle(stable)
            self._logs[partition] = log
        else:
            self._read(partition, log)
        return log.state_of(sink_id)

    def take(self, sink_id: str) -> OpenTransaction:
        """Become the only process that may decide for a sink. Raises TransactionFailed."""
        taken = self._coordinator.begin(
            f"headrace-{sink_id}-decision", timeout_ms=_DECIDING_TIMEOUT_MS
        )
        if isinstance(taken, Refusal):
            raise TransactionFailed(
                f"nothing can be decided for {sink_id}: {taken.error_code.name}: {taken.text}"
            )
        return taken

    def decide(self, sink_id: str, decision: Decision, taken: OpenTransaction) -> None:
        """Write a decision. Raises ProduceFailed or TransactionFailed: then it may be written or not."""
        self._write(sink_id, decision_record(sink_id, decision), taken)
        refusal = self._coordinator.end(taken, commit=True)
        if refusal is not None:
            raise TransactionFailed(
                f"the decision on batch {decision.batch_id} of {sink_id} is not confirmed:"
                f" {refusal.error_code.name}: {refusal.text}"
            )

    def complete(self, sink_id: str, batch_id: int) -> None:
        """Write that all transactions of a batch are confirmed. Raises ProduceFailed."""
        self._write(sink_id, completed_record(sink_id, batch_id), None)

    def create(self) -> None:
        """Create the topic where there is none. Raises Refused."""
        if self._partition_count or self._count_partitions():
            return
        replication, min_isr = self._as_transactions_are_kept()
        try:
            create_topic(
                self._admin,
                DECISION_TOPIC,
                partitions=_PARTITIONS,
                replication_factor=replication,
                configs=_CONFIGS | min_isr,
            )
        except Refused as refused:
            if refused.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        patience = self._leaders.time.patience(30)
        while not self._count_partitions():
            if patience.is_over():
                raise TransactionFailed(
                    f"{DECISION_TOPIC} was created and is not to be seen, for 30 s"
                )
            patience.pause()

    def _as_transactions_are_kept(self) -> tuple[int, dict[str, str]]:
        """Replication factor and minimum ISR of the transaction log, which the tasks' transactions have made the cluster create."""
        described = describe_topics(self._admin, [_TRANSACTION_TOPIC])[_TRANSACTION_TOPIC]
        if isinstance(described, Refusal):
            return BROKER_DEFAULT, {}
        configs = describe_configs(self._admin, ResourceType.TOPIC, [_TRANSACTION_TOPIC])
        found = configs[_TRANSACTION_TOPIC]
        min_isr = {
            each.name: each.value
            for each in ([] if isinstance(found, Refusal) else found)
            if each.name == _MIN_ISR and each.value is not None
        }
        return len(described.partitions[0].replicas), min_isr

    def _count_partitions(self) -> int:
        view = self._leaders.topics([DECISION_TOPIC]).get(DECISION_TOPIC)
        self._partition_count = 0 if view is None else len(view.leaders)
        return self._partition_count

    def _partition_of(self, sink_id: str) -> TopicPartition | None:
        if not self._partition_count and not self._count_partitions():
            return None
        # Not the number that the topic has now: a sink's records must be found where they were written.
        return TopicPartition(DECISION_TOPIC, crc32(sink_id.encode()) % _PARTITIONS)

    def _offset(
        self, partition: TopicPartition, spec: int, *, isolation_level: int = READ_UNCOMMITTED
    ) -> int:
        found = list_offsets_at(self._admin, {partition: spec}, isolation_level=isolation_level)[
            partition
        ]
        if not isinstance(found, FoundOffset):
            raise Refused.of(found)
        return found.offset

    def _read(self, partition: TopicPartition, log: DecisionLog) -> None:
        end = self._offset(partition, OffsetSpec.LATEST)
        fetch = PartitionFetch(self._leaders, partition, settings=FetchSettings())
        for chunk in fetch.chunks(log.position, end):
            log.feed(chunk.records)

    def _write(
        self, sink_id: str, record: tuple[bytes, bytes], transaction: OpenTransaction | None
    ) -> None:
        partition = self._partition_of(sink_id)
        assert partition is not None, "created before"
        key, value = record
        payload = bytearray()
        append_record(payload, Record(0, 0, key, value), 0, 0)
        now_ms = time.time_ns() // 1_000_000
        producer = IdempotentProducer(
            self._leaders,
            # Without a transaction the record may be written twice, which means the same as once.
            ProduceSettings(idempotent=transaction is not None),
            transaction=transaction,
            coordinator=self._coordinator,
        )
        producer.send([(partition, _OneRecord(bytes(payload)))], now_ms)
        producer.flush(now_ms)
