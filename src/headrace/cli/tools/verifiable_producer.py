"""`headrace verifiable-producer`: write 0, 1, 2, … and print what became of each. Kafka's `kafka-verifiable-producer`."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from headrace.cli.perf.throughput import Throttle
from headrace.cli.perf.verifiable_events import Events
from headrace.cli.shell.client_properties import librdkafka_settings
from headrace.cli.shell.command_line import ToolParser, renamed, require_option, run_tool
from headrace.cli.shell.connecting import add_connection_options, check_reachable, read_properties
from headrace.cli.shell.stopping import StopRequest, stop_signals

if TYPE_CHECKING:
    from headrace.client.librdkafka import KafkaError, Message, Producer


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "verifiable-producer", "Write 0, 1, 2, … to a topic and print one JSON object per event."
    )
    add_connection_options(parser, old_names=("broker-list",))
    parser.hidden("producer.config", dest="producer_config")
    parser.value("topic", "the topic to write to (required)")
    parser.value("max-messages", "how many; -1: until stopped", type=int, default=-1, metavar="N")
    parser.value(
        "throughput", "messages a second at most; -1: no limit", type=float, default=-1, metavar="N"
    )
    parser.value("acks", "0, 1 or -1 (all)", default="-1")
    parser.value(
        "message-create-time",
        "the first timestamp; they grow with time",
        type=int,
        default=-1,
        metavar="MS",
    )
    parser.value("value-prefix", "values are PREFIX.0, PREFIX.1, …", metavar="PREFIX")
    parser.value("repeating-keys", "keys are 0 … N-1, again and again", type=int, metavar="N")
    return parser


def _work(options: argparse.Namespace) -> int:
    options.command_config = renamed(options, "producer-config", "command-config")
    require_option(options, "topic", "bootstrap-server")
    properties = {"acks": options.acks, "retries": "0", "linger.ms": "0"}
    properties |= read_properties(options.command_config) if options.command_config else {}
    settings = librdkafka_settings(properties)
    settings["bootstrap.servers"] = options.bootstrap_server
    check_reachable(options.bootstrap_server, settings, options.topic)
    from headrace.cli.shell.record_clients import make_producer

    with stop_signals() as stop:
        Events().print("startup_complete")
        writer = _Writer(options, make_producer(settings))
        writer.write_all(stop)
    return stop.exit_code


class _Writer:
    """Sends numbers and tells what became of them."""

    def __init__(self, options: argparse.Namespace, producer: Producer) -> None:
        self._options = options
        self._producer = producer
        self._events = Events()
        self._acked = 0

    def write_all(self, stop: StopRequest) -> None:
        options = self._options
        started_s = time.monotonic()
        throttle = Throttle(options.throughput, started_s)
        sent = 0
        while sent != options.max_messages and not stop.is_made:
            self._send(sent, time.monotonic() - started_s)
            sent += 1
            self._pause(throttle.wait_s(sent, time.monotonic()), stop)
        self._producer.flush()
        elapsed_s = max(time.monotonic() - started_s, 0.001)
        self._events.print("shutdown_complete")
        self._events.print(
            "tool_data",
            sent=sent,
            acked=self._acked,
            target_throughput=int(options.throughput),
            avg_throughput=self._acked / elapsed_s,
        )

    def _send(self, number: int, elapsed_s: float) -> None:
        options = self._options
        prefix = f"{options.value_prefix}." if options.value_prefix is not None else ""
        key = str(number % options.repeating_keys) if options.repeating_keys else None
        timestamp = 0
        if options.message_create_time >= 0:
            timestamp = options.message_create_time + int(elapsed_s * 1000)
        while True:
            try:
                self._producer.produce(
                    options.topic,
                    value=f"{prefix}{number}",
                    key=key,
                    timestamp=timestamp,
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.05)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        sent = {"key": _text(message.key()), "value": _text(message.value())}
        if error is None:
            self._acked += 1
            self._events.print(
                "producer_send_success",
                **sent,
                offset=message.offset(),
                topic=message.topic(),
                partition=message.partition(),
            )
        else:
            self._events.print(
                "producer_send_error",
                **sent,
                topic=message.topic(),
                exception=error.name(),
                message=error.str(),
            )

    def _pause(self, wait_s: float, stop: StopRequest) -> None:
        until_s = time.monotonic() + wait_s
        while wait_s > 0 and not stop.is_made:
            self._producer.poll(min(wait_s, 0.2))
            wait_s = until_s - time.monotonic()


def _text(data: bytes | str | None) -> str | None:
    return data.decode(errors="replace") if isinstance(data, bytes) else data
