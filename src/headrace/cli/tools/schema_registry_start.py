"""`headrace schema-registry-start [FILE.properties]`: run a schema registry until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import Failure, ToolParser, read_text, run_tool
from headrace.errors import HeadraceError, SettingError

if TYPE_CHECKING:
    from headrace.registry.settings import RegistrySettings

_CONNECT_S = 10.0
_log = logging.getLogger("headrace")


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
    parser.flag("json-logs", "log one JSON object per line")
    return parser


def _work(options: argparse.Namespace) -> int:
    from headrace.broker.telemetry.log_output import configure
    from headrace.properties import parse_overrides, parse_properties
    from headrace.registry.settings import settings_from

    try:
        properties = {} if options.file is None else parse_properties(read_text(options.file))
        properties |= parse_overrides(options.override)
        settings = settings_from(properties, this_host=socket.gethostname())
    except SettingError as wrong:
        raise Failure(str(wrong), hint="docs/schema-registry.md lists the settings") from wrong
    configure("json" if options.json_logs else "text", "INFO")
    if settings.unknown:
        _log.warning("settings that mean nothing here: %s", ", ".join(settings.unknown))
    _require_extra()
    from headrace.services.http_service import new_loop

    try:
        with asyncio.Runner(loop_factory=new_loop()) as runner:
            runner.run(_serve(settings))
    except HeadraceError as error:
        raise _explained(error, settings) from error
    except OSError as error:
        raise Failure(
            f"cannot listen on {settings.host}:{settings.port}",
            why=error.strerror or str(error),
            hint="stop the other program, or choose another port with --override listeners=http://host:port",
        ) from error
    return 0


def _require_extra() -> None:
    try:
        import starlette  # noqa: F401 - only whether it is there
        import uvicorn  # noqa: F401
    except ImportError:
        raise Failure(
            "the schema registry needs the extra 'services'",
            hint="pip install 'headrace[services]'",
        ) from None


def _explained(error: HeadraceError, settings: RegistrySettings) -> Failure:
    from headrace.client.exchange import Disconnected
    from headrace.registry.topic_preparation import UnfitTopic

    if isinstance(error, UnfitTopic):
        return Failure(
            f"cannot keep schemas in {settings.topic}",
            why=str(error),
            hint="mend the topic, or name another one with --override kafkastore.topic=…",
        )
    if isinstance(error, Disconnected):
        return Failure(
            f"cannot reach a broker at {settings.bootstrap_servers}",
            why=str(error),
            hint="start one ('headrace dev'), or correct kafkastore.bootstrap.servers",
        )
    return Failure("the schema registry cannot start", why=str(error))


async def _serve(settings: RegistrySettings) -> None:
    from headrace.client.admin.admin import Admin
    from headrace.registry.http.application import registry_application
    from headrace.registry.instance import Identity, Instance, InstanceSettings
    from headrace.registry.rules.decisions import Registry
    from headrace.registry.state.subjects import Subjects
    from headrace.services.http_service import listen, serve

    def cluster_id() -> str:
        with Admin(settings.bootstrap_servers, timeout_s=_CONNECT_S) as admin:
            return admin.cluster().cluster_id or ""

    with listen(settings.host, settings.port) as listener:
        cluster = await asyncio.to_thread(cluster_id)
        registry = Registry(
            Subjects(), default_level=settings.level, mode_mutability=settings.mode_mutability
        )
        instance = Instance(
            InstanceSettings(
                bootstrap_servers=settings.bootstrap_servers,
                identity=Identity(
                    host=settings.advertised_host,
                    port=settings.port,
                    master_eligibility=settings.is_eligible,
                ),
                topic=settings.topic,
                replication_factor=settings.replication_factor,
                group_id=settings.group_id,
                session_timeout_ms=settings.session_timeout_ms,
                write_timeout_ms=settings.timeout_ms,
            ),
            registry,
        )

        @asynccontextmanager
        async def lifespan() -> AsyncIterator[None]:
            try:
                await instance.open()
                yield
            finally:
                await instance.close()

        def on_ready() -> None:
            _log.info("schema registry is ready on http://%s:%d", settings.host, settings.port)

        app = registry_application(instance, cluster_id=cluster, group_id=settings.group_id)
        await serve(
            app,
            listener,
            lifespan=lifespan,
            on_ready=on_ready,
            headers_timeout_s=settings.headers_timeout_ms / 1000,
            metrics=app.state.metrics,
        )
