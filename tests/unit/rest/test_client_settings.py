"""Names of Java's clients become librdkafka's."""

import pytest

from headrace.client.librdkafka import Consumer, Producer
from headrace.rest.client_settings import client_settings_from


def test_prefixes_say_whom_a_setting_is_for() -> None:
    found = client_settings_from(
        {
            "client.client.id": "both",
            "producer.linger.ms": "7",
            "consumer.isolation.level": "read_committed",
            "client.session.timeout.ms": "9000",
            "producer.session.timeout.ms": "1",
            "consumer.acks": "all",
            "other": "1",
        }
    )
    assert found.producer == {"client.id": "both", "linger.ms": "7"}
    assert found.consumer == {
        "client.id": "both",
        "isolation.level": "read_committed",
        "session.timeout.ms": "9000",
    }
    assert found.understood == {
        "client.client.id",
        "producer.linger.ms",
        "consumer.isolation.level",
        "client.session.timeout.ms",
    }


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("producer.delivery.timeout.ms", "1000", {"message.timeout.ms": "1000"}),
        ("producer.max.request.size", "5000", {"message.max.bytes": "5000"}),
        ("producer.buffer.memory", "33554432", {"queue.buffering.max.kbytes": "32768"}),
        ("producer.max.in.flight.requests.per.connection", "3", {"max.in.flight": "3"}),
    ],
)
def test_settings_of_the_producer_with_another_name(
    name: str, value: str, expected: dict[str, str]
) -> None:
    assert client_settings_from({name: value}).producer == expected


def test_settings_of_the_consumer_with_other_values() -> None:
    found = client_settings_from(
        {
            "consumer.auto.offset.reset": "none",
            "consumer.partition.assignment.strategy": (
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
            ),
        }
    )
    assert found.consumer == {
        "auto.offset.reset": "error",
        "partition.assignment.strategy": "cooperative-sticky",
    }


def test_librdkafka_knows_every_setting_that_is_passed_on() -> None:
    producer = client_settings_from(
        {
            f"producer.{name}": value
            for name, value in {
                "acks": "all",
                "batch.size": "16384",
                "buffer.memory": "33554432",
                "client.id": "x",
                "compression.type": "lz4",
                "connections.max.idle.ms": "1000",
                "delivery.timeout.ms": "120000",
                "enable.idempotence": "true",
                "linger.ms": "5",
                "max.block.ms": "60000",
                "max.in.flight.requests.per.connection": "5",
                "max.request.size": "1048576",
                "metadata.max.age.ms": "300000",
                "receive.buffer.bytes": "32768",
                "reconnect.backoff.max.ms": "1000",
                "reconnect.backoff.ms": "50",
                "request.timeout.ms": "30000",
                "retries": "100",
                "retry.backoff.ms": "100",
                "send.buffer.bytes": "131072",
            }.items()
        }
    )
    assert len(producer.understood) == 20
    Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **producer.producer})
    consumer = client_settings_from(
        {
            f"consumer.{name}": value
            for name, value in {
                "auto.commit.interval.ms": "5000",
                "auto.offset.reset": "earliest",
                "check.crcs": "true",
                "client.rack": "r",
                "enable.auto.commit": "true",
                "fetch.max.bytes": "52428800",
                "fetch.max.wait.ms": "500",
                "group.protocol": "classic",
                "heartbeat.interval.ms": "3000",
                "isolation.level": "read_committed",
                "max.partition.fetch.bytes": "1048576",
                "max.poll.interval.ms": "300000",
                "partition.assignment.strategy": "range",
                "session.timeout.ms": "45000",
            }.items()
        }
    )
    assert len(consumer.understood) == 14
    Consumer(
        {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **consumer.consumer}
    ).close()
