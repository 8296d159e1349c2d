"""Transactional producers and readers of committed data, one for each client library, with one face."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import aiokafka
import confluent_kafka
import kafka

TIMEOUT_S: Final = 30.0

# What the stubs describe of these libraries is what other suites use.
kafka_python: Any = kafka
aio: Any = aiokafka


class Fenced(Exception):
    """The client reports that another producer has taken its place."""


class TransactionalProducer(Protocol):
    """A producer with a transactional id. Records are flushed before the end, so that aborted ones are in the log, too."""

    def begin(self) -> None: ...
    def write(self, topic: str, partition: int, value: bytes) -> None: ...
    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0}
        )
        self._producer.init_transactions(TIMEOUT_S)
        self._bootstrap = bootstrap

    def begin(self) -> None:
        self._producer.begin_transaction()

    def write(self, topic: str, partition: int, value: bytes) -> None:
        self._producer.produce(topic, value, partition=partition)
        self._producer.flush(TIMEOUT_S)

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": group}
        )
        try:
            self._producer.send_offsets_to_transaction(
                [confluent_kafka.TopicPartition(topic, partition, offset)],
                consumer.consumer_group_metadata(),
                TIMEOUT_S,
            )
        finally:
            consumer.close()

    def commit(self) -> None:
        try:
            self._producer.commit_transaction(TIMEOUT_S)
        except confluent_kafka.KafkaException as refused:
            if refused.args[0].fatal():
                raise Fenced(str(refused)) from refused
            raise

    def abort(self) -> None:
        self._producer.abort_transaction(TIMEOUT_S)

    def close(self) -> None:
        """It has nothing to close."""


class KafkaPythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._producer = kafka_python.KafkaProducer(
            bootstrap_servers=bootstrap.split(","), transactional_id=transactional_id
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def write(self, topic: str, partition: int, value: bytes) -> None:
        self._producer.send(topic, value, partition=partition).get(TIMEOUT_S)

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        self._producer.send_offsets_to_transaction(
            {
                kafka_python.TopicPartition(topic, partition): kafka_python.OffsetAndMetadata(
                    offset, "", -1
                )
            },
            group,
        )

    def commit(self) -> None:
        try:
            self._producer.commit_transaction()
        except kafka_python.errors.KafkaError as refused:
            raise Fenced(str(refused)) from refused

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(TIMEOUT_S)


class AiokafkaProducer:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._loop = asyncio.new_event_loop()

        async def start() -> Any:
            producer = aio.AIOKafkaProducer(
                bootstrap_servers=bootstrap, transactional_id=transactional_id
            )
            await producer.start()
            return producer

        self._producer = self._loop.run_until_complete(start())

    def _run(self, work: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(work, TIMEOUT_S))

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def write(self, topic: str, partition: int, value: bytes) -> None:
        self._run(self._producer.send_and_wait(topic, value, partition=partition))

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        offsets: Mapping[Any, int] = {aio.TopicPartition(topic, partition): offset}
        self._run(self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        try:
            self._run(self._producer.commit_transaction())
        except aio.errors.KafkaError as refused:
            raise Fenced(str(refused)) from refused

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        self._run(self._producer.stop())
        self._loop.close()


PRODUCERS: Final[Mapping[str, Callable[[str, str], TransactionalProducer]]] = {
    "confluent-kafka": ConfluentProducer,
    "kafka-python": KafkaPythonProducer,
    "aiokafka": AiokafkaProducer,
}


# -- readers: all records of some partitions that are committed, up to their last stable offsets -------------------------


def read_with_confluent(bootstrap: str, topic: str, partitions: Sequence[int]) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    found: list[bytes] = []
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in partitions])
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, "no end of the partition in time"
            error = message.error()
            if error is None:
                found.append(message.value() or b"")
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended += 1
            else:
                raise AssertionError(error)
    finally:
        consumer.close()
    return sorted(found)


def read_with_kafka_python(bootstrap: str, topic: str, partitions: Sequence[int]) -> list[bytes]:
    consumer = kafka_python.KafkaConsumer(
        bootstrap_servers=bootstrap.split(","), isolation_level="read_committed"
    )
    found: list[bytes] = []
    try:
        wanted = [kafka_python.TopicPartition(topic, each) for each in partitions]
        consumer.assign(wanted)
        consumer.seek_to_beginning()
        # Under read_committed this is the last stable offset.
        ends = consumer.end_offsets(wanted)
        while any(consumer.position(each) < end for each, end in ends.items()):
            for records in consumer.poll(timeout_ms=1_000).values():
                found += [record.value for record in records]
    finally:
        consumer.close()
    return sorted(found)


def read_with_aiokafka(bootstrap: str, topic: str, partitions: Sequence[int]) -> list[bytes]:
    async def read() -> list[bytes]:
        consumer = aio.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level="read_committed"
        )
        await consumer.start()
        found: list[bytes] = []
        try:
            wanted = [aio.TopicPartition(topic, each) for each in partitions]
            consumer.assign(wanted)
            await consumer.seek_to_beginning()
            ends = await consumer.end_offsets(wanted)
            while any([await consumer.position(each) < end for each, end in ends.items()]):
                for records in (await consumer.getmany(timeout_ms=1_000)).values():
                    found += [record.value for record in records]
        finally:
            await consumer.stop()
        return found

    return sorted(asyncio.run(asyncio.wait_for(read(), TIMEOUT_S)))


READERS: Final[Mapping[str, Callable[[str, str, Sequence[int]], list[bytes]]]] = {
    "confluent-kafka": read_with_confluent,
    "kafka-python": read_with_kafka_python,
    "aiokafka": read_with_aiokafka,
}
