"""Transactions of Java's clients: many in a row without a pause, and Kafka's own copier, exactly once.

Kafka 4.3's clients speak version 2 of the protocol; those of 3.9 and 2.8 speak version 1 to the same broker.
"""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.conformance.conftest import MakeTopic
from tests.support import kafka_tools, tools
from tests.support.broker import BrokerUnderTest, bootstrap

RECORDS = 3_000


def values(broker: BrokerUnderTest, topic: str, isolation: str) -> list[bytes]:
    """All values of partition 0, in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap(broker),
            "group.id": f"reader-{topic}-{isolation}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[bytes] = []
        while True:
            message = consumer.poll(30)
            assert message is not None, f"{len(found)} records, and no end"
            if message.error():
                return found
            value = message.value()
            assert value is not None
            found.append(value)
    finally:
        consumer.close()


def older_jars(version: str) -> Path | None:
    """None for the version of the other tests."""
    return None if version == tools.KAFKA_VERSION else tools.require(f"kafka-{version}-jars")


@pytest.mark.parametrize("version", [tools.KAFKA_VERSION, *tools.OLDER_KAFKAS])
def test_the_copier_of_kafka_copies_exactly_once(
    broker: BrokerUnderTest, make_topic: MakeTopic, version: str
) -> None:
    """Its producer writes right behind each commit, its offsets go with the transactions, and some are aborted."""
    jars = older_jars(version)
    source, target = make_topic("source", partitions=1), make_topic("target", partitions=1)
    kafka_tools.run(
        *("producer-perf-test", "--topic", source, "--num-records", str(RECORDS)),
        *("--record-size", "100", "--throughput", "-1", "--transactional-id", f"perf-{source}"),
        *("--transaction-duration-ms", "20"),
        *("--producer-props", f"bootstrap.servers={bootstrap(broker)}"),
        timeout_s=120,
        jars=jars,
    )
    written = values(broker, source, "read_committed")
    assert len(written) == RECORDS
    kafka_tools.run(
        *("transactional-message-copier", "--broker-list", bootstrap(broker)),
        *("--input-topic", source, "--input-partition", "0", "--output-topic", target),
        *("--transaction-size", "100", "--transactional-id", f"copier-{source}"),
        *("--consumer-group", f"copy-{source}", "--max-messages", str(RECORDS)),
        "--enable-random-aborts",
        timeout_s=120,
        jars=jars,
    )
    assert sorted(values(broker, target, "read_committed")) == sorted(written)
    assert len(values(broker, target, "read_uncommitted")) >= RECORDS
