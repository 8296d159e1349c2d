"""kafka-python: a client in plain Python."""

import gc
import importlib.util
import warnings
from collections.abc import Sequence

from tests.conformance.clients import member_lines
from tests.conformance.clients.client import TIMEOUT_S, Refused
from tests.conformance.samples import CODECS, Received, Record

with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore", DeprecationWarning
    )  # of the standard library; kafka-python reads its schemas so
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.consumer.fetcher import ConsumerRecord
    from kafka.errors import KafkaError

# kafka-python opens snappy batches only through the python-snappy package.
CODECS_HERE = tuple(
    codec for codec in CODECS if codec != "snappy" or importlib.util.find_spec("snappy")
)


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

    def codecs(self) -> tuple[str, ...]:
        return CODECS_HERE

    def writable(self, record: Record) -> Record | None:
        null_header = any(value is None for _, value in record.headers)
        return None if null_header or (record.key is None and record.value is None) else record

    def produce(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], *, codec: str
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(timeout=TIMEOUT_S)
            for future in sent:
                future.get(timeout=TIMEOUT_S)
        except KafkaError as refused:
            raise Refused(repr(refused)) from refused
        finally:
            close_quietly(producer)

    def consume(self, bootstrap: str, topic: str, count: int) -> list[Received]:
        consumer = _consumer(bootstrap, None)
        try:
            partitions = [
                TopicPartition(topic, number)
                for number in consumer.partitions_for_topic(topic) or ()
            ]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            return _take(consumer, count)
        finally:
            close_quietly(consumer)

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> list[Received]:
        consumer = _consumer(bootstrap, group)
        try:
            consumer.subscribe([topic])
            received = _take(consumer, count)
            consumer.commit()
            return received
        finally:
            close_quietly(consumer)

    def offset_for_time(
        self, bootstrap: str, topic: str, partition: int, timestamp_ms: int
    ) -> int | None:
        consumer = _consumer(bootstrap, None)
        try:
            wanted = TopicPartition(topic, partition)
            found = consumer.offsets_for_times({wanted: timestamp_ms})[wanted]
            return None if found is None else found.offset
        finally:
            close_quietly(consumer)

    def member_command(self, bootstrap: str, topic: str, group: str) -> list[str]:
        return member_lines.command(self.name, bootstrap, topic, group)

    def read_assignment(self, line: str, topic: str) -> frozenset[int] | None:
        return member_lines.read(line)


def close_quietly(client: KafkaConsumer | KafkaProducer | KafkaAdminClient) -> None:
    """Close a client, and collect at once the socket that it sometimes forgets: no other test shall stumble on it."""
    client.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def _consumer(bootstrap: str, group: str | None) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


def _take(consumer: KafkaConsumer, count: int) -> list[Received]:
    received: list[Received] = []
    while len(received) < count:
        polled = consumer.poll(timeout_ms=int(TIMEOUT_S * 1000), max_records=count - len(received))
        assert polled, f"only {len(received)} of {count} records arrived in time"
        received.extend(_received(record) for records in polled.values() for record in records)
    return received


def _received(found: ConsumerRecord) -> Received:
    record = Record(
        key=found.key, value=found.value, headers=tuple(found.headers), timestamp_ms=found.timestamp
    )
    return Received(partition=found.partition, offset=found.offset, record=record)
