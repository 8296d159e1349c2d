"""`headrace transactions`: look at transactions, and end those that hang. Kafka's `kafka-transactions`."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from headrace.cli.shell.command_line import (
    OK,
    Failure,
    ToolParser,
    UsageError,
    require_option,
    run_tool,
)
from headrace.cli.shell.connecting import add_connection_options, open_admin
from headrace.cli.shell.output import add_output_option, print_json, wants_json

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin
    from headrace.client.admin.transactions import OpenTransaction
    from headrace.wire.messages.describe_producers import ProducerState

LIST_TITLES: Final = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBE_TITLES: Final = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
PRODUCER_TITLES: Final = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
HANGING_TITLES: Final = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
NONE: Final = "None"
_MINUTE_MS: Final = 60_000


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("transactions", "Look at transactions, and end those that hang.")
    parser.usage = f"headrace transactions {{{','.join(COMMANDS)}}} [options]"
    parser.add_argument(
        "command",
        choices=tuple(COMMANDS),
        metavar="COMMAND",
        help=(
            "list: transactional ids; describe: one of them; describe-producers: the producers of a partition;"
            " find-hanging: transactions that no coordinator will end; abort: end one in one partition;"
            " forceTerminateTransaction: abort what is open under a transactional id, and fence its producer"
        ),
    )
    add_connection_options(parser)
    parser.value("transactional-id", "the transactional id", metavar="ID")
    parser.value(
        "transactional-id-pattern", "list: only ids that match it as a whole", metavar="REGEX"
    )
    parser.value(
        "duration-filter",
        "list: only transactions that are open for longer than this (default: all)",
        type=int,
        metavar="MS",
        default=-1,
    )
    parser.value("topic", "the topic", metavar="T")
    parser.value("partition", "the partition", type=int, metavar="P")
    parser.value("broker-id", "ask this replica, or search on this broker", type=int, metavar="B")
    parser.value(
        "max-transaction-timeout",
        "find-hanging: only what nobody has written to for so many minutes (default: 15)",
        type=int,
        metavar="MIN",
        default=15,
    )
    parser.value("start-offset", "abort: where the transaction begins", type=int, metavar="O")
    parser.value("producer-id", "abort: instead of the offset", type=int, metavar="ID")
    parser.value("producer-epoch", "abort: the producer's epoch", type=int, metavar="E")
    parser.value("coordinator-epoch", "abort: the coordinator's epoch", type=int, metavar="E")
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    require_option(options, "bootstrap-server")
    return COMMANDS[options.command](options)


def _list(options: argparse.Namespace) -> int:
    matches = _pattern(options.transactional_id_pattern)
    from headrace.client.admin.transactions import list_transactions

    with open_admin(options) as admin:
        found = list_transactions(admin, longer_than_ms=options.duration_filter)
    rows = [
        (each.transactional_id, each.coordinator_id, each.producer_id, each.state)
        for each in found
        if matches(each.transactional_id)
    ]
    return _print(options, LIST_TITLES, rows)


def _pattern(text: str | None) -> Callable[[str], object]:
    if text is None:
        return lambda _: True
    try:
        return re.compile(text).fullmatch
    except re.error as wrong:
        raise UsageError(f"{text} is not a regular expression: {wrong}") from wrong


def _describe(options: argparse.Namespace) -> int:
    require_option(options, "transactional-id")
    from headrace.client.admin.transactions import describe_transaction
    from headrace.wire.refusal import Refused

    transactional_id = options.transactional_id
    with open_admin(options) as admin:
        try:
            found = describe_transaction(admin, transactional_id)
        except Refused as refused:
            raise Failure(
                f"Failed to describe transaction state of transactional-id `{transactional_id}`",
                why=f"{refused.error_code.name}: {refused}",
            ) from refused
    duration = NONE if found.start_ms is None else _now_ms() - found.start_ms
    row = (
        found.coordinator_id,
        found.transactional_id,
        found.producer_id,
        found.producer_epoch,
        found.state,
        found.timeout_ms,
        NONE if found.start_ms is None else found.start_ms,
        duration,
        ",".join(map(str, found.partitions)),
    )
    return _print(options, DESCRIBE_TITLES, [row])


def _describe_producers(options: argparse.Namespace) -> int:
    require_option(options, "topic", "partition")
    with open_admin(options) as admin:
        producers = _producers_of(admin, options)
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            NONE if each.current_txn_start_offset < 0 else each.current_txn_start_offset,
        )
        for each in producers
    ]
    return _print(options, PRODUCER_TITLES, rows)


def _producers_of(admin: Admin, options: argparse.Namespace) -> Sequence[ProducerState]:
    from headrace.client.admin.transactions import describe_producers
    from headrace.ids import TopicPartition
    from headrace.wire.refusal import Refusal

    partition = TopicPartition(options.topic, options.partition)
    broker_id = options.broker_id
    found = describe_producers(admin, [partition], broker_id)[partition]
    if isinstance(found, Refusal):
        asked = "leader" if broker_id is None else f"broker {broker_id}"
        raise Failure(
            f"Failed to describe producers for partition {partition} on {asked}",
            why=f"{found.error_code.name}: {found}",
        )
    return found


def _abort(options: argparse.Namespace) -> int:
    require_option(options, "topic", "partition")
    if options.start_offset is None and options.producer_id is None:
        raise UsageError(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above)"
            " or with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if options.start_offset is None:
        require_option(options, "producer-epoch", "coordinator-epoch")
    from headrace.client.admin.transactions import abort_transaction
    from headrace.ids import TopicPartition
    from headrace.wire.refusal import Refused

    partition = TopicPartition(options.topic, options.partition)
    with open_admin(options) as admin:
        producer_id, producer_epoch, coordinator_epoch = _to_abort(admin, options)
        try:
            abort_transaction(
                admin,
                partition,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                # Before its first marker a producer has none; 0 is not above any coordinator's.
                coordinator_epoch=max(0, coordinator_epoch),
            )
        except Refused as refused:
            raise Failure(
                f"Failed to abort the transaction of producer {producer_id} in {partition}",
                why=f"{refused.error_code.name}: {refused}",
            ) from refused
    if wants_json(options):
        print_json({"aborted": str(partition), "producerId": producer_id})
    return OK


def _to_abort(admin: Admin, options: argparse.Namespace) -> tuple[int, int, int]:
    """Producer id, its epoch and the coordinator's."""
    if options.start_offset is None:
        return options.producer_id, options.producer_epoch, options.coordinator_epoch
    options.broker_id = None  # the leader's word counts
    for each in _producers_of(admin, options):
        if each.current_txn_start_offset == options.start_offset:
            return each.producer_id, each.producer_epoch, each.coordinator_epoch
    raise Failure(
        f"Could not find any open transactions starting at offset {options.start_offset} on partition"
        f" {options.topic}-{options.partition}"
    )


def _find_hanging(options: argparse.Namespace) -> int:
    if options.topic is None and options.broker_id is None:
        raise UsageError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if options.partition is not None and options.topic is None:
        raise UsageError("The --partition argument requires --topic to be provided")
    from headrace.client.admin.transactions import find_hanging, partitions_to_search

    with open_admin(options) as admin:
        partitions = partitions_to_search(
            admin, options.topic, options.partition, options.broker_id
        )
        now_ms = _now_ms()
        found = find_hanging(
            admin,
            partitions,
            broker_id=options.broker_id,
            idle_ms=options.max_transaction_timeout * _MINUTE_MS,
            now_ms=now_ms,
        )
    return _print(options, HANGING_TITLES, [_hanging_row(each, now_ms) for each in found])


def _hanging_row(hanging: OpenTransaction, now_ms: int) -> tuple[object, ...]:
    producer = hanging.producer
    return (
        hanging.partition.topic,
        hanging.partition.partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
        producer.last_timestamp,
        (now_ms - producer.last_timestamp) // _MINUTE_MS,
    )


def _terminate(options: argparse.Namespace) -> int:
    require_option(options, "transactional-id")
    from headrace.client.admin.transactions import terminate_transaction
    from headrace.wire.refusal import Refused

    transactional_id = options.transactional_id
    with open_admin(options) as admin:
        try:
            terminate_transaction(admin, transactional_id)
        except Refused as refused:
            raise Failure(
                f"Failed to force terminate transactional-id `{transactional_id}`",
                why=f"{refused.error_code.name}: {refused}",
            ) from refused
    if wants_json(options):
        print_json({"terminated": transactional_id})
    return OK


def _now_ms() -> int:
    return int(time.time() * 1_000)


def _print(
    options: argparse.Namespace, titles: Sequence[str], rows: Sequence[Sequence[object]]
) -> int:
    if wants_json(options):
        print_json(
            [
                {
                    title: None if value == NONE else value
                    for title, value in zip(titles, row, strict=True)
                }
                for row in rows
            ]
        )
    else:
        for line in table(titles, rows):
            print(line)
    return OK


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Kafka's table: each cell as wide as the widest of its column, and a tab after it."""
    lines = [tuple(titles), *(tuple(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]


COMMANDS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _terminate,
}
