from collections.abc import Sequence
from typing import Any, NamedTuple

from kafka.admin import KafkaAdminClient as KafkaAdminClient
from kafka.consumer.fetcher import ConsumerRecord

class TopicPartition(NamedTuple):
    topic: str
    partition: int

class OffsetAndMetadata(NamedTuple):
    offset: int
    metadata: str
    leader_epoch: int

class OffsetAndTimestamp(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int

class RecordMetadata(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int

class FutureRecordMetadata:
    def get(self, timeout: float | None = None) -> RecordMetadata: ...

class ConsumerRebalanceListener:
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None: ...
    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None: ...

class KafkaProducer:
    def __init__(self, **configs: Any) -> None: ...
    def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata: ...
    def flush(self, timeout: float | None = None) -> None: ...
    def close(self, timeout: float | None = None) -> None: ...

class KafkaConsumer:
    def __init__(self, *topics: str, **configs: Any) -> None: ...
    def assign(self, partitions: Sequence[TopicPartition]) -> None: ...
    def subscribe(
        self, topics: Sequence[str], listener: ConsumerRebalanceListener | None = None
    ) -> None: ...
    def partitions_for_topic(self, topic: str) -> set[int] | None: ...
    def seek_to_beginning(self, *partitions: TopicPartition) -> None: ...
    def poll(
        self, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]: ...
    def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata] | None = None) -> None: ...
    def committed(self, partition: TopicPartition) -> int | None: ...
    def offsets_for_times(
        self, timestamps: dict[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]: ...
    def beginning_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]: ...
    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]: ...
    def close(self) -> None: ...
