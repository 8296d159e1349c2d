"""`headrace rest-start [FILE.properties]`: run a REST proxy until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
from typing import TYPE_CHECKING, Final

from headrace.cli.shell.command_line import Failure, ToolParser, read_text, run_tool
from headrace.errors import HeadraceError, SettingError

if TYPE_CHECKING:
    from headrace.rest.settings import RestSettings

_CONNECT_S: Final = 10.0
_COLLECTED_AFTER_ALLOCATIONS: Final = 50_000
_log = logging.getLogger("headrace")


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work, needs_options=False)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "rest-start",
        "Run a REST proxy with Confluent's REST API, versions 2 and 3. Without a file: on 127.0.0.1:8082, for the "
        "brokers on localhost:9092.",
    )
    parser.usage = "headrace rest-start [FILE.properties] [options]"
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

    _require_extra()
    from headrace.rest.settings import settings_from
    from headrace.services.http_service import new_loop

    try:
        properties = {} if options.file is None else parse_properties(read_text(options.file))
        properties |= parse_overrides(options.override)
        settings = settings_from(properties)
    except SettingError as wrong:
        raise Failure(str(wrong), hint="docs/rest-proxy.md lists the settings") from wrong
    configure("json" if options.json_logs else "text", "INFO")
    if settings.unknown:
        _log.warning("settings that mean nothing here: %s", ", ".join(settings.unknown))
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
            "the REST proxy needs the extra 'services'",
            hint="pip install 'headrace[services]'",
        ) from None


def _explained(error: HeadraceError, settings: RestSettings) -> Failure:
    from headrace.client.exchange import Disconnected

    if isinstance(error, Disconnected):
        return Failure(
            f"cannot reach a broker at {settings.bootstrap_servers}",
            why=str(error),
            hint="start one ('headrace dev'), or correct bootstrap.servers",
        )
    return Failure("the REST proxy cannot start", why=str(error))


async def _serve(settings: RestSettings) -> None:
    from headrace.client.admin.admin import Admin
    from headrace.client.librdkafka import SettingRefused
    from headrace.rest.proxy import RestProxy
    from headrace.services.http_service import listen, serve

    def cluster_id() -> str:
        timeout_s = min(_CONNECT_S, settings.init_timeout_ms / 1000)
        with Admin(settings.bootstrap_servers, timeout_s=timeout_s) as admin:
            return admin.cluster().cluster_id or ""

    with listen(settings.host, settings.port) as listener:
        cluster = await asyncio.to_thread(cluster_id)
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
