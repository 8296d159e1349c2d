"""aiokafka: a client on asyncio. Each call here runs a loop of its own."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from tests.conformance.clients import member_lines
from tests.conformance.clients.client import TIMEOUT_S, Refused
from tests.conformance.samples import CODECS, Received, Record


class AioKafka:
    """aiokafka."""

    name = "aiokafka"

    def codecs(self) -> tuple[str, ...]:
        return CODECS

    def writable(self, record: Record) -> Record | None:
        return None if record.key is None and record.value is None else record

    def produce(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], *, codec: str
    ) -> None:
        asyncio.run(_produce(bootstrap, topic, partition, records, codec))

    def consume(self, bootstrap: str, topic: str, count: int) -> list[Received]:
        return asyncio.run(_consume(bootstrap, topic, count))

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> list[Received]:
        return asyncio.run(_consume_in_group(bootstrap, topic, group, count))

    def offset_for_time(
        self, bootstrap: str, topic: str, partition: int, timestamp_ms: int
    ) -> int | None:
        return asyncio.run(
            _offset_for_time(bootstrap, TopicPartition(topic, partition), timestamp_ms)
        )

    def member_command(self, bootstrap: str, topic: str, group: str) -> list[str]:
        return member_lines.command(self.name, bootstrap, topic, group)

    def read_assignment(self, line: str, topic: str) -> frozenset[int] | None:
        return member_lines.read(line)


async def _produce(
    bootstrap: str, topic: str, partition: int, records: Sequence[Record], codec: str
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=50,
    )
    await producer.start()
    try:
        sent = [
            await producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        await asyncio.wait_for(asyncio.gather(*sent), TIMEOUT_S)
    except KafkaError as refused:
        raise Refused(repr(refused)) from refused
    finally:
        await producer.stop()


@asynccontextmanager
async def _consumer(
    bootstrap: str, group: str | None, *topics: str
) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def _consume(bootstrap: str, topic: str, count: int) -> list[Received]:
    async with _consumer(bootstrap, None, topic) as consumer:
        return await _take(consumer, count)


async def _consume_in_group(bootstrap: str, topic: str, group: str, count: int) -> list[Received]:
    async with _consumer(bootstrap, group, topic) as consumer:
        received = await _take(consumer, count)
        await consumer.commit()
        return received


async def _offset_for_time(bootstrap: str, wanted: TopicPartition, timestamp_ms: int) -> int | None:
    async with _consumer(bootstrap, None) as consumer:
        found = (await consumer.offsets_for_times({wanted: timestamp_ms}))[wanted]
        return None if found is None else found.offset


async def _take(consumer: AIOKafkaConsumer, count: int) -> list[Received]:
    received: list[Received] = []
    while len(received) < count:
        polled = await consumer.getmany(
            timeout_ms=int(TIMEOUT_S * 1000), max_records=count - len(received)
        )
        assert polled, f"only {len(received)} of {count} records arrived in time"
        received.extend(_received(record) for records in polled.values() for record in records)
    return received


def _received(found: ConsumerRecord) -> Received:
    record = Record(
        key=found.key, value=found.value, headers=tuple(found.headers), timestamp_ms=found.timestamp
    )
    return Received(partition=found.partition, offset=found.offset, record=record)
