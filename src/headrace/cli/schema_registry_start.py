"""`headrace schema-registry-start [FILE.properties]`: run a schema registry until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from headrace.cli.command_line import Failure, ToolParser, run_tool
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.registry.instance import InstanceSettings

DEFAULT_PORT: Final = 8081


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work, needs_options=False)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "schema-registry-start",
        "Run a schema registry with Confluent's REST API. Without a file: on 127.0.0.1:8081, for the brokers on "
        "localhost:9092.",
    )
    parser.usage = "headrace schema-registry-start [FILE.properties] [options]"
    parser.add_argument(
        "file", nargs="?", metavar="FILE.properties", help="settings, in Confluent's names"
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="name=value",
        help="a setting that counts more than the file's; may be given several times",
    )
    return parser


def _work(options: argparse.Namespace) -> int:
    from headrace.broker.logs import configure
    from headrace.cli.connecting import read_properties
    from headrace.properties import parse_overrides

    properties = {} if options.file is None else dict(read_properties(options.file))
    properties |= parse_overrides(options.override)
    configure("text", "INFO", broker_id=-1)
    try:
        import starlette  # noqa: F401 - only whether it is there
    except ImportError:
        raise Failure(
            "the schema registry needs the extra 'services'",
            hint="pip install 'headrace[services]'",
        ) from None
    host, port = _listener(properties)
    try:
        asyncio.run(_serve(properties, host, port))
    except HeadraceError as error:
        raise Failure("the schema registry cannot start", why=str(error)) from error
    except OSError as error:
        raise Failure(
            f"cannot listen on {host}:{port}", why=error.strerror or str(error)
        ) from error
    return 0


def _listener(properties: Mapping[str, str]) -> tuple[str, int]:
    text = properties.get("listeners", f"http://127.0.0.1:{DEFAULT_PORT}")
    scheme, separator, rest = text.strip().partition("://")
    host, colon, port = rest.rpartition(":")
    if not separator or scheme != "http" or not colon or not port.isdecimal():
        raise Failure(
            f"listeners={text} is not of the form http://host:port",
            hint="one listener, without TLS",
        )
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - what an empty host means


def _settings(properties: Mapping[str, str], host: str, port: int) -> InstanceSettings:
    from headrace.registry.instance import Identity, InstanceSettings

    brokers = properties.get("kafkastore.bootstrap.servers", "localhost:9092")
    name = properties.get("host.name") or (
        socket.gethostname() if host in ("0.0.0.0", "::") else host
    )  # noqa: S104
    return InstanceSettings(
        bootstrap_servers=brokers,
        identity=Identity(
            host=name,
            port=port,
            master_eligibility=properties.get("leader.eligibility", "true").lower() == "true",
        ),
        topic=properties.get("kafkastore.topic", "_schemas"),
        replication_factor=int(properties.get("kafkastore.topic.replication.factor", "3")),
        group_id=properties.get("schema.registry.group.id", "schema-registry"),
        write_timeout_ms=int(properties.get("kafkastore.timeout.ms", "30000")),
    )


async def _serve(properties: Mapping[str, str], host: str, port: int) -> None:
    from headrace.client.admin.admin import Admin
    from headrace.registry.compatibility import Level
    from headrace.registry.decisions import Registry
    from headrace.registry.http import RegistryHttp
    from headrace.registry.instance import Instance
    from headrace.registry.subjects import Subjects
    from headrace.services.http_service import serve

    level = properties.get("schema.compatibility.level", "backward").upper()
    if level not in Level.__members__:
        raise Failure(f"schema.compatibility.level={level} is none", hint="for instance: backward")
    settings = _settings(properties, host, port)

    def cluster_id() -> str:
        with Admin(settings.bootstrap_servers) as admin:
            return admin.cluster().cluster_id or ""

    registry = Registry(Subjects(), default_level=Level[level])
    instance = Instance(settings, registry)
    pages = RegistryHttp(instance, cluster_id=await asyncio.to_thread(cluster_id))

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        try:
            await instance.open()
            yield
        finally:
            await instance.close()

    def on_ready(bound: int) -> None:
        logging.getLogger("headrace").info("schema registry is ready on http://%s:%d", host, bound)

    await serve(pages.application(), host, port, lifespan=lifespan, on_ready=on_ready)
