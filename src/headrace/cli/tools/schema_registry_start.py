"""`headrace schema-registry-start [FILE.properties]`: run a schema registry until it is told to stop."""

from __future__ import annotations

import argparse
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.cli.shell.command_line import Failure, ToolParser, run_tool
from headrace.cli.shell.http_program import (
    HttpProgram,
    cluster_id_of,
    http_parser,
    require_services,
    run_service,
)
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.registry.settings import RegistrySettings

_CONNECT_S: Final = 10.0
_PROGRAM: Final = HttpProgram(
    command="schema-registry-start",
    title="schema registry",
    description="Run a schema registry with Confluent's REST API. Without a file: on 127.0.0.1:8081, for the brokers on "
    "localhost:9092.",
    settings_page="docs/schema-registry.md",
    bootstrap_setting="kafkastore.bootstrap.servers",
)
_log = logging.getLogger("headrace")


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work, needs_options=False)


def make_parser() -> ToolParser:
    return http_parser(_PROGRAM)


def _work(options: argparse.Namespace) -> int:
    require_services(_PROGRAM)
    from headrace.registry.settings import settings_from

    settings_here = partial(settings_from, this_host=socket.gethostname())
    return run_service(_PROGRAM, options, settings_here, _serve, _explained)


def _explained(error: HeadraceError, settings: RegistrySettings) -> Failure | None:
    from headrace.registry.topic_preparation import UnfitTopic

    if isinstance(error, UnfitTopic):
        return Failure(
            f"cannot keep schemas in {settings.topic}",
            why=str(error),
            hint="mend the topic, or name another one with --override kafkastore.topic=…",
        )
    return None


async def _serve(settings: RegistrySettings) -> None:
    from headrace.registry.http.application import registry_application
    from headrace.registry.instance import Identity, Instance, InstanceSettings
    from headrace.registry.rules.decisions import Registry
    from headrace.registry.state.subjects import Subjects
    from headrace.services.http_service import listen, serve

    with listen(settings.host, settings.port) as listener:
        cluster = await cluster_id_of(settings.bootstrap_servers, timeout_s=_CONNECT_S)
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
