"""Rules that tie several broker settings together. They hold for a file and for a dynamic change."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from headrace.settings.definitions.value_type import Value
from headrace.settings.listener import parse_connection_limits
from headrace.settings.resolution import topic_default

_MIB = 1024 * 1024
# (setting that must not be bigger, setting that must not be smaller)
_ORDERED = (
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    *(
        (f"group.{kind}.{low}.{name}", f"group.{kind}.{high}.{name}")
        for kind in ("consumer", "share", "streams")
        for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
        for low, high in (("min", "max"),)
    ),
)


def refusals(values: Mapping[str, Value]) -> Iterator[str]:
    """One sentence per rule that these values break."""
    if values["broker.id"] not in {-1, values["node.id"]}:
        yield "You must set `node.id` to the same value as `broker.id`."
    for lower, upper in _ORDERED:
        if _number(values, upper) < _number(values, lower):
            yield f"{upper} must be greater than or equal to {lower}"
    if topic_default("retention.ms", values) == 0:
        yield "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    if _number(values, "log.roll.ms", default=1) < 1:
        yield "log.roll.ms must be greater than or equal to 1"
    yield from _zookeeper_refusals(values)
    yield from _connection_refusals(values)
    threads = _number(values, "log.cleaner.threads")
    if threads and _number(values, "log.cleaner.dedupe.buffer.size") / threads <= _MIB:
        yield "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
    if (
        values["inter.broker.listener.name"]
        and values["security.inter.broker.protocol"] != "PLAINTEXT"
    ):
        yield "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."


def _zookeeper_refusals(values: Mapping[str, Value]) -> Iterator[str]:
    connect = values["zookeeper.connect"]
    if not isinstance(connect, str):
        return
    if not connect.strip():
        yield "zookeeper.connect is empty. Name the servers, or leave the setting out: then the broker is a cluster of its own"
        return
    for server in connect.partition("/")[0].split(","):
        if not _is_server(server):
            yield f"zookeeper.connect: {server!r} in {connect} is not host:port; expected host:port,host:port/path"


def _is_server(text: str) -> bool:
    """Whether this is `host` or `host:port`."""
    try:
        parts = urlsplit(f"//{text.strip()}")
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _connection_refusals(values: Mapping[str, Value]) -> Iterator[str]:
    budget = _number(values, "queued.max.request.bytes")
    if 0 < budget < _number(values, "socket.request.max.bytes"):
        yield "queued.max.request.bytes must be larger or equal to socket.request.max.bytes"
    overrides = values["max.connections.per.ip.overrides"]
    assert isinstance(overrides, str)
    parse_connection_limits(overrides)
    if values["max.connections.per.ip"] == 0 and not overrides:
        yield (
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
            "property is set."
        )


def _number(values: Mapping[str, Value], name: str, *, default: int = 0) -> int | float:
    value = values[name]
    if value is None:
        return default
    assert isinstance(value, int | float), name
    return value
