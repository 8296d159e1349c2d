"""`headrace delete-records`: delete the records of partitions before an offset. Kafka's `kafka-delete-records`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import (
    OK,
    Failure,
    ToolParser,
    read_text,
    require_option,
    run_tool,
)
from headrace.cli.shell.connecting import add_connection_options, open_admin
from headrace.cli.shell.output import add_output_option, print_json, wants_json
from headrace.cli.shell.progress import Progress

if TYPE_CHECKING:
    from headrace.ids import TopicPartition

AT_ONCE = 50  # partitions in one request
EXAMPLE = '{"partitions": [{"topic": "orders", "partition": 0, "offset": 3}], "version": 1}'


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("delete-records", "Delete the records of partitions before an offset.")
    add_connection_options(parser)
    parser.value(
        "offset-json-file",
        f"which, and before which offset (-1: all): {EXAMPLE}",
        metavar="FILE",
    )
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    require_option(options, "bootstrap-server", "offset-json-file")
    before = read_offsets(options.offset_json_file)
    from headrace.client.admin.partitions import delete_records
    from headrace.wire.refusal import Refusal

    with open_admin(options) as admin:
        if not wants_json(options):
            print("Executing records delete operation", flush=True)
        results: dict[TopicPartition, int | Refusal] = {}
        partitions = sorted(before)
        with Progress("deleting", len(partitions), unit="partitions") as progress:
            for start in range(0, len(partitions), AT_ONCE):
                some = partitions[start : start + AT_ONCE]
                results |= delete_records(admin, {each: before[each] for each in some})
                progress.update(len(results))
    if wants_json(options):
        print_json(
            [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "lowWatermark": None if isinstance(result, Refusal) else result,
                    "error": str(result) if isinstance(result, Refusal) else None,
                }
                for partition, result in results.items()
            ]
        )
        return OK
    print("Records delete operation completed:")
    for partition, result in results.items():
        if isinstance(result, Refusal):
            print(f"partition: {partition}\terror: {result.error_code.name}: {result}")
        else:
            print(f"partition: {partition}\tlow_watermark: {result}")
    return OK


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """What the file asks for. Raises Failure where it is not as it should be."""
    from headrace.ids import TopicPartition

    form = f"this is the form: {EXAMPLE}"
    try:
        document = json.loads(read_text(path))
    except ValueError as wrong:
        raise Failure(
            "The input string is not a valid JSON", why=f"{path}: {wrong}", hint=form
        ) from wrong
    try:
        if document.get("version", 1) != 1:
            raise Failure(f"Not supported version field value {document['version']}")
        wanted = [
            (TopicPartition(each["topic"], int(each["partition"])), int(each["offset"]))
            for each in document["partitions"]
        ]
    except KeyError as missing:
        what, why = f"{path} does not say which records to delete", f"{missing} is missing"
        raise Failure(what, why=why, hint=form) from missing
    except (AttributeError, TypeError, ValueError) as wrong:
        raise Failure(f"{path} does not say which records to delete", hint=form) from wrong
    before = dict(wanted)
    if len(before) != len(wanted):
        names = [partition for partition, _ in wanted]
        doubled = ", ".join(str(each) for each in before if names.count(each) > 1)
        raise Failure(f"Offset json file contains duplicate topic partitions: {doubled}")
    return before
