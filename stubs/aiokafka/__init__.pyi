from asyncio import Future
from collections.abc import Sequence
from typing import Any, NamedTuple

class TopicPartition(NamedTuple):
    topic: str
    partition: int

class RecordMetadata(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int | None

class OffsetAndTimestamp(NamedTuple):
    offset: int
    timestamp: int

class ConsumerRecord:
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

class ConsumerRebalanceListener:
    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None: ...
    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None: ...

class AIOKafkaProducer:
    def __init__(self, **configs: Any) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> Future[RecordMetadata]: ...

class AIOKafkaConsumer:
    def __init__(self, *topics: str, **configs: Any) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def subscribe(
        self, topics: Sequence[str], listener: ConsumerRebalanceListener | None = None
    ) -> None: ...
    async def getmany(
        self, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]: ...
    async def commit(self) -> None: ...
    async def offsets_for_times(
        self, timestamps: dict[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]: ...
