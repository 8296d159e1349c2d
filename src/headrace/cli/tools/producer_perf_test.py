"""`headrace producer-perf-test`: how fast records are written. Kafka's `kafka-producer-perf-test`."""

from __future__ import annotations

import argparse
import random
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.cli.perf.latency_stats import LatencyStats
from headrace.cli.perf.throughput import Throttle
from headrace.cli.shell.client_properties import librdkafka_settings, parse_pairs
from headrace.cli.shell.command_line import (
    FAILED,
    OK,
    Failure,
    ToolParser,
    UsageError,
    renamed,
    require_option,
    run_tool,
    tell,
)
from headrace.cli.shell.connecting import check_reachable, read_properties
from headrace.cli.shell.progress import Progress
from headrace.cli.shell.stopping import StopRequest, stop_signals

if TYPE_CHECKING:
    from headrace.client.librdkafka import KafkaError, Message, Producer

DEFAULT_TRANSACTION_MS = 3000


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("producer-perf-test", "Measure how fast records are written.")
    parser.value("bootstrap-server", "the brokers to connect to first", metavar="SERVERS")
    parser.hidden("broker-list", dest="bootstrap_server")
    parser.value("topic", "the topic to write to (required)")
    parser.value("num-records", "how many records (required)", type=int, metavar="N")
    parser.value(
        "throughput", "records a second at most; -1: no limit (required)", type=float, metavar="N"
    )
    parser.value("record-size", "bytes of a record", type=int, metavar="BYTES")
    parser.value("payload-file", "a file to take payloads from at random", metavar="FILE")
    parser.value(
        "payload-delimiter", "what parts them (default: a new line)", default="\\n", metavar="TEXT"
    )
    parser.flag("payload-monotonic", "payloads are 0, 1, 2, …")
    parser.value(
        "command-property",
        "settings of the producer",
        nargs="+",
        action="extend",
        metavar="NAME=VALUE",
    )
    parser.hidden("producer-props", nargs="+", action="extend")
    parser.value(
        "command-config", "a properties file with settings of the producer", metavar="FILE"
    )
    parser.hidden("producer.config", dest="producer_config")
    parser.flag("print-metrics", "accepted for Kafka's sake: librdkafka has other metrics")
    parser.value("transactional-id", "write in transactions", metavar="ID")
    parser.value("transaction-duration-ms", "how long each lasts", type=int, metavar="MS")
    parser.value(
        "warmup-records",
        "do not count the first ones in a second summary",
        type=int,
        default=0,
        metavar="N",
    )
    parser.value("reporting-interval", "how often to report", type=int, default=5000, metavar="MS")
    return parser


def _work(options: argparse.Namespace) -> int:
    require_option(options, "topic", "num-records", "throughput")
    given = [options.record_size, options.payload_file, options.payload_monotonic or None]
    if sum(each is not None for each in given) != 1:
        raise UsageError(
            "exactly one of --record-size, --payload-file or --payload-monotonic is required"
        )
    if options.record_size is not None and options.record_size <= 0:
        raise UsageError("--record-size should be greater than zero.")
    settings = _settings(options)
    check_reachable(settings["bootstrap.servers"], settings, options.topic)
    from headrace.cli.shell.record_clients import make_producer

    with stop_signals() as stop:
        test = _Test(options, make_producer(settings), _payloads(options), settings)
        test.send_all(stop)
    if options.print_metrics:
        tell("There are no metrics to print: librdkafka has others than Kafka's Java client.")
    return stop.exit_code or (FAILED if test.failed else OK)


def _settings(options: argparse.Namespace) -> dict[str, str]:
    file = renamed(options, "producer-config", "command-config")
    pairs = parse_pairs(renamed(options, "producer-props", "command-property") or [])
    properties = {
        "client.id": "perf-producer-client",
        "linger.ms": "5",
        "enable.idempotence": "true",
    }
    properties |= (read_properties(file) if file else {}) | pairs
    if options.bootstrap_server is not None:
        properties["bootstrap.servers"] = options.bootstrap_server
    if "bootstrap.servers" not in properties:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if options.transactional_id is not None:
        properties["transactional.id"] = options.transactional_id
    elif options.transaction_duration_ms is not None:
        properties.setdefault("transactional.id", f"performance-producer-{uuid.uuid4()}")
    settings = librdkafka_settings(properties)
    settings.setdefault("queue.buffering.max.messages", "500000")
    if settings.get("acks", "-1") != "-1" and "enable.idempotence" not in pairs:
        del settings["enable.idempotence"]
    return settings


def _payloads(options: argparse.Namespace) -> Callable[[int], bytes]:
    if options.payload_monotonic:
        return lambda number: b"%d" % number
    chance = random.Random(0)
    if options.record_size is not None:
        payload = bytes(chance.randrange(65, 91) for _ in range(options.record_size))
        return lambda _number: payload
    try:
        with open(options.payload_file, "rb") as file:
            text = file.read()
    except OSError as error:
        raise Failure(f"cannot read {options.payload_file}", why=error.strerror or "") from error
    delimiter = options.payload_delimiter.encode().replace(b"\\n", b"\n").replace(b"\\t", b"\t")
    choices = [part for part in text.split(delimiter) if part]
    if not choices:
        raise Failure(f"{options.payload_file} is empty", hint="it must contain payloads")
    return lambda _number: chance.choice(choices)


class _Test:
    """Sends records and keeps the score."""

    def __init__(
        self,
        options: argparse.Namespace,
        producer: Producer,
        payload_of: Callable[[int], bytes],
        settings: dict[str, str],
    ) -> None:
        self._options = options
        self._producer = producer
        self._payload_of = payload_of
        self._transaction_s = 0.0
        if "transactional.id" in settings:
            self._transaction_s = (options.transaction_duration_ms or DEFAULT_TRANSACTION_MS) / 1000
        self._stats = LatencyStats(time.monotonic(), options.num_records)
        self._steady: LatencyStats | None = None
        self._progress = Progress("writing", options.num_records)
        self.failed = 0

    def send_all(self, stop: StopRequest) -> None:
        options, producer = self._options, self._producer
        if self._transaction_s:
            producer.init_transactions()
        started_s = time.monotonic()
        self._stats = LatencyStats(started_s, options.num_records)
        throttle = Throttle(options.throughput, started_s)
        transaction_ends_s = self._begin_transaction(started_s)
        report_at_s = started_s + options.reporting_interval / 1000
        self._progress = Progress("writing", options.num_records, unit="records")
        for number in range(options.num_records):
            if stop.is_made:
                break
            if number == options.warmup_records and number:
                self._steady = LatencyStats(
                    time.monotonic(), options.num_records - number, " steady state"
                )
            self._produce(self._payload_of(number))
            now_s = time.monotonic()
            if self._transaction_s and now_s >= transaction_ends_s:
                producer.commit_transaction()
                transaction_ends_s = self._begin_transaction(now_s)
            if now_s >= report_at_s:
                report_at_s = self._report(now_s)
            self._progress.update(self._stats.count)
            self._pause(throttle.wait_s(number + 1, now_s), stop)
        self._finish(report_at_s)

    def _begin_transaction(self, now_s: float) -> float:
        if self._transaction_s:
            self._producer.begin_transaction()
        return now_s + self._transaction_s

    def _produce(self, payload: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._options.topic, payload, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.01)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed += 1
            if self.failed == 1:
                tell(f"Error when sending message to topic {self._options.topic}: {error.str()}")
            return
        latency_ms = (message.latency() or 0.0) * 1000
        size = len(message)
        self._stats.record(latency_ms, size)
        # Those that were sent before it began come first.
        if self._steady is not None and self._stats.count > self._options.warmup_records:
            self._steady.record(latency_ms, size)

    def _report(self, now_s: float) -> float:
        self._progress.clear()
        print((self._steady or self._stats).report(now_s), flush=True)
        return now_s + float(self._options.reporting_interval) / 1000

    def _pause(self, wait_s: float, stop: StopRequest) -> None:
        until_s = time.monotonic() + wait_s
        while wait_s > 0 and not stop.is_made:
            self._producer.poll(min(wait_s, 0.2))
            wait_s = until_s - time.monotonic()

    def _finish(self, report_at_s: float) -> None:
        if self._transaction_s:
            self._producer.commit_transaction()
        while self._producer.flush(0.5):
            self._progress.update(self._stats.count)
            if time.monotonic() >= report_at_s:
                report_at_s = self._report(time.monotonic())
        self._progress.clear()
        now_s = time.monotonic()
        print(self._stats.total(now_s))
        if self._steady is not None:
            print(self._steady.total(now_s))
        if self.failed:
            tell(f"{self.failed} records were not written.")
