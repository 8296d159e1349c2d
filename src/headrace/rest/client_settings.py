"""Settings of the Kafka clients in the proxy: names of Java's clients become librdkafka's. Pure.

`client.` counts for producer and consumers, `producer.` and `consumer.` for one of them. Of what librdkafka calls
otherwise, or values otherwise, the common settings are translated; what it does not know is reported, not passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.errors import SettingError

# Java's name: librdkafka's name, where they differ.
_RENAMED: Final[Mapping[str, str]] = {
    "delivery.timeout.ms": "message.timeout.ms",
    "max.request.size": "message.max.bytes",
    "max.in.flight.requests.per.connection": "max.in.flight",
    "buffer.memory": "queue.buffering.max.kbytes",
    "max.block.ms": "topic.metadata.propagation.max.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
}
_PRODUCER: Final = frozenset(
    {
        *("acks", "batch.size", "compression.type", "delivery.timeout.ms", "enable.idempotence"),
        *("linger.ms", "max.in.flight.requests.per.connection", "max.request.size"),
        *("request.timeout.ms", "retries", "retry.backoff.ms", "max.block.ms", "buffer.memory"),
    }
)
_CONSUMER: Final = frozenset(
    {
        *("auto.commit.interval.ms", "auto.offset.reset", "check.crcs", "client.rack"),
        *("enable.auto.commit", "fetch.max.bytes", "fetch.max.wait.ms", "group.protocol"),
        *("heartbeat.interval.ms", "isolation.level", "max.partition.fetch.bytes"),
        *("max.poll.interval.ms", "partition.assignment.strategy", "session.timeout.ms"),
    }
)
_BOTH: Final = frozenset(
    {
        *("client.id", "metadata.max.age.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms"),
        *("receive.buffer.bytes", "send.buffer.bytes", "connections.max.idle.ms"),
    }
)
_SECURITY: Final = ("security.protocol", "sasl.", "ssl.")
_ASSIGNORS: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


class ClientSettings(NamedTuple):
    """Settings for librdkafka, and the names of properties that were understood."""

    producer: Mapping[str, str]
    consumer: Mapping[str, str]
    understood: frozenset[str]


def client_settings_from(properties: Mapping[str, str]) -> ClientSettings:
    """What properties say of the clients. Raises SettingError."""
    producer: dict[str, str] = {}
    consumer: dict[str, str] = {}
    understood = set()
    for prefix in ("client.", "producer.", "consumer."):
        for name, value in properties.items():
            if not name.startswith(prefix):
                continue
            setting = name.removeprefix(prefix)
            _refuse_security(name, setting, value)
            translated = _translated(setting, value)
            if prefix != "consumer." and setting in _PRODUCER | _BOTH:
                producer |= translated
                understood.add(name)
            if prefix != "producer." and setting in _CONSUMER | _BOTH:
                consumer |= translated
                understood.add(name)
            if setting == "security.protocol":
                understood.add(name)
    return ClientSettings(producer, consumer, frozenset(understood))


def _refuse_security(name: str, setting: str, value: str) -> None:
    """The admin client speaks PLAINTEXT only, so a proxy that half works is not started."""
    if not setting.startswith(_SECURITY):
        return
    if setting != "security.protocol" or value.upper() != "PLAINTEXT":
        raise SettingError(
            f"{name}={value}: the proxy speaks PLAINTEXT only; give it a PLAINTEXT listener of the cluster"
        )


def _translated(setting: str, value: str) -> dict[str, str]:
    if setting == "buffer.memory" and value.isdecimal():
        return {_RENAMED[setting]: str(max(1, int(value) // 1024))}
    if setting == "partition.assignment.strategy":
        value = ",".join(_ASSIGNORS.get(each.strip(), each.strip()) for each in value.split(","))
    if setting == "auto.offset.reset":
        value = {"none": "error"}.get(value, value)
    return {_RENAMED.get(setting, setting): value}
