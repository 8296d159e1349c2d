"""`headrace get-offsets`: offsets of partitions, by place or by time. Kafka's `kafka-get-offsets`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import (
    FAILED,
    OK,
    Failure,
    ToolParser,
    nearest,
    require_option,
    run_tool,
    tell,
)
from headrace.cli.shell.connecting import add_connection_options, open_admin
from headrace.cli.shell.output import add_output_option, print_json, wants_json
from headrace.cli.topics.topic_choice import include_list

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin
    from headrace.ids import TopicPartition

PLACES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
_RULE = re.compile(r"([^:,]*)(?::(?:(\d*)|(\d*)-(\d*)))?")

Choice = Callable[[str, int], bool]


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("get-offsets", "Print offsets of partitions as topic:partition:offset.")
    add_connection_options(parser, old_names=("broker-list",))
    parser.value("topic", "topics, as a regular expression")
    parser.value("partitions", "only these: 0,1,2", metavar="LIST")
    parser.value(
        "topic-partitions",
        "topics and ranges of partitions: orders:0-3,logs:5-,:0 (the end of a range is excluded)",
        metavar="LIST",
    )
    parser.value(
        "time",
        f"a timestamp in ms, or {', '.join(PLACES)} (default: latest), or the numbers -1 to -6 for these",
        default="latest",
    )
    parser.flag("exclude-internal-topics", "leave out internal topics")
    parser.hidden("offsets")
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    try:
        return _print_offsets(options)
    except Failure as failure:
        tell(f"Error occurred: {failure.what}")
        if failure.hint:
            tell(f"  try: {failure.hint}")
        return FAILED


def _near(admin: Admin, topic: str | None) -> str:
    from headrace.client.admin.topics import list_topics

    return nearest(topic, [each.name for each in list_topics(admin)]) if topic else ""


def _print_offsets(options: argparse.Namespace) -> int:
    require_option(options, "bootstrap-server")
    timestamp = _timestamp(options.time)
    if options.topic_partitions and (options.topic or options.partitions):
        raise Failure("--topic-partitions cannot be used with --topic or --partitions")
    choice = (
        choice_of_list(options.topic_partitions)
        if options.topic_partitions
        else _choice(options.topic, options.partitions)
    )
    from headrace.client.admin.partitions import list_offsets
    from headrace.wire.refusal import Refusal

    with open_admin(options) as admin:
        partitions = _partitions(admin, choice, exclude_internal=options.exclude_internal_topics)
        if not partitions:
            raise Failure(
                "Could not match any topic-partitions with the specified filters",
                hint=_near(admin, options.topic) or "'headrace topics --list' shows what there is",
            )
        rows = []
        found = list_offsets(admin, partitions, timestamp)
        for partition in partitions:
            result = found[partition]
            if isinstance(result, Refusal):
                tell(f"Skip getting offsets for topic-partition {partition} due to error: {result}")
            elif result.offset >= 0:
                rows.append((partition.topic, partition.partition, result.offset))
    if wants_json(options):
        print_json(
            [
                {"topic": topic, "partition": number, "offset": offset}
                for topic, number, offset in rows
            ]
        )
    else:
        for topic, number, offset in rows:
            print(f"{topic}:{number}:{offset}")
    return OK


def _timestamp(text: str) -> int:
    if text in PLACES:
        return PLACES[text]
    try:
        return int(text)
    except ValueError:
        places = " / ".join(f"{number} or {name}" for name, number in PLACES.items())
        raise Failure(
            f"Malformed time argument {text}. Please use {places}, or a specified long format timestamp"
        ) from None


def _choice(topic: str | None, partitions: str | None) -> Choice:
    numbers: set[int] | None = None
    if partitions:
        try:
            numbers = {int(number) for number in partitions.split(",")}
        except ValueError:
            raise Failure(
                "--partitions expects a comma separated list of numeric partition ids,"
                f" but received: {partitions}"
            ) from None
    matches = include_list(topic) if topic else None
    return lambda name, number: (
        (matches is None or matches(name)) and (numbers is None or number in numbers)
    )


def choice_of_list(text: str) -> Choice:
    """`topics:range,…`: a partition is chosen where any of the rules chooses it."""
    rules = [_rule(part) for part in text.split(",")]
    return lambda name, number: any(rule(name, number) for rule in rules)


def _rule(text: str) -> Choice:
    match = _RULE.fullmatch(text)
    if match is None:
        raise Failure(f"Invalid rule specification: {text}")
    topic, only, low, high = match.groups()
    matches = include_list(topic) if topic else None
    first = int(low) if low else 0
    end = int(high) if high else None

    def chosen(name: str, number: int) -> bool:
        if matches is not None and not matches(name):
            return False
        if only:
            return number == int(only)
        return number >= first and (end is None or number < end)

    return chosen


def _partitions(admin: Admin, choice: Choice, *, exclude_internal: bool) -> list[TopicPartition]:
    from headrace.ids import TopicPartition

    found = (
        TopicPartition(topic.name, partition.partition_index)
        for topic in admin.metadata(None).topics
        if topic.name is not None and not (exclude_internal and topic.is_internal)
        for partition in topic.partitions
        if choice(topic.name, partition.partition_index)
    )
    return sorted(found, key=str)  # Kafka's order, in which 10 comes before 2
