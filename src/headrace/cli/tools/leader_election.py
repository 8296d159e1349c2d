"""`headrace leader-election`: have leaders of partitions elected. Kafka's `kafka-leader-election`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import (
    FAILED,
    OK,
    Failure,
    ToolParser,
    UsageError,
    read_text,
    renamed,
    run_tool,
    tell,
    was_given,
)
from headrace.cli.shell.connecting import (
    add_connection_options,
    add_zookeeper_option,
    ask_zookeeper,
    open_admin,
)
from headrace.cli.shell.output import add_output_option, print_json, wants_json

if TYPE_CHECKING:
    from headrace.ids import TopicPartition
    from headrace.wire.refusal import Refusal

EXAMPLE = '{"partitions": [{"topic": "orders", "partition": 0}]}'
TYPES = ("preferred", "unclean")


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("leader-election", "Have leaders of partitions elected.")
    add_connection_options(parser)
    add_zookeeper_option(parser)
    parser.hidden("admin.config")
    parser.value(
        "election-type",
        "preferred: the first replica, where it does not lead; unclean: any living replica, where"
        " none leads, at the price of the records that only others have (required)",
        type=str.lower,
        choices=TYPES,
    )
    # The tool that Kafka had for this until 2.4, and its way of saying so.
    parser.hidden("preferred-replica-election", action="store_true")
    parser.value("topic", "the topic, with --partition", metavar="T")
    parser.value("partition", "the partition", type=int, metavar="P")
    parser.flag("all-topic-partitions", "every partition that needs it")
    parser.value("path-to-json-file", f"these partitions: {EXAMPLE}", metavar="FILE")
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    election_type = _checked_type(options)
    options.command_config = renamed(options, "admin.config", "command-config")
    from headrace.client.admin.reassignments import ElectionType, elect_leaders
    from headrace.ids import TopicPartition

    partitions = None
    if options.path_to_json_file is not None:
        partitions = read_partitions(options.path_to_json_file)
    elif options.topic is not None:
        partitions = [TopicPartition(options.topic, options.partition)]
    ask_zookeeper(options)
    with open_admin(options) as admin:
        results = elect_leaders(admin, ElectionType[election_type], partitions)
    if wants_json(options):
        return _print_json(results)
    return _print(election_type, results)


def _checked_type(options: argparse.Namespace) -> str:
    """The election type; options that miss or exclude each other are told in Kafka's words."""
    if options.preferred_replica_election:
        if options.election_type not in (None, "preferred"):
            raise UsageError("--preferred-replica-election is an election of the type preferred")
        options.election_type = "preferred"
        if options.path_to_json_file is None and options.topic is None:
            options.all_topic_partitions = True
    missing = [
        name for name in ("bootstrap-server", "election-type") if not was_given(options, name)
    ]
    if "bootstrap-server" in missing and options.zookeeper is not None:
        missing.remove("bootstrap-server")
    if missing:
        raise UsageError(f"Missing required option(s): {', '.join(missing)}")
    ways = ("topic", "all-topic-partitions", "path-to-json-file")
    chosen = [name for name in ways if was_given(options, name)]
    if len(chosen) != 1:
        raise UsageError(
            f"One and only one of the following options is required: {', '.join(ways)}"
        )
    if options.topic is not None and options.partition is None:
        raise UsageError("Missing required option(s): partition")
    if options.partition is not None and options.topic is None:
        raise UsageError("Option partition is only allowed if topic is used")
    return str(options.election_type).upper()


def read_partitions(path: str) -> list[TopicPartition]:
    """What the file asks for. Raises Failure."""
    from headrace.ids import TopicPartition

    form = f"this is the form: {EXAMPLE}"
    try:
        document = json.loads(read_text(path))
    except ValueError as wrong:
        raise Failure(
            "Replica election data is empty", why=f"{path}: {wrong}", hint=form
        ) from wrong
    try:
        partitions = [
            TopicPartition(str(each["topic"]), int(each["partition"]))
            for each in document["partitions"]
        ]
    except (KeyError, TypeError, ValueError) as wrong:
        raise Failure(
            'Replica election data is missing "partitions" field',
            why=f"{path}: {wrong} is missing" if isinstance(wrong, KeyError) else "",
            hint=form,
        ) from wrong
    doubled = sorted({each for each in partitions if partitions.count(each) > 1})
    if doubled:
        names = ", ".join(map(str, doubled))
        raise Failure(f"Replica election data contains duplicate partitions: [{names}]")
    return partitions


def _print(election_type: str, results: dict[TopicPartition, Refusal | None]) -> int:
    elected = [each for each, refusal in results.items() if refusal is None]
    needless = [each for each, refusal in results.items() if _is_needless(refusal)]
    failed = {
        each: refusal
        for each, refusal in sorted(results.items())
        if refusal is not None and not _is_needless(refusal)
    }
    if elected:
        print(
            f"Successfully completed leader election ({election_type}) for partitions {_names(elected)}"
        )
    if needless:
        print(f"Valid replica already elected for partitions {_names(needless)}")
    for partition, refusal in failed.items():
        print(
            f"Error completing leader election ({election_type}) for partition: {partition}:"
            f" {refusal.error_code.name}: {refusal}"
        )
    if failed:
        tell(f"{len(failed)} replica(s) could not be elected")
        return FAILED
    return OK


def _print_json(results: dict[TopicPartition, Refusal | None]) -> int:
    print_json(
        [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "elected": refusal is None,
                "error": None
                if refusal is None or _is_needless(refusal)
                else refusal.error_code.name,
            }
            for partition, refusal in sorted(results.items())
        ]
    )
    return OK if all(each is None or _is_needless(each) for each in results.values()) else FAILED


def _is_needless(refusal: Refusal | None) -> bool:
    return refusal is not None and refusal.error_code.name == "ELECTION_NOT_NEEDED"


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
