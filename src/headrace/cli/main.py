"""`headrace TOOL …`: finds the tool and hands over.

Ctrl-C ends the program on the spot, without a trace, unless the tool has something to put in order first: such a tool
asks for it (`stopping`), or stands in `CLEANS_UP`.
"""

from __future__ import annotations  # so that an old Python gets as far as to be told

import os
import signal
import sys
from typing import Final

from headrace import __version__

OLDEST_PYTHON: Final = (3, 11)

TOOLS: Final = {
    "server-start": "run a broker",
    "zookeeper-start": "run a real ZooKeeper",
    "schema-registry-start": "run a schema registry",
    "rest-start": "run a REST proxy",
    "storage": "prepare log directories for a broker without ZooKeeper",
    "topics": "create, list, describe, alter and delete topics",
    "console-producer": "write lines from stdin to a topic",
    "console-consumer": "print the records of a topic",
    "consumer-groups": "list, describe, delete groups and reset their offsets",
    "configs": "describe and alter configs of topics, brokers, groups, users and clients",
    "get-offsets": "print offsets of partitions",
    "delete-records": "delete the records before an offset",
    "reassign-partitions": "move partitions to other brokers and log directories",
    "leader-election": "have leaders of partitions elected",
    "log-dirs": "print what lies in the brokers' log directories",
    "dump-log": "print segment and index files",
    "transactions": "look at transactions, and end hanging ones",
    "broker-api-versions": "print the API versions that brokers offer",
    "cluster": "print the id and the endpoints of a cluster",
    "features": "print and change the levels of the cluster's features",
    "producer-perf-test": "measure how fast records are written",
    "consumer-perf-test": "measure how fast records are read",
    "verifiable-producer": "write numbers and print what became of each",
    "verifiable-consumer": "read in a group and print every event",
    "completion": "print what makes a shell complete these commands",
    "pipeline": "write, check, run and stop data pipelines on Spark",
    "sql": "query stored records with SQL",
    "dev": "run a broker, or a whole cluster, for this terminal's time",
    "top": "show what a cluster does, live",
    "doctor": "check this machine and its set-up",
    "demo": "show what Headrace does, end to end",
}

# These end by KeyboardInterrupt, from their first line on.
CLEANS_UP: Final = frozenset({"demo", "dev", "pipeline", "sql", "top"})
_INTERRUPTED: Final = 130


def main(arguments: list[str] | None = None) -> int:
    """Run a tool, by default as the command line says. Returns the exit code."""
    if sys.version_info < OLDEST_PYTHON:
        return _tell_old_python()
    if arguments is None:
        _end_at_once_on_interrupt()
        try:
            code = _run(sys.argv[1:])
            _end_at_once_on_interrupt()
        except KeyboardInterrupt:  # between the tool's end and ours
            code = _INTERRUPTED
        return code
    return _run(arguments)


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else 1
    if words[0] in ("-V", "--version"):
        print(f"headrace {__version__}")
        return 0
    name = words[0]
    if name not in TOOLS:
        from difflib import get_close_matches

        near = get_close_matches(name, TOOLS, 1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        print(
            f"headrace: there is no tool '{name}'.{hint} 'headrace --help' lists them.",
            file=sys.stderr,
        )
        return 1
    try:
        from importlib import import_module

        tool = import_module(f"headrace.cli.tools.{name.replace('-', '_')}")
        if name in CLEANS_UP and signal.getsignal(signal.SIGINT) is _end_at_once:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code: int = tool.run(words[1:])
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone: nothing is left to be said.
        sys.stderr.close()
        return 0
    return code


def _end_at_once_on_interrupt() -> None:
    """Who started us with Ctrl-C ignored wants it so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


def _end_at_once(_number: int, _frame: object) -> None:
    os._exit(_INTERRUPTED)


def _tell_old_python() -> int:
    ours, needed = (".".join(map(str, each[:2])) for each in (sys.version_info, OLDEST_PYTHON))
    print(f"headrace: cannot run on Python {ours}", file=sys.stderr)
    print(f"  why: it needs Python {needed} or newer; this is {sys.executable}", file=sys.stderr)
    print(f"  try: make PYTHON=/path/to/python{needed} setup", file=sys.stderr)
    return 1


def usage() -> str:
    """The tools, one line each."""
    lines = ["usage: headrace TOOL [options]    (headrace TOOL --help tells a tool's options)", ""]
    lines += [f"  {name:<20} {text}" for name, text in TOOLS.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
