"""confluent-kafka: librdkafka from Python."""

from collections.abc import Sequence
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.conformance.clients import member_lines
from tests.conformance.clients.client import TIMEOUT_S, Refused
from tests.conformance.samples import CODECS, Received, Record


class Confluent:
    """librdkafka by its Python binding."""

    name = "confluent-kafka"

    def codecs(self) -> tuple[str, ...]:
        return CODECS

    def writable(self, record: Record) -> Record | None:
        return record

    def produce(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], *, codec: str
    ) -> None:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "linger.ms": 50,
                "message.max.bytes": 100 << 20,
            }
        )
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                errors.append(error)

        for record in records:
            try:
                producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=partition,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                    on_delivery=delivered,
                )
            except KafkaException as refused:
                raise Refused(str(refused.args[0])) from refused
        assert producer.flush(TIMEOUT_S) == 0, "not everything was delivered in time"
        if errors:
            raise Refused(str(errors[0]))

    def consume(self, bootstrap: str, topic: str, count: int) -> list[Received]:
        consumer = _consumer(bootstrap, "not-joined")
        try:
            partitions = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            return _take(consumer, count)
        finally:
            consumer.close()

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> list[Received]:
        consumer = _consumer(bootstrap, group)
        try:
            consumer.subscribe([topic])
            taken = _take(consumer, count)
            consumer.commit(asynchronous=False)
            return taken
        finally:
            consumer.close()

    def offset_for_time(
        self, bootstrap: str, topic: str, partition: int, timestamp_ms: int
    ) -> int | None:
        consumer = _consumer(bootstrap, "not-joined")
        try:
            found = consumer.offsets_for_times(
                [TopicPartition(topic, partition, timestamp_ms)], timeout=TIMEOUT_S
            )
            assert found[0].error is None, found[0].error
            return None if found[0].offset < 0 else found[0].offset
        finally:
            consumer.close()

    def member_command(self, bootstrap: str, topic: str, group: str) -> list[str]:
        return member_lines.command(self.name, bootstrap, topic, group)

    def read_assignment(self, line: str, topic: str) -> frozenset[int] | None:
        return member_lines.read(line)


def _consumer(bootstrap: str, group: str) -> Consumer:
    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    return Consumer(config)


def _take(consumer: Consumer, count: int) -> list[Received]:
    taken: list[Received] = []
    while len(taken) < count:
        messages = consumer.consume(count - len(taken), timeout=TIMEOUT_S)
        assert messages, f"only {len(taken)} of {count} records arrived in time"
        taken.extend(map(received, messages))
    return taken


def received(message: Message) -> Received:
    """A message in our words."""
    if (error := message.error()) is not None:
        raise Refused(str(error))
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    # The binding's types allow more forms of headers than it ever returns.
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    record = Record(
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
        timestamp_ms=message.timestamp()[1],
    )
    return Received(partition=partition, offset=offset, record=record)
