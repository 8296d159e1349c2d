"""The options that say which cluster, and the client they lead to."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import (
    Failure,
    ToolParser,
    UsageError,
    nearest,
    read_text,
    require_option,
    tell,
)

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin
    from headrace.client.brokers import Unreachable

DEFAULT_TIMEOUT_S = 30.0
CREATION_S = 1.0  # how long a topic that brokers create when asked for may take
START_S = 15.0  # a broker that was started just before the tool, on a slow machine, has this long
_PLAINTEXT = "PLAINTEXT"


def add_connection_options(
    parser: ToolParser, *, old_names: Sequence[str] = (), default: str | None = None
) -> None:
    """`--bootstrap-server` with the names it once had, and `--command-config`."""
    remark = "required" if default is None else f"default: {default}"
    parser.value(
        "bootstrap-server",
        f"the brokers to connect to first: host:port[,host:port…] ({remark})",
        metavar="SERVERS",
        default=default,
    )
    parser.hidden(*old_names, dest="bootstrap_server")
    parser.value("command-config", "a properties file with settings of the client", metavar="FILE")


def add_zookeeper_option(parser: ToolParser) -> None:
    """`--zookeeper`, which tools had before they asked brokers."""
    parser.hidden("zookeeper")


def ask_zookeeper(options: argparse.Namespace) -> None:
    """Where only a ZooKeeper is named, let it name the brokers."""
    if options.zookeeper is None:
        return
    if options.bootstrap_server is not None:
        raise UsageError("Only one of --bootstrap-server or --zookeeper must be specified")
    from headrace.cli.shell.zookeeper_lookup import brokers_of

    options.bootstrap_server = brokers_of(options.zookeeper)


def open_admin(options: argparse.Namespace, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> Admin:
    """A client for administration. Close it."""
    require_option(options, "bootstrap-server")
    settings = read_properties(options.command_config) if options.command_config else {}
    protocol = settings.get("security.protocol", _PLAINTEXT).upper()
    if protocol != _PLAINTEXT:
        raise Failure(
            f"{options.command_config} asks for security.protocol={protocol}",
            why="this tool speaks PLAINTEXT only",
            hint="give it a PLAINTEXT listener of the cluster",
        )
    from headrace.client.admin.admin import Admin

    try:
        return Admin(
            options.bootstrap_server,
            timeout_s=_seconds(settings, "default.api.timeout.ms", timeout_s),
            client_id=settings.get("client.id", "headrace-admin"),
            patience_s=START_S,
            on_waiting=_tell_waiting,
        )
    except ValueError as wrong:
        raise UsageError(f"--bootstrap-server: {wrong}") from wrong


def _tell_waiting(unreachable: Unreachable) -> None:
    tell(f"{unreachable}; waiting up to {START_S:.0f} s, in case it is starting")


def check_reachable(bootstrap_servers: str, settings: Mapping[str, str], topic: str | None) -> None:
    """Say at once, and in our words, that nobody is there, or that the topic is not.

    Where brokers create topics, asking creates it, as Kafka's own clients do. Nothing is asked where security has to
    be agreed on first.
    """
    if settings.get("security.protocol", _PLAINTEXT).upper() != _PLAINTEXT:
        return
    from headrace.client.admin.admin import Admin

    try:
        with Admin(bootstrap_servers, patience_s=START_S, on_waiting=_tell_waiting) as admin:
            if topic is None:
                admin.cluster()
            else:
                _tell_if_missing(admin, topic)
    except ValueError as wrong:
        raise UsageError(f"--bootstrap-server: {wrong}") from wrong


def _tell_if_missing(admin: Admin, topic: str) -> None:
    from headrace.wire.error_code import ErrorCode

    deadline = time.monotonic() + CREATION_S
    while time.monotonic() < deadline:
        [found] = admin.metadata([topic], create_missing=True).topics
        if found.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return
        time.sleep(CREATION_S / 10)
    hint = nearest(topic, [each.name or "" for each in admin.metadata(None).topics])
    tell(f"WARN The topic '{topic}' does not exist" + (f"; {hint}" if hint else ""))


def _seconds(settings: dict[str, str], name: str, otherwise: float) -> float:
    try:
        return int(settings[name]) / 1000 if name in settings else otherwise
    except ValueError:
        raise Failure(f"{name}={settings[name]} is not a number of milliseconds") from None


def read_properties(path: str) -> dict[str, str]:
    """What a Java properties file sets."""
    from headrace.properties import parse_properties

    return parse_properties(read_text(path))
