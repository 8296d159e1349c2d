"""How a tool reads its command line, and how it ends: Kafka's wording for mistakes, one place for every failure.

A mistake in the options is told on stderr with the usage, exit code 1. A failure is told on stderr in up to three lines:
what happened, why, what to do. Nothing here knows what a tool does.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

from headrace import __version__
from headrace.errors import HeadraceError

KAFKA_VERSION: Final = "4.3.0"  # whose options and output these are
OK: Final = 0
FAILED: Final = 1


class UsageError(Exception):
    """The options do not fit together."""


class Failure(Exception):
    """The tool could not do its work."""

    def __init__(self, what: str, *, why: str = "", hint: str = "") -> None:
        self.what = what
        self.why = why
        self.hint = hint
        super().__init__(what)


class ToolParser(argparse.ArgumentParser):
    """Options in Kafka's manner: unambiguous prefixes and `--name=value` are accepted, mistakes are UsageErrors."""

    def __init__(self, tool: str, description: str) -> None:
        super().__init__(
            prog=f"headrace {tool}",
            usage=f"headrace {tool} [options]",
            description=description,
            formatter_class=lambda prog: argparse.HelpFormatter(
                prog, max_help_position=34, width=100
            ),
            add_help=False,
        )
        self.tool = tool
        self.add_argument("--help", "-h", action="help", help="print this and exit")
        self.add_argument(
            "--version",
            action="version",
            version=f"{KAFKA_VERSION} (headrace {__version__})",
            help="print the Kafka version whose tool this is, and exit",
        )

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ").split(" ")[0]
        if unknown != message.split(" ", maxsplit=1)[0] and unknown.startswith("--"):
            known = [name for name in self._option_string_actions if name.startswith("--")]
            hint = nearest(unknown.partition("=")[0], known)
            raise UsageError(f"{unknown[2:]} is not a recognized option{hint and '; ' + hint}")
        raise UsageError(message)

    def value(self, name: str, help_text: str, **more: Any) -> None:
        """An option with a value."""
        self.add_argument(f"--{name}", help=help_text, **more)

    def flag(self, name: str, help_text: str) -> None:
        """An option without a value."""
        self.add_argument(f"--{name}", action="store_true", help=help_text)

    def hidden(self, *names: str, **more: Any) -> None:
        """Options that are understood but not advertised."""
        for name in names:
            self.add_argument(f"--{name}", help=argparse.SUPPRESS, **more)


def run_tool(
    parser: ToolParser,
    arguments: list[str],
    work: Callable[[argparse.Namespace], int],
    *,
    needs_options: bool = True,
) -> int:
    """Parse, work, and turn whatever goes wrong into words and an exit code."""
    if needs_options and not arguments:
        _tell_mistake(parser, parser.description or "")
        return FAILED
    try:
        code = work(parser.parse_args(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
        return OK
    except UsageError as mistake:
        _tell_mistake(parser, str(mistake))
    except Failure as failure:
        tell_failure(parser.tool, failure)
    except HeadraceError as error:
        tell_failure(parser.tool, explained(error))
    except SystemExit as ended:  # argparse, after --help and --version
        return int(ended.code or 0)
    else:
        return code
    return FAILED


def abandon_stdout() -> None:
    """Whoever read our output has gone. Python flushes it once more at its end, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell_mistake(parser: ToolParser, mistake: str) -> None:
    tell(mistake, f"usage: {parser.usage}    ('headrace {parser.tool} --help' lists them)")


def tell(*lines: str) -> None:
    """Say something beside the result."""
    sys.stdout.flush()
    for line in lines:
        print(line, file=sys.stderr)


def tell_failure(tool: str, failure: Failure) -> None:
    tell(f"headrace {tool}: {failure.what}")
    if failure.why:
        tell(f"  why: {failure.why}")
    if failure.hint:
        tell(f"  try: {failure.hint}")


def read_text(path: str) -> str:
    """What a file says that an option names. Raises Failure."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise Failure(f"cannot read {path}", why=error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise Failure(f"cannot read {path}", why="it is no text in UTF-8") from error


def explained(error: HeadraceError) -> Failure:
    """A failure of the client as a person would tell it."""
    from headrace.client.brokers import Unreachable
    from headrace.client.exchange import Disconnected, VersionNotOffered
    from headrace.wire.refusal import Refused

    if isinstance(error, Unreachable):
        return Failure(
            f"cannot reach a broker at {', '.join(map(str, error.addresses))}",
            why=error.reason,
            hint="check --bootstrap-server; 'headrace server-start' starts a broker on localhost:9092",
        )
    if isinstance(error, Disconnected):
        return Failure(
            "the connection to a broker broke",
            why=str(error),
            hint="run the command again; if it stays so, look at the broker's log",
        )
    if isinstance(error, VersionNotOffered):
        return Failure(
            "the broker does not offer what this needs",
            why=str(error),
            hint="'headrace broker-api-versions' shows what it offers",
        )
    if isinstance(error, Refused):
        return Failure(str(error), why=f"the broker answered {error.error_code.name}")
    return Failure(str(error))


# Kafka's checks, in its words.


def was_given(options: argparse.Namespace, name: str) -> bool:
    value = _value(options, name)
    return value is not None and value is not False and value != []


def require_option(options: argparse.Namespace, *names: str) -> None:
    for name in names:
        if not was_given(options, name):
            raise UsageError(f'Missing required argument "[{name}]"')


def forbid_together(options: argparse.Namespace, name: str, others: Iterable[str]) -> None:
    """`name` excludes each of the others."""
    if was_given(options, name):
        for other in others:
            if other != name and was_given(options, other):
                raise UsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')


def renamed(options: argparse.Namespace, old: str, new: str) -> Any:
    """The value of an option that has a new name and an old one; using the old one is remarked upon."""
    if not was_given(options, old):
        return _value(options, new)
    forbid_together(options, old, [new])
    tell(
        f"Option --{old} is deprecated and will be removed in a future version. Use --{new} instead."
    )
    return _value(options, old)


def _value(options: argparse.Namespace, name: str) -> Any:
    return getattr(options, name.replace("-", "_"))


def nearest(name: str, names: Iterable[str]) -> str:
    """A sentence with the known name that is most like this one, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(names), 1)
    return f"did you mean '{near[0]}'?" if near else ""
