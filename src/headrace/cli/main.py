"""`headrace TOOL …`: finds the tool and hands over."""

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Final

from headrace import __version__

TOOLS: Final = {
    "server-start": "run a broker",
    "zookeeper-start": "run a real ZooKeeper",
    "topics": "create, list, describe, alter and delete topics",
    "console-producer": "write lines from stdin to a topic",
    "console-consumer": "print the records of a topic",
    "consumer-groups": "list, describe, delete groups and reset their offsets",
    "configs": "describe and alter configs of topics, brokers, groups, users and clients",
    "get-offsets": "print offsets of partitions",
    "delete-records": "delete the records before an offset",
    "log-dirs": "print what lies in the brokers' log directories",
    "dump-log": "print segment and index files",
    "broker-api-versions": "print the API versions that brokers offer",
    "cluster": "print the id and the endpoints of a cluster",
    "producer-perf-test": "measure how fast records are written",
    "consumer-perf-test": "measure how fast records are read",
    "verifiable-producer": "write numbers and print what became of each",
    "verifiable-consumer": "read in a group and print every event",
    "pipeline": "write, check, run and stop data pipelines on Spark",
    "sql": "query stored records with SQL",
    "demo": "show what Headrace does, end to end",
}

_INTERRUPTED: Final = 130


def main(arguments: list[str] | None = None) -> int:
    """Run a tool. Returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else 1
    if words[0] in ("-V", "--version"):
        print(f"headrace {__version__}")
        return 0
    name = words[0]
    if name not in TOOLS:
        near = get_close_matches(name, TOOLS, 1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        print(
            f"headrace: there is no tool '{name}'.{hint} 'headrace --help' lists them.",
            file=sys.stderr,
        )
        return 1
    try:
        tool = import_module(f"headrace.cli.{name.replace('-', '_')}")
        code: int = tool.run(words[1:])
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone: nothing is left to be said.
        sys.stderr.close()
        return 0
    return code


def usage() -> str:
    """The tools, one line each."""
    lines = ["usage: headrace TOOL [options]    (headrace TOOL --help tells a tool's options)", ""]
    lines += [f"  {name:<18} {text}" for name, text in TOOLS.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
