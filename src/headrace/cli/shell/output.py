"""What a tool prints as its result: Kafka's text, or JSON with `--output json`."""

import argparse
import sys
from collections.abc import Sequence

from headrace.cli.shell.command_line import ToolParser

MISSING = "-"


def add_output_option(parser: ToolParser) -> None:
    parser.value(
        "output",
        "text (the default, as Kafka prints it) or json",
        choices=("text", "json"),
        default="text",
    )


def wants_json(options: argparse.Namespace) -> bool:
    return bool(options.output == "json")


def print_json(value: object) -> None:
    """One JSON document: on one line in a pipe, indented on a terminal."""
    import json

    print(json.dumps(value, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False))


def cell(value: object) -> str:
    """A value in a table; `-` where there is none."""
    return MISSING if value is None or value == "" else str(value)


def width(title_minimum: int, values: Sequence[object]) -> int:
    """The width of a column that must hold its values and has a least width."""
    return max([title_minimum, *(len(str(value)) for value in values)])
