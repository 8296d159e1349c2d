"""Settings of the schema registry, under Confluent's names. Pure: properties in, settings out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.errors import SettingError
from headrace.registry.compatibility import Level

DEFAULT_PORT: Final = 8081
_DEFAULTS: Final[Mapping[str, str]] = {
    "listeners": f"http://127.0.0.1:{DEFAULT_PORT}",
    "host.name": "",
    "kafkastore.bootstrap.servers": "localhost:9092",
    "kafkastore.topic": "_schemas",
    "kafkastore.topic.replication.factor": "3",
    "kafkastore.timeout.ms": "30000",
    "kafkastore.security.protocol": "PLAINTEXT",
    "schema.registry.group.id": "schema-registry",
    "schema.compatibility.level": "backward",
    "leader.eligibility": "true",
    "mode.mutability": "true",
    "headrace.session.timeout.ms": "10000",
    "headrace.request.headers.timeout.ms": "30000",
}
# Older names of the same settings.
_OLD_NAMES: Final[Mapping[str, str]] = {
    "avro.compatibility.level": "schema.compatibility.level",
    "master.eligibility": "leader.eligibility",
}
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - recognised, not bound to


class RegistrySettings(NamedTuple):
    """What a registry needs to know before it starts."""

    host: str
    port: int
    advertised_host: str
    bootstrap_servers: str
    topic: str
    replication_factor: int
    timeout_ms: int
    group_id: str
    level: Level
    is_eligible: bool
    mode_mutability: bool
    session_timeout_ms: int
    headers_timeout_ms: int
    unknown: tuple[str, ...]  # names that mean nothing here


def settings_from(properties: Mapping[str, str], *, this_host: str) -> RegistrySettings:
    """The settings; `this_host` is advertised where the registry listens on all addresses. Raises SettingError."""
    given = {_OLD_NAMES.get(name, name): value.strip() for name, value in properties.items()}
    values = {**_DEFAULTS, **given}
    host, port = _listener(values["listeners"])
    if values["kafkastore.security.protocol"].upper() != "PLAINTEXT":
        raise SettingError(
            f"kafkastore.security.protocol={values['kafkastore.security.protocol']}: "
            "the registry speaks PLAINTEXT only; give it a PLAINTEXT listener of the cluster"
        )
    return RegistrySettings(
        host=host,
        port=port,
        advertised_host=values["host.name"] or (this_host if host in _EVERYWHERE else host),
        bootstrap_servers=_servers(values["kafkastore.bootstrap.servers"]),
        topic=values["kafkastore.topic"],
        replication_factor=_number(values, "kafkastore.topic.replication.factor"),
        timeout_ms=_number(values, "kafkastore.timeout.ms"),
        group_id=values["schema.registry.group.id"],
        level=_level(values["schema.compatibility.level"]),
        is_eligible=_flag(values, "leader.eligibility"),
        mode_mutability=_flag(values, "mode.mutability"),
        session_timeout_ms=_number(values, "headrace.session.timeout.ms"),
        headers_timeout_ms=_number(values, "headrace.request.headers.timeout.ms"),
        unknown=tuple(sorted(given.keys() - _DEFAULTS.keys())),
    )


def _listener(text: str) -> tuple[str, int]:
    scheme, separator, rest = text.partition("://")
    host, colon, port = rest.rpartition(":")
    if not separator or scheme.lower() != "http" or not colon or not port.isdecimal():
        raise SettingError(f"listeners={text}: expected one listener of the form http://host:port")
    if not 0 < int(port) < 65536:
        raise SettingError(f"listeners={text}: a port is a number from 1 to 65535")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - what an empty host means


def _servers(text: str) -> str:
    """`host:port,…`; Confluent's files name the protocol in front of each."""
    servers = [each.strip() for each in text.split(",") if each.strip()]
    for server in servers:
        protocol, separator, _ = server.partition("://")
        if separator and protocol.upper() != "PLAINTEXT":
            raise SettingError(
                f"kafkastore.bootstrap.servers: {server} is not a PLAINTEXT listener"
            )
    if not servers:
        raise SettingError("kafkastore.bootstrap.servers is empty: expected host:port,…")
    return ",".join(server.rpartition("://")[2] for server in servers)


def _number(values: Mapping[str, str], name: str) -> int:
    if not values[name].isdecimal() or int(values[name]) < 1:
        raise SettingError(f"{name}={values[name]}: expected a number of 1 or more")
    return int(values[name])


def _flag(values: Mapping[str, str], name: str) -> bool:
    if values[name].lower() not in ("true", "false"):
        raise SettingError(f"{name}={values[name]}: expected true or false")
    return values[name].lower() == "true"


def _level(text: str) -> Level:
    if text.upper() not in Level.__members__:
        names = ", ".join(each.lower() for each in Level.__members__)
        raise SettingError(f"schema.compatibility.level={text}: expected one of {names}")
    return Level[text.upper()]
