"""Settings of Kafka's Java clients as librdkafka's: what tutorials and `--command-config` files say, understood here.

Most names are the same. Some are spelt or measured differently, some have no meaning outside Java and are left out;
what is neither known here nor to librdkafka is librdkafka's to refuse.
"""

import re
from collections.abc import Callable, Iterable

from headrace.cli.shell.command_line import Failure, UsageError

Translated = dict[str, str]

# No counterpart, and nothing is lost without them.
_LEFT_OUT = frozenset(
    {
        "key.serializer",
        "value.serializer",
        "key.deserializer",
        "value.deserializer",
        "max.block.ms",
        "max.poll.records",
        "exclude.internal.topics",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "interceptor.classes",
        "default.api.timeout.ms",
        "auto.include.jmx.reporter",
        "enable.metrics.push",
        "security.providers",
        "ssl.protocol",
        "ssl.provider",
        "ssl.enabled.protocols",
        "ssl.truststore.type",
        "ssl.truststore.password",
        "ssl.keystore.type",
        "ssl.secure.random.implementation",
        "sasl.login.callback.handler.class",
        "sasl.client.callback.handler.class",
    }
)
_RENAMED = {
    "delivery.timeout.ms": "message.timeout.ms",
    "max.request.size": "message.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "ssl.truststore.location": "ssl.ca.location",
}
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
    "StickyAssignor": "cooperative-sticky",
}
_LONGEST_REFRESH_MS = 3_600_000  # that librdkafka takes
_JAAS = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


def parse_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """`name=value` arguments; the value may contain equals signs or be missing."""
    parsed = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if not name:
            raise UsageError(f"'{pair}' is not of the form name=value")
        parsed[name] = value
    return parsed


def librdkafka_settings(properties: dict[str, str]) -> Translated:
    """The same settings in librdkafka's words."""
    translated: Translated = {}
    for name, value in properties.items():
        if name in _LEFT_OUT:
            continue
        special = _SPECIAL.get(name)
        if special is not None:
            translated |= special(value)
        else:
            translated[_RENAMED.get(name, name)] = value
    return translated


def _buffer_memory(value: str) -> Translated:
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))}


def _batch_size(value: str) -> Translated:
    # 0 is Java's word for "each record in a batch of its own", which librdkafka does with 1.
    return {"batch.size": "1" if value.strip() == "0" else value}


def _receive_buffer(value: str) -> Translated:
    return {"socket.receive.buffer.bytes": _system_default(value)}


def _send_buffer(value: str) -> Translated:
    return {"socket.send.buffer.bytes": _system_default(value)}


def _system_default(value: str) -> str:
    """What stands for the operating system's choice: -1 in Java, 0 in librdkafka."""
    return "0" if value.strip() == "-1" else value


def _metadata_max_age(value: str) -> Translated:
    # Java knows no limit.
    return {"topic.metadata.refresh.interval.ms": str(min(int(value), _LONGEST_REFRESH_MS))}


def _assignment_strategy(value: str) -> Translated:
    names = [each.strip().rpartition(".")[2] for each in value.split(",")]
    return {"partition.assignment.strategy": ",".join(_ASSIGNORS.get(each, each) for each in names)}


def _jaas(value: str) -> Translated:
    fields = {name: re.sub(r"\\(.)", r"\1", text) for name, text in _JAAS.findall(value)}
    if "username" not in fields or "password" not in fields:
        raise Failure(
            "sasl.jaas.config does not say who",
            why="it has no username and password",
            hint='use the form: … required username="me" password="secret";',
        )
    return {"sasl.username": fields["username"], "sasl.password": fields["password"]}


def _endpoint_identification(value: str) -> Translated:
    return {"ssl.endpoint.identification.algorithm": value or "none"}


def _acks(value: str) -> Translated:
    return {"acks": "-1" if value == "all" else value}


_SPECIAL: dict[str, Callable[[str], Translated]] = {
    "acks": _acks,
    "batch.size": _batch_size,
    "buffer.memory": _buffer_memory,
    "metadata.max.age.ms": _metadata_max_age,
    "partition.assignment.strategy": _assignment_strategy,
    "receive.buffer.bytes": _receive_buffer,
    "sasl.jaas.config": _jaas,
    "send.buffer.bytes": _send_buffer,
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
}
