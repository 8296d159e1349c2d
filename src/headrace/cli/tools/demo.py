"""`headrace demo`: the platform, shown end to end on this machine. Ends by itself; exit code 0 only if all was verified.

The steps are in `cli.demo.story`.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Final

from headrace.cli.shell.command_line import OK, ToolParser, UsageError, run_tool
from headrace.cli.shell.stopping import stop_signals

_EVENTS: Final = 60_000
_FEWEST_EVENTS: Final = 2_000
_PICTURE: Final = "headrace-demo.svg"


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(_parser(), arguments, _work, needs_options=False)


def _parser() -> ToolParser:
    parser = ToolParser("demo", "Headrace, shown end to end on this machine in about a minute.")
    parser.value(
        "events",
        f"how many events the shop has (default: {_EVENTS:,})",
        type=int,
        default=_EVENTS,
        metavar="N",
    )
    parser.value(
        "picture", f"where the chart goes (default: {_PICTURE})", default=_PICTURE, metavar="FILE"
    )
    parser.flag("without-spark", "leave out the pipeline")
    return parser


def _work(options: argparse.Namespace) -> int:
    if options.events < _FEWEST_EVENTS:
        raise UsageError(f"--events must be {_FEWEST_EVENTS:,} or more")
    from headrace.cli.demo.stage import Stage
    from headrace.cli.demo.story import tell
    from headrace.cli.local.local_servers import Stopped
    from headrace.cli.local.port_reservations import PortReservations

    with stop_signals() as stop, PortReservations() as ports:
        directory = Path(tempfile.mkdtemp(prefix="headrace-demo-"))
        try:
            tell(
                Stage(directory, stop, ports),
                events=options.events,
                picture=None if options.without_spark else Path(options.picture),
            )
        except Stopped:
            return stop.exit_code
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    return stop.exit_code or OK
