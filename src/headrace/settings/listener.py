"""Listeners: where a broker accepts connections and what it tells clients to dial."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headrace.errors import SettingError

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Listener(NamedTuple):
    """A name, an address and a security protocol. An empty host means every interface."""

    name: str
    host: str
    port: int
    protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,…` by listener name, in capitals."""
    protocols = {}
    for entry in filter(None, (piece.strip() for piece in text.split(","))):
        name, colon, protocol = entry.partition(":")
        protocol = protocol.strip().upper()
        if not colon or protocol not in PROTOCOLS:
            raise SettingError(
                f"listener.security.protocol.map: {entry}: expected NAME:PROTOCOL with one of "
                f"{', '.join(PROTOCOLS)}"
            )
        protocols[name.strip().upper()] = protocol
    return protocols


def parse_listeners(
    setting: str, entries: Iterable[str], protocols: Mapping[str, str]
) -> tuple[Listener, ...]:
    """`NAME://host:port` entries; names must be unique and have a protocol."""
    listeners: dict[str, Listener] = {}
    for entry in entries:
        listener = _parse(setting, entry, protocols)
        if listener.name in listeners:
            raise SettingError(f"{setting}: {entry}: there are two listeners named {listener.name}")
        listeners[listener.name] = listener
    return tuple(listeners.values())


def _parse(setting: str, entry: str, protocols: Mapping[str, str]) -> Listener:
    name, separator, address = entry.partition("://")
    host, colon, port = address.rpartition(":")
    if not separator or not name or not colon or not (port.isascii() and port.isdigit()):
        raise SettingError(f"{setting}: {entry}: expected NAME://host:port")
    if int(port) > 65535:
        raise SettingError(f"{setting}: {entry}: there is no port {port}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    try:
        host.encode("idna")
    except UnicodeError as error:
        raise SettingError(f"{setting}: {entry}: {host} cannot be a host name: {error}") from error
    name = name.upper()
    protocol = protocols.get(name)
    if protocol is None:
        raise SettingError(
            f"{setting}: {entry}: listener.security.protocol.map has no protocol for {name}"
        )
    return Listener(name, host, int(port), protocol)


def without(names: Iterable[str], entries: Iterable[str]) -> tuple[str, ...]:
    """The entries whose listener is not one of `names`."""
    left_out = {name.upper() for name in names}
    return tuple(entry for entry in entries if entry.partition("://")[0].upper() not in left_out)


def parse_connection_limits(text: str) -> dict[str, int]:
    """`address:number,…` of max.connections.per.ip.overrides."""
    limits = {}
    for entry in filter(None, (piece.strip() for piece in text.split(","))):
        address, colon, number = entry.rpartition(":")
        if not colon or not address or not (number.isascii() and number.isdigit()):
            raise SettingError(
                f"max.connections.per.ip.overrides: {entry}: expected address:number"
            )
        limits[address] = int(number)
    return limits
