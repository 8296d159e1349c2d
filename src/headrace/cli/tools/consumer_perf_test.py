"""`headrace consumer-perf-test`: how fast records are read. Kafka's `kafka-consumer-perf-test`."""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from headrace.cli.shell.client_properties import librdkafka_settings, parse_pairs
from headrace.cli.shell.command_line import (
    OK,
    ToolParser,
    UsageError,
    renamed,
    require_option,
    run_tool,
)
from headrace.cli.shell.connecting import add_connection_options, check_reachable, read_properties
from headrace.cli.shell.progress import Progress
from headrace.cli.shell.stopping import StopRequest, stop_signals

if TYPE_CHECKING:
    from headrace.client.librdkafka import Consumer, TopicPartition

MB = 1024 * 1024
POLL_S = 0.2
MOST_AT_ONCE = 10_000
REST = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms,"
    " fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
# The letters of Java's date formats that have a counterpart.
_DATE_LETTERS = {
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "SSS": "%f",
}


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("consumer-perf-test", "Measure how fast records are read.")
    add_connection_options(parser, old_names=("broker-list",))
    parser.value("topic", "the topic to read")
    parser.value("include", "topics to read, as a regular expression", metavar="REGEX")
    parser.value("num-records", "how many records (required)", type=int, metavar="N")
    parser.hidden("messages", type=int)
    parser.value("group", "the consumer group to read in")
    parser.value(
        "fetch-size", "bytes of a partition per request", type=int, default=1048576, metavar="BYTES"
    )
    parser.value(
        "isolation-level",
        "read_uncommitted (default) or read_committed; Kafka's tool takes it as a consumer setting only",
        choices=("read_uncommitted", "read_committed"),
    )
    parser.flag("from-latest", "begin at the end where the group has no offset yet")
    parser.value("socket-buffer-size", "bytes of the socket's buffer", type=int, metavar="BYTES")
    parser.value(
        "timeout",
        "end when nothing came for so long",
        type=int,
        nargs="?",
        default=10000,
        const=10000,
        metavar="MS",
    )
    parser.value("reporting-interval", "how often to report", type=int, default=5000, metavar="MS")
    parser.flag("show-detailed-stats", "report while it runs")
    parser.value(
        "date-format", "how to print times", default="yyyy-MM-dd HH:mm:ss:SSS", metavar="FORMAT"
    )
    parser.flag("hide-header", "print no header")
    parser.flag("print-metrics", "accepted for Kafka's sake: librdkafka has other metrics")
    parser.value(
        "command-property", "a setting of the consumer", action="append", metavar="NAME=VALUE"
    )
    parser.hidden("consumer.config", dest="consumer_config")
    parser.hidden("threads", "num-fetch-threads", type=int)
    return parser


def _work(options: argparse.Namespace) -> int:
    options.num_records = renamed(options, "messages", "num-records")
    options.command_config = renamed(options, "consumer-config", "command-config")
    require_option(options, "num-records", "bootstrap-server")
    if (options.topic is None) == (options.include is None):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    settings = consumer_settings(options)
    check_reachable(options.bootstrap_server, settings, options.topic)
    from headrace.cli.shell.record_clients import make_consumer

    consumer = make_consumer(settings)
    with stop_signals() as stop:
        try:
            _measure(consumer, options, stop)
        finally:
            consumer.close()
    return stop.exit_code or OK


def consumer_settings(options: argparse.Namespace) -> dict[str, str]:
    """Settings of the consumer: the tool's own, then the file's, then `--command-property`, then `--isolation-level`."""
    properties = {
        "group.id": options.group or f"perf-consumer-{random.randrange(100_000)}",
        "auto.offset.reset": "latest" if options.from_latest else "earliest",
        "max.partition.fetch.bytes": str(options.fetch_size),
        "client.id": "perf-consumer-client",
        "isolation.level": "read_uncommitted",
        "check.crcs": "false",
        "queued.min.messages": "1000000",
    }
    if options.socket_buffer_size:
        properties["receive.buffer.bytes"] = str(options.socket_buffer_size)
    properties |= read_properties(options.command_config) if options.command_config else {}
    properties |= parse_pairs(options.command_property or [])
    if options.isolation_level is not None:
        properties["isolation.level"] = options.isolation_level
    properties["bootstrap.servers"] = options.bootstrap_server
    return librdkafka_settings(properties)


@dataclass(slots=True)
class _Score:
    """What was read, and how long the group took to assign partitions. Times are of one clock, in seconds."""

    joining_since_s: float
    joining_s: float = 0.0
    records: int = 0
    bytes: int = 0

    def assigned(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.joining_s += time.monotonic() - self.joining_since_s

    def revoked(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.joining_since_s = time.monotonic()


def _measure(consumer: Consumer, options: argparse.Namespace, stop: StopRequest) -> None:
    rows = Rows(options.date_format)
    if not options.hide_header:
        detailed = options.show_detailed_stats
        print(f"{'time, threadId' if detailed else 'start.time, end.time'}, {REST}", flush=True)
    started_s = time.monotonic()
    started = datetime.now().astimezone()
    score = _Score(started_s)
    topics = [options.topic] if options.topic else [f"^({options.include})$"]
    consumer.subscribe(topics, on_assign=score.assigned, on_revoke=score.revoked)
    with Progress("reading", options.num_records, unit="records") as progress:
        _read(consumer, options, stop, score, rows, progress)
    if not options.show_detailed_stats:
        elapsed_s = time.monotonic() - started_s
        numbers = rows.numbers(score.records, score.bytes, elapsed_s, score.joining_s)
        ended = datetime.now().astimezone()
        print(f"{rows.moment(started)}, {rows.moment(ended)}, {numbers}")


def _read(
    consumer: Consumer,
    options: argparse.Namespace,
    stop: StopRequest,
    score: _Score,
    rows: Rows,
    progress: Progress,
) -> None:
    last_s = reported_s = time.monotonic()
    before = (0, 0, 0.0)
    while score.records < options.num_records and not stop.is_made:
        left = min(MOST_AT_ONCE, options.num_records - score.records)
        first = consumer.poll(POLL_S)
        messages = [] if first is None else [first, *consumer.consume(left - 1, 0)]
        now_s = time.monotonic()
        for message in messages:
            if message.error() is None:
                score.records += 1
                score.bytes += len(message) + len(message.key() or b"")
                last_s = now_s
        progress.update(score.records)
        is_due = now_s - reported_s >= options.reporting_interval / 1000
        if options.show_detailed_stats and is_due:
            progress.clear()
            numbers = rows.numbers(
                score.records, score.bytes, now_s - reported_s, score.joining_s, before
            )
            print(f"{rows.moment(datetime.now().astimezone())}, 0, {numbers}", flush=True)
            reported_s, before = now_s, (score.records, score.bytes, score.joining_s)
        if now_s - last_s > options.timeout / 1000:
            progress.clear()
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout"
                f" ({options.timeout} ms) exceeded. You can use the --timeout option to increase the timeout."
            )
            return


class Rows:
    """The numbers of a row, and moments in the format asked for."""

    def __init__(self, date_format: str) -> None:
        self._format = date_format
        for letters, directive in _DATE_LETTERS.items():
            self._format = self._format.replace(letters, directive)

    def moment(self, moment: datetime) -> str:
        milliseconds = f"{moment.microsecond // 1000:03}"
        return moment.strftime(self._format.replace("%f", milliseconds))

    @staticmethod
    def numbers(
        records: int,
        size_bytes: int,
        elapsed_s: float,
        joining_s: float,
        before: tuple[int, int, float] = (0, 0, 0.0),
    ) -> str:
        """Totals, and rates since `before`; fetching is what is left of the time after joining the group."""
        elapsed_s = max(elapsed_s, 0.001)
        megabytes, more_mb = size_bytes / MB, (size_bytes - before[1]) / MB
        more, joined_s = records - before[0], joining_s - before[2]
        fetching_s = max(elapsed_s - joined_s, 0.001)
        return (
            f"{megabytes:.4f}, {more_mb / elapsed_s:.4f}, {records}, {more / elapsed_s:.4f},"
            f" {joined_s * 1000:.0f}, {fetching_s * 1000:.0f}, {more_mb / fetching_s:.4f},"
            f" {more / fetching_s:.4f}"
        )
