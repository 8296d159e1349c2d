"""Settings of Kafka's Java clients in librdkafka's words."""

import pytest

from headrace.cli.shell.client_properties import librdkafka_settings, parse_pairs
from headrace.cli.shell.command_line import Failure, UsageError


def test_pairs() -> None:
    pairs = parse_pairs(["a=1", "b=x=y", "c=", "d"])
    assert pairs == {"a": "1", "b": "x=y", "c": "", "d": ""}
    with pytest.raises(UsageError):
        parse_pairs(["=1"])


def test_most_names_are_the_same() -> None:
    same = {"group.id": "g", "linger.ms": "5", "security.protocol": "SSL"}
    assert librdkafka_settings(same) == same


def test_what_means_nothing_outside_java_is_left_out() -> None:
    assert librdkafka_settings({"key.serializer": "x", "max.poll.records": "5"}) == {}


@pytest.mark.parametrize(
    ("java", "ours"),
    [
        ({"acks": "all"}, {"acks": "-1"}),
        ({"buffer.memory": "2048000"}, {"queue.buffering.max.kbytes": "2000"}),
        ({"delivery.timeout.ms": "7"}, {"message.timeout.ms": "7"}),
        ({"metadata.max.age.ms": "7"}, {"topic.metadata.refresh.interval.ms": "7"}),
        ({"metadata.max.age.ms": "7200000"}, {"topic.metadata.refresh.interval.ms": "3600000"}),
        ({"batch.size": "0"}, {"batch.size": "1"}),
        ({"send.buffer.bytes": "-1"}, {"socket.send.buffer.bytes": "0"}),
        ({"receive.buffer.bytes": "7"}, {"socket.receive.buffer.bytes": "7"}),
        (
            {
                "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor,"
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
            },
            {"partition.assignment.strategy": "range,cooperative-sticky"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"sasl.jaas.config": 'a.PlainLoginModule required username="me" password="se\\"cret";'},
            {"sasl.username": "me", "sasl.password": 'se"cret'},
        ),
    ],
)
def test_some_are_said_differently(java: dict[str, str], ours: dict[str, str]) -> None:
    assert librdkafka_settings(java) == ours


def test_a_login_without_a_name_is_told() -> None:
    with pytest.raises(Failure, match=r"sasl\.jaas\.config does not say who"):
        librdkafka_settings({"sasl.jaas.config": "a.Module required;"})
