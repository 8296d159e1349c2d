"""Settings of the REST proxy, under Confluent's names. Pure: properties in, settings out.

Settings that begin with `producer.`, `consumer.` or `client.` are those of Kafka's clients; `client_settings` turns
them into librdkafka's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from headrace.errors import SettingError
from headrace.rest.client_settings import ClientSettings, client_settings_from
from headrace.schemas.registry_transport import parse_urls

DEFAULT_PORT: Final = 8082
MAX_FETCH_MIN_BYTES: Final = 10_000_000
_DEFAULTS: Final[Mapping[str, str]] = {
    "id": "",
    "listeners": f"http://127.0.0.1:{DEFAULT_PORT}",
    "advertised.listeners": "",
    "host.name": "",
    "bootstrap.servers": "localhost:9092",
    "schema.registry.url": "http://localhost:8081",
    "schema.registry.basic.auth.credentials.source": "URL",
    "schema.registry.basic.auth.user.info": "",
    "client.init.timeout.ms": "60000",
    "api.v2.enable": "true",
    "api.v3.enable": "true",
    "consumer.request.timeout.ms": "1000",
    "consumer.request.max.bytes": str(64 * 1024 * 1024),
    "consumer.instance.timeout.ms": "300000",
    "fetch.min.bytes": "-1",
    "api.v3.produce.batch.maximum.entries": "10",
    "api.v3.produce.request.size.limit.max.bytes": "0",
    "streaming.connection.max.duration.ms": "86400000",
    "streaming.connection.max.duration.grace.period.ms": "500",
    "confluent.resource.name.authority": "",
    "headrace.consumer.instances.max": "200",
    "headrace.request.max.bytes": str(32 * 1024 * 1024),
    "headrace.buffer.memory": str(256 * 1024 * 1024),
    "headrace.admin.timeout.ms": "15000",
    "headrace.registry.timeout.ms": "10000",
    "headrace.max.connections": "2000",
    "headrace.request.headers.timeout.ms": "30000",
}
# Settings that have a meaning in Confluent's proxy and none here: nothing is lost by leaving them out.
_WITHOUT_EFFECT: Final = frozenset(
    {
        "consumer.threads",
        "consumer.iterator.timeout.ms",
        "consumer.iterator.backoff.ms",
        "producer.threads",
        "simpleconsumer.pool.size.max",
        "simpleconsumer.pool.timeout.ms",
        "client.timeout.ms",
        "port",
        "zookeeper.connect",
    }
)


class RestSettings(NamedTuple):
    """What the proxy needs to know before it starts."""

    server_id: str
    host: str
    port: int
    advertised_url: str | None  # in links, instead of the address that a client used
    bootstrap_servers: str
    registry_urls: tuple[str, ...]
    registry_credentials: tuple[str, str] | None
    registry_timeout_ms: int
    init_timeout_ms: int
    admin_timeout_ms: int
    has_v2: bool
    has_v3: bool
    consumer_request_timeout_ms: int
    consumer_request_max_bytes: int
    consumer_instance_timeout_ms: int
    consumer_instances_max: int
    fetch_min_bytes: int
    batch_max_entries: int
    record_max_bytes: int
    request_max_bytes: int
    buffer_bytes: int
    max_connections: int
    headers_timeout_ms: int
    stream_max_duration_ms: int
    stream_grace_ms: int
    name_authority: str
    clients: ClientSettings
    unknown: tuple[str, ...]  # names that mean nothing here


def settings_from(properties: Mapping[str, str]) -> RestSettings:
    """The settings. Raises SettingError."""
    given = {name: value.strip() for name, value in properties.items()}
    clients = client_settings_from(
        {name: value for name, value in given.items() if name not in _DEFAULTS}
    )
    values = {**_DEFAULTS, **given}
    host, port = _listener(values["listeners"])
    request_max = _number(values, "headrace.request.max.bytes", 1024)
    record_max = _number(values, "api.v3.produce.request.size.limit.max.bytes", 0)
    return RestSettings(
        server_id=values["id"],
        host=host,
        port=port,
        advertised_url=_advertised(values, port),
        bootstrap_servers=_servers(values["bootstrap.servers"]),
        registry_urls=_registry_urls(values["schema.registry.url"]),
        registry_credentials=_credentials(values),
        registry_timeout_ms=_number(values, "headrace.registry.timeout.ms"),
        init_timeout_ms=_number(values, "client.init.timeout.ms"),
        admin_timeout_ms=_number(values, "headrace.admin.timeout.ms"),
        has_v2=_flag(values, "api.v2.enable"),
        has_v3=_flag(values, "api.v3.enable"),
        consumer_request_timeout_ms=_number(values, "consumer.request.timeout.ms"),
        consumer_request_max_bytes=_number(values, "consumer.request.max.bytes"),
        consumer_instance_timeout_ms=_number(values, "consumer.instance.timeout.ms"),
        consumer_instances_max=_number(values, "headrace.consumer.instances.max"),
        fetch_min_bytes=_number(values, "fetch.min.bytes", -1, MAX_FETCH_MIN_BYTES),
        batch_max_entries=_number(values, "api.v3.produce.batch.maximum.entries", 1, 50),
        record_max_bytes=min(record_max, request_max) or request_max,
        request_max_bytes=request_max,
        buffer_bytes=_number(values, "headrace.buffer.memory", request_max),
        max_connections=_number(values, "headrace.max.connections"),
        headers_timeout_ms=_number(values, "headrace.request.headers.timeout.ms"),
        stream_max_duration_ms=_number(values, "streaming.connection.max.duration.ms"),
        stream_grace_ms=_number(values, "streaming.connection.max.duration.grace.period.ms", 0),
        name_authority=values["confluent.resource.name.authority"],
        clients=clients,
        unknown=tuple(
            sorted(given.keys() - _DEFAULTS.keys() - _WITHOUT_EFFECT - clients.understood)
        ),
    )


def _listener(text: str) -> tuple[str, int]:
    scheme, separator, rest = text.partition("://")
    host, colon, port = rest.rpartition(":")
    if not separator or scheme.lower() != "http" or not colon or not port.isdecimal():
        raise SettingError(f"listeners={text}: expected one listener of the form http://host:port")
    if not 0 < int(port) < 65536:
        raise SettingError(f"listeners={text}: a port is a number from 1 to 65535")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - what an empty host means


def _advertised(values: Mapping[str, str], port: int) -> str | None:
    """The start of links in answers, if it is not to be the address that the client used."""
    listeners = [each.strip() for each in values["advertised.listeners"].split(",") if each.strip()]
    if listeners:
        try:
            url = urlsplit(listeners[0])
            is_url = url.scheme in ("http", "https") and url.hostname
        except ValueError:
            is_url = False
        if not is_url:
            raise SettingError(
                f"advertised.listeners={listeners[0]}: expected the form http://host:port"
            )
        return listeners[0].rstrip("/")
    host = values["host.name"]
    if not host:
        return None
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _servers(text: str) -> str:
    """`host:port,…`; Confluent's files name the protocol in front of each."""
    servers = [each.strip() for each in text.split(",") if each.strip()]
    for server in servers:
        protocol, separator, _ = server.partition("://")
        if separator and protocol.upper() != "PLAINTEXT":
            raise SettingError(f"bootstrap.servers: {server} is not a PLAINTEXT listener")
    if not servers:
        raise SettingError("bootstrap.servers is empty: expected host:port,…")
    return ",".join(server.rpartition("://")[2] for server in servers)


def _registry_urls(text: str) -> tuple[str, ...]:
    """No URL at all means that there is no registry."""
    urls = tuple(each.strip() for each in text.split(",") if each.strip())
    if not urls:
        return ()
    try:
        parse_urls(urls)
    except SettingError as wrong:
        raise SettingError(f"schema.registry.url={text}: {wrong}") from None
    return urls


def _credentials(values: Mapping[str, str]) -> tuple[str, str] | None:
    source = values["schema.registry.basic.auth.credentials.source"].upper()
    if source == "URL":
        return None
    if source != "USER_INFO":
        raise SettingError(
            f"schema.registry.basic.auth.credentials.source={source}: expected URL or USER_INFO"
        )
    user, colon, password = values["schema.registry.basic.auth.user.info"].partition(":")
    if not colon:
        raise SettingError("schema.registry.basic.auth.user.info: expected user:password")
    return user, password


def _number(values: Mapping[str, str], name: str, lowest: int = 1, highest: int = 2**31 - 1) -> int:
    try:
        number = int(values[name])
    except ValueError:
        number = lowest - 1
    if not lowest <= number <= highest:
        raise SettingError(f"{name}={values[name]}: expected a number from {lowest} to {highest}")
    return number


def _flag(values: Mapping[str, str], name: str) -> bool:
    if values[name].lower() not in ("true", "false"):
        raise SettingError(f"{name}={values[name]}: expected true or false")
    return values[name].lower() == "true"
