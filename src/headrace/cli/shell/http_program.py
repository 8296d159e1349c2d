"""Program that runs an HTTP service until it is told to stop, such as `headrace rest-start`.

Owns what these programs share: flags, settings out of a file and `--override`, logging, the event loop, and what is told when the
start fails. Leaves the settings and the service to the tool.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from headrace.cli.shell.command_line import Failure, ToolParser, read_text
from headrace.errors import HeadraceError, SettingError

_log = logging.getLogger("headrace")


class HttpSettings(Protocol):
    """What the settings of every HTTP program hold."""

    @property
    def host(self) -> str:
        """The address that is listened on."""

    @property
    def port(self) -> int:
        """The port that is listened on."""

    @property
    def bootstrap_servers(self) -> str:
        """The brokers."""

    @property
    def unknown(self) -> Sequence[str]:
        """Names of settings that nobody reads."""


SettingsT = TypeVar("SettingsT", bound=HttpSettings)


@dataclass(frozen=True, slots=True)
class HttpProgram:
    """How one HTTP program is called and explained."""

    command: str
    title: str  # as in "the REST proxy"
    description: str
    settings_page: str
    bootstrap_setting: str  # the setting that names the brokers


def http_parser(program: HttpProgram) -> ToolParser:
    parser = ToolParser(program.command, program.description)
    parser.usage = f"headrace {program.command} [FILE.properties] [options]"
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


def require_services(program: HttpProgram) -> None:
    """Raise Failure where the packages of the extra 'services' are not installed."""
    try:
        import starlette  # noqa: F401 - only whether it is there
        import uvicorn  # noqa: F401
    except ImportError:
        raise Failure(
            f"the {program.title} needs the extra 'services'",
            hint="pip install 'headrace[services]'",
        ) from None


def run_service(
    program: HttpProgram,
    options: argparse.Namespace,
    settings_from: Callable[[Mapping[str, str]], SettingsT],
    serve: Callable[[SettingsT], Coroutine[None, None, None]],
    explained: Callable[[HeadraceError, SettingsT], Failure | None] = lambda *_: None,
) -> int:
    """Read the settings and run `serve` with them. Returns the exit code.

    `explained` turns an error that only this program knows into a Failure.
    """
    from headrace.broker.telemetry.log_output import configure
    from headrace.properties import parse_overrides, parse_properties
    from headrace.services.http_service import new_loop

    try:
        properties = {} if options.file is None else parse_properties(read_text(options.file))
        properties |= parse_overrides(options.override)
        settings = settings_from(properties)
    except SettingError as wrong:
        raise Failure(str(wrong), hint=f"{program.settings_page} lists the settings") from wrong
    configure("json" if options.json_logs else "text", "INFO")
    if settings.unknown:
        _log.warning("settings that mean nothing here: %s", ", ".join(settings.unknown))
    try:
        with asyncio.Runner(loop_factory=new_loop()) as runner:
            runner.run(serve(settings))
    except (HeadraceError, OSError) as error:
        known = explained(error, settings) if isinstance(error, HeadraceError) else None
        raise known or start_failure(program, error, settings) from error
    return 0


def start_failure(
    program: HttpProgram, error: HeadraceError | OSError, settings: HttpSettings
) -> Failure:
    """What a user is told when the service ends with this error."""
    from headrace.client.exchange import Disconnected

    if isinstance(error, Disconnected):
        return Failure(
            f"cannot reach a broker at {settings.bootstrap_servers}",
            why=str(error),
            hint=f"start one ('headrace dev'), or correct {program.bootstrap_setting}",
        )
    if isinstance(error, HeadraceError):
        return Failure(f"the {program.title} cannot start", why=str(error))
    return Failure(
        f"cannot listen on {settings.host}:{settings.port}",
        why=error.strerror or str(error),
        hint="stop the other program, or choose another port with --override listeners=http://host:port",
    )


async def cluster_id_of(bootstrap_servers: str, *, timeout_s: float) -> str:
    """The id of the cluster behind the bootstrap servers. Raises HeadraceError when no broker answers in time."""
    from headrace.client.admin.admin import Admin

    def ask() -> str:
        with Admin(bootstrap_servers, timeout_s=timeout_s) as admin:
            return admin.cluster().cluster_id or ""

    return await asyncio.to_thread(ask)
