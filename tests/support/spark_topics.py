"""Topics for tests of pipelines: made, filled and read with a client that is not ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

READ_TIMEOUT_S = 20.0
QUIET = {"log_level": 0}


class Stored(NamedTuple):
    """A record as it was found."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Topics:
    """Makes, fills and reads topics."""

    def __init__(self, broker: Any, *, suffix: str) -> None:
        self.bootstrap_servers: str = broker.bootstrap_servers
        self._suffix = suffix
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, **QUIET})
        self._producer = self._new_producer()

    def _new_producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "partitioner": "murmur2_random",
                "linger.ms": 5,
                **QUIET,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.flush(5)

    def name(self, stem: str) -> str:
        return f"{stem}-{self._suffix}"

    def create(self, stem: str, partitions: int = 1, **config: str) -> str:
        name = self.name(stem)
        self.create_named(name, partitions, **config)
        return name

    def create_named(self, name: str, partitions: int = 1, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        made = self._admin.create_topics(
            [NewTopic(name, partitions, 1, config=settings)], operation_timeout=10
        )
        made[name].result()

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name], operation_timeout=10)[name].result()

    def grow(self, name: str, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(name, partitions)])[name].result()
        self._producer = self._new_producer()  # the old one would learn of them in minutes only

    def delete_records(self, name: str, partition: int, before: int) -> None:
        place = TopicPartition(name, partition, before)
        for future in self._admin.delete_records([place]).values():
            future.result()

    def send(
        self,
        name: str,
        values: Iterable[str | bytes | None],
        *,
        key: str | bytes | None = None,
        partition: int | None = None,
        headers: list[tuple[str, str | bytes | None]] | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Write values and wait until they are there."""
        more: dict[str, Any] = {}
        if partition is not None:
            more["partition"] = partition
        if timestamp_ms is not None:
            more["timestamp"] = timestamp_ms
        for value in values:
            self._producer.produce(name, value=value, key=key, headers=headers, **more)
        assert self._producer.flush(READ_TIMEOUT_S) == 0

    def send_pairs(
        self, name: str, pairs: Iterable[tuple[str | bytes | None, str | bytes | None]]
    ) -> None:
        for key, value in pairs:
            self._producer.produce(name, value=value, key=key)
        assert self._producer.flush(READ_TIMEOUT_S) == 0

    def partitions_of(self, name: str) -> list[int]:
        return sorted(self._admin.list_topics(name, timeout=10).topics[name].partitions)

    def read(self, name: str) -> list[Stored]:
        """Everything in a topic that is committed, partition by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "reading",
                "enable.auto.commit": False,
                "enable.partition.eof": True,  # markers of transactions have offsets, too
                **QUIET,
            }
        )
        found: list[Stored] = []
        try:
            for number in self.partitions_of(name):
                consumer.assign([TopicPartition(name, number, OFFSET_BEGINNING)])
                while True:
                    message = consumer.poll(READ_TIMEOUT_S)
                    assert message is not None, f"{name}-{number} has no end"
                    error = message.error()
                    if error is not None:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        break
                    found.append(_stored(message))
        finally:
            consumer.close()
        return found

    def values(self, name: str) -> list[bytes | None]:
        return [each.value for each in self.read(name)]

    def committed(self, group: str, name: str) -> dict[int, int]:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap_servers, "group.id": group, **QUIET}
        )
        try:
            places = [TopicPartition(name, number) for number in self.partitions_of(name)]
            found = consumer.committed(places, timeout=10)
            return {each.partition: each.offset for each in found if each.offset >= 0}
        finally:
            consumer.close()


def _stored(message: Message) -> Stored:
    headers: Any = message.headers() or ()
    offset, partition = message.offset(), message.partition()
    assert offset is not None
    assert partition is not None
    return Stored(partition, offset, message.key(), message.value(), tuple(headers))
