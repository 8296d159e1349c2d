"""`headrace log-dirs`: what lies in the brokers' log directories. Kafka's `kafka-log-dirs`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from headrace.cli.shell.command_line import (
    OK,
    ToolParser,
    UsageError,
    require_option,
    run_tool,
    tell,
)
from headrace.cli.shell.connecting import add_connection_options, open_admin
from headrace.cli.shell.output import add_output_option, print_json, wants_json

if TYPE_CHECKING:
    from headrace.client.admin.partitions import LogDir


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("log-dirs", "Print what lies in the brokers' log directories.")
    parser.flag("describe", "describe the log directories")
    add_connection_options(parser)
    parser.value(
        "topic-list", "only these topics: a,b,c (default: all)", metavar="LIST", default=""
    )
    parser.value(
        "broker-list", "only these brokers: 0,1,2 (default: all)", metavar="LIST", default=""
    )
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    require_option(options, "bootstrap-server", "describe")
    topics = {name for name in options.topic_list.split(",") if name}
    try:
        asked = {int(number) for number in options.broker_list.split(",") if number}
    except ValueError:
        raise UsageError(f"--broker-list: '{options.broker_list}' is not a list of ids") from None
    from headrace.client.admin.partitions import describe_log_dirs

    with open_admin(options) as admin:
        existing = set(admin.cluster().nodes)
        if asked - existing:
            tell(
                f"ERROR: The given brokers do not exist from --broker-list: {_joined(asked - existing)}."
                f" Current existent brokers: {_joined(existing)}"
            )
            return 1
        brokers = sorted(asked or existing)
        if not wants_json(options):
            print("Querying brokers for log directories information", flush=True)
        described = {
            "version": 1,
            "brokers": [
                {
                    "broker": broker,
                    "logDirs": [
                        _log_dir(each, topics) for each in describe_log_dirs(admin, broker)
                    ],
                }
                for broker in brokers
            ],
        }
    if wants_json(options):
        print_json(described)
    else:
        print(f"Received log directory information from brokers {_joined(brokers)}")
        print(json.dumps(described, separators=(",", ":")))
    return OK


def _log_dir(log_dir: LogDir, topics: set[str]) -> dict[str, Any]:
    return {
        "logDir": log_dir.path,
        "error": None if log_dir.error is None else log_dir.error.error_code.name,
        "partitions": [
            {
                "partition": str(replica.partition),
                "size": replica.size_bytes,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for replica in sorted(log_dir.replicas, key=lambda replica: replica.partition)
            if not topics or replica.partition.topic in topics
        ],
    }


def _joined(numbers: set[int] | list[int]) -> str:
    return ",".join(map(str, sorted(numbers)))
