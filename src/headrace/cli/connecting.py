"""The options that say which cluster, and the client they lead to."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headrace.cli.command_line import Failure, ToolParser, UsageError, require_option

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin

DEFAULT_TIMEOUT_S = 30.0
_PLAINTEXT = "PLAINTEXT"


def add_connection_options(parser: ToolParser, *, old_config: str | None = None) -> None:
    """`--bootstrap-server` and `--command-config`, with the names they once had."""
    parser.value(
        "bootstrap-server",
        "the brokers to connect to first: host:port[,host:port…] (required)",
        metavar="SERVERS",
    )
    parser.hidden("broker-list", dest="bootstrap_server")
    parser.value("command-config", "a properties file with settings of the client", metavar="FILE")
    if old_config is not None:
        parser.hidden(old_config, dest="command_config")


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
        )
    except ValueError as wrong:
        raise UsageError(f"--bootstrap-server: {wrong}") from wrong


def _seconds(settings: dict[str, str], name: str, otherwise: float) -> float:
    try:
        return int(settings[name]) / 1000 if name in settings else otherwise
    except ValueError:
        raise Failure(f"{name}={settings[name]} is not a number of milliseconds") from None


def read_properties(path: str) -> dict[str, str]:
    """What a Java properties file sets."""
    from headrace.broker.settings.properties import parse_properties

    try:
        with open(path, encoding="utf-8") as file:
            return parse_properties(file.read())
    except OSError as error:
        raise Failure(f"cannot read {path}", why=error.strerror or str(error)) from error
