"""`headrace top`: a live screen of a cluster: brokers, topics, groups with their lag, what is under-replicated.

On a terminal it stays until Ctrl-C; in a pipe, or with `--once`, it prints one view as text and ends. Any Kafka cluster will do.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

from headrace.cli.shell.command_line import OK, ToolParser, UsageError, run_tool
from headrace.cli.shell.connecting import add_connection_options, open_admin
from headrace.cli.shell.output import add_output_option, print_json, wants_json

if TYPE_CHECKING:
    from headrace.cli.monitor.cluster_sample import Sample, Sampler

DEFAULT_BROKER: Final = "localhost:9092"
_ANSWER_S: Final = 2.0


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(_parser(), arguments, _work, needs_options=False)


def _parser() -> ToolParser:
    parser = ToolParser("top", "Show what a cluster does, live: brokers, topics, groups and lag.")
    add_connection_options(parser, default=DEFAULT_BROKER)
    parser.value(
        "interval", "seconds between two looks (default: 1)", type=float, default=1.0, metavar="S"
    )
    parser.flag("once", "print one view as text, and end")
    parser.flag("internal", "show internal topics, too")
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    if options.interval <= 0:
        raise UsageError("--interval must be more than 0")
    from headrace.cli.monitor.cluster_sample import Sampler

    with open_admin(options, timeout_s=_ANSWER_S) as admin:
        sampler = Sampler(admin, with_internal=options.internal)
        if options.once or wants_json(options) or not sys.stdout.isatty():
            _print_once(sampler, options)
        else:
            _stay(sampler, options.interval)
    return OK


def _print_once(sampler: Sampler, options: argparse.Namespace) -> None:
    from headrace.cli.monitor.cluster_view import view_of
    from headrace.cli.monitor.top_tables import plain_lines

    before = sampler.take()
    time.sleep(options.interval)
    view = view_of(before, sampler.take())
    if wants_json(options):
        print_json(view.as_json())
    else:
        print("\n".join(plain_lines(view)))


def _stay(sampler: Sampler, interval_s: float) -> None:
    """Show views until somebody interrupts; rich gives the terminal back as it was, whatever ends this."""
    from rich.console import Console
    from rich.live import Live

    from headrace.cli.monitor.cluster_view import view_of
    from headrace.cli.monitor.top_tables import screen
    from headrace.errors import HeadraceError

    # Like Ctrl-C: the screen is left in good order.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console()
    before: Sample = sampler.take()
    # A first picture soon: nobody likes to wait for it.
    time.sleep(min(interval_s, 0.5))
    with Live(console=console, screen=True, auto_refresh=False, transient=True) as live:
        view = view_of(before, before)
        while True:
            remark = ""
            try:
                after = sampler.take()
                view = view_of(before, after)
                before = after
            except HeadraceError as error:
                remark = str(error)  # and the last view stays
            live.update(screen(view, console.width, console.height, remark), refresh=True)
            time.sleep(interval_s)
