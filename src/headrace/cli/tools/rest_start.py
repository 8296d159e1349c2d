"""`headrace rest-start [FILE.properties]`: run a REST proxy until it is told to stop."""

from __future__ import annotations

import argparse
import gc
import logging
from typing import TYPE_CHECKING, Final

from headrace.cli.shell.command_line import ToolParser, run_tool
from headrace.cli.shell.http_program import (
    HttpProgram,
    cluster_id_of,
    http_parser,
    require_services,
    run_service,
)
from headrace.errors import SettingError

if TYPE_CHECKING:
    from headrace.rest.settings import RestSettings

_CONNECT_S: Final = 10.0
_COLLECTED_AFTER_ALLOCATIONS: Final = 50_000
_PROGRAM: Final = HttpProgram(
    command="rest-start",
    title="REST proxy",
    description="Run a REST proxy with Confluent's REST API, versions 2 and 3. Without a file: on 127.0.0.1:8082, for "
    "the brokers on localhost:9092.",
    settings_page="docs/rest-proxy.md",
    bootstrap_setting="bootstrap.servers",
)
_log = logging.getLogger("headrace")


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work, needs_options=False)


def make_parser() -> ToolParser:
    return http_parser(_PROGRAM)


def _work(options: argparse.Namespace) -> int:
    require_services(_PROGRAM)
    from headrace.rest.settings import settings_from

    return run_service(_PROGRAM, options, settings_from, _serve)


async def _serve(settings: RestSettings) -> None:
    from headrace.client.librdkafka import SettingRefused
    from headrace.rest.proxy import RestProxy
    from headrace.services.http_service import listen, serve

    with listen(settings.host, settings.port) as listener:
        timeout_s = min(_CONNECT_S, settings.init_timeout_ms / 1000)
        cluster = await cluster_id_of(settings.bootstrap_servers, timeout_s=timeout_s)
        try:
            proxy = RestProxy(settings, cluster_id=cluster)
        except SettingRefused as wrong:
            raise SettingError(f"a setting of producer.* or client.*: {wrong}") from wrong

        def on_ready() -> None:
            # Records under way are many objects and no garbage: looking through them often costs more than serving them.
            gc.freeze()
            gc.set_threshold(_COLLECTED_AFTER_ALLOCATIONS)
            _log.info("REST proxy is ready on http://%s:%d", settings.host, settings.port)

        await serve(
            proxy.application(),
            listener,
            lifespan=proxy.opened,
            on_ready=on_ready,
            on_stop=proxy.stop,
            max_connections=settings.max_connections,
            headers_timeout_s=settings.headers_timeout_ms / 1000,
            metrics=proxy.metrics,
        )
