"""Transactions of every client library: what one commits all others read, what it aborts nobody reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import confluent_kafka
import pytest

from tests.conformance.clients.transactional import (
    PRODUCERS,
    READERS,
    TIMEOUT_S,
    Fenced,
    TransactionalProducer,
)
from tests.conformance.conftest import MakeTopic
from tests.support.broker import BrokerUnderTest, bootstrap

PARTITIONS = (0, 1, 2)

each_library = pytest.mark.parametrize("library", PRODUCERS)


@contextmanager
def producer(
    library: str, broker: BrokerUnderTest, transactional_id: str
) -> Iterator[TransactionalProducer]:
    made = PRODUCERS[library](bootstrap(broker), transactional_id)
    try:
        yield made
    finally:
        made.close()


def expect_committed(broker: BrokerUnderTest, topic: str, expected: list[bytes]) -> None:
    """Every library reads the same."""
    found = {
        library: read(bootstrap(broker), topic, PARTITIONS) for library, read in READERS.items()
    }
    assert found == dict.fromkeys(READERS, sorted(expected))


@each_library
def test_commits_are_read_and_aborts_are_not(
    broker: BrokerUnderTest, make_topic: MakeTopic, library: str
) -> None:
    topic = make_topic("txn", partitions=len(PARTITIONS))
    committed: list[bytes] = []
    with producer(library, broker, f"txn-{uuid4()}") as writer:
        for number in range(6):
            writer.begin()
            values = [f"{number}-{partition}".encode() for partition in PARTITIONS]
            for partition, value in zip(PARTITIONS, values, strict=True):
                writer.write(topic, partition, value)
            if number % 2:
                writer.abort()
            else:
                writer.commit()
                committed += values
    expect_committed(broker, topic, committed)


@each_library
def test_a_producer_that_was_replaced_commits_nothing(
    broker: BrokerUnderTest, make_topic: MakeTopic, library: str
) -> None:
    topic, transactional_id = make_topic("txn", partitions=len(PARTITIONS)), f"txn-{uuid4()}"
    with producer(library, broker, transactional_id) as zombie:
        zombie.begin()
        zombie.write(topic, 0, b"zombie")
        with producer(library, broker, transactional_id) as successor:
            with pytest.raises(Fenced):
                zombie.commit()
            successor.begin()
            successor.write(topic, 0, b"successor")
            successor.commit()
    expect_committed(broker, topic, [b"successor"])


@each_library
def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    broker: BrokerUnderTest, make_topic: MakeTopic, library: str
) -> None:
    topic, group = make_topic("txn", partitions=len(PARTITIONS)), f"group-{uuid4()}"
    with producer(library, broker, f"txn-{uuid4()}") as writer:
        for offset, commits in ((3, True), (7, False)):
            writer.begin()
            writer.write(topic, 0, b"result")
            writer.send_offset(group, topic, 0, offset)
            if commits:
                writer.commit()
            else:
                writer.abort()
    assert committed_offset(broker, group, topic) == 3
    expect_committed(broker, topic, [b"result"])


def committed_offset(broker: BrokerUnderTest, group: str, topic: str) -> int:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap(broker),
            "group.id": group,
            "isolation.level": "read_committed",
        }
    )
    try:
        (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], TIMEOUT_S)
        return int(found.offset)
    finally:
        consumer.close()


def test_many_transactions_in_a_row(broker: BrokerUnderTest, make_topic: MakeTopic) -> None:
    topic, count = make_topic("txn", partitions=len(PARTITIONS)), 200
    with producer("confluent-kafka", broker, f"txn-{uuid4()}") as writer:
        for number in range(count):
            writer.begin()
            writer.write(topic, number % len(PARTITIONS), str(number).encode())
            if number % 10 == 9:
                writer.abort()
            else:
                writer.commit()
    expected = [str(number).encode() for number in range(count) if number % 10 != 9]
    expect_committed(broker, topic, expected)
