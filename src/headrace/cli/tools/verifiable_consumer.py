"""`headrace verifiable-consumer`: read in a group and print every event. Kafka's `kafka-verifiable-consumer`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headrace.cli.perf.verifiable_events import Events
from headrace.cli.shell.client_properties import librdkafka_settings
from headrace.cli.shell.command_line import ToolParser, renamed, require_option, run_tool
from headrace.cli.shell.connecting import add_connection_options, check_reachable, read_properties
from headrace.cli.shell.stopping import StopRequest, stop_signals

if TYPE_CHECKING:
    from headrace.cli.records.position_commits import PositionCommits
    from headrace.client.librdkafka import Consumer, Message, TopicPartition

POLL_S = 0.1
MOST_AT_ONCE = 500
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "verifiable-consumer", "Read a topic in a group and print one JSON object per event."
    )
    add_connection_options(parser, old_names=("broker-list",))
    parser.hidden("consumer.config", dest="consumer_config")
    parser.value("topic", "the topic to read (required)")
    parser.value("group-id", "the consumer group (required)", metavar="ID")
    parser.value(
        "group-protocol",
        "classic or consumer",
        type=str.lower,
        choices=("classic", "consumer"),
        default="classic",
    )
    parser.value(
        "group-remote-assignor", "the broker's assignor, with the consumer protocol", metavar="NAME"
    )
    parser.value("group-instance-id", "the id of a static member", metavar="ID")
    parser.value("max-messages", "how many; -1: until stopped", type=int, default=-1, metavar="N")
    parser.value("session-timeout", "with the classic protocol", type=int, metavar="MS")
    parser.flag("verbose", "print every record")
    parser.flag("enable-autocommit", "let the client commit by itself")
    parser.value("reset-policy", "earliest, latest or none", default="earliest", metavar="POLICY")
    parser.value("assignment-strategy", "with the classic protocol", default=RANGE, metavar="CLASS")
    parser.value("close-timeout", "accepted for Kafka's sake", type=int, metavar="MS")
    return parser


def _work(options: argparse.Namespace) -> int:
    options.command_config = renamed(options, "consumer-config", "command-config")
    require_option(options, "topic", "group-id", "bootstrap-server")
    settings = _settings(options)
    check_reachable(options.bootstrap_server, settings, options.topic)
    from headrace.cli.records.position_commits import PositionCommits
    from headrace.cli.shell.record_clients import make_consumer

    positions = PositionCommits(settings)
    with stop_signals() as stop:
        Events().print("startup_complete")
        consumer = make_consumer(settings | positions.needed_settings())
        reader = _Reader(options, consumer, positions)
        reader.read_all(stop)
    return stop.exit_code


def _settings(options: argparse.Namespace) -> dict[str, str]:
    properties = read_properties(options.command_config) if options.command_config else {}
    properties |= {
        "bootstrap.servers": options.bootstrap_server,
        "group.id": options.group_id,
        "group.protocol": options.group_protocol,
        "enable.auto.commit": str(options.enable_autocommit).lower(),
        "auto.offset.reset": "error" if options.reset_policy == "none" else options.reset_policy,
    }
    if options.group_instance_id is not None:
        properties["group.instance.id"] = options.group_instance_id
    if options.group_protocol == "consumer":
        if options.group_remote_assignor is not None:
            properties["group.remote.assignor"] = options.group_remote_assignor
    else:
        properties["partition.assignment.strategy"] = options.assignment_strategy
        if options.session_timeout is not None:
            properties["session.timeout.ms"] = str(options.session_timeout)
    return librdkafka_settings(properties)


class _Reader:
    """Reads, commits what it read, and tells."""

    def __init__(
        self, options: argparse.Namespace, consumer: Consumer, positions: PositionCommits
    ) -> None:
        self._options = options
        self._consumer = consumer
        self._positions = positions
        self._events = Events()
        self._count = 0

    def read_all(self, stop: StopRequest) -> None:
        limit = self._options.max_messages
        self._consumer.subscribe(
            [self._options.topic], on_assign=self._assigned, on_revoke=self._revoked
        )
        try:
            while not stop.is_made and self._count != limit:
                left = MOST_AT_ONCE if limit < 0 else min(MOST_AT_ONCE, limit - self._count)
                first = self._consumer.poll(POLL_S)
                if first is not None:
                    self._positions.advance(self._consumer, [first])  # before it can be revoked
                    rest = self._consumer.consume(left - 1, 0) if left > 1 else []
                    self._took([each for each in (first, *rest) if each.error() is None])
                    self._positions.advance(self._consumer, rest)
            if stop.is_made:
                self._events.print("shutdown_requested")
        finally:
            self._consumer.close()
        self._events.print("shutdown_complete")

    def _took(self, messages: list[Message]) -> None:
        if not messages:
            return
        ranges: dict[tuple[str, int], list[int]] = {}
        for message in messages:
            place = (message.topic() or "", message.partition() or 0)
            ranges.setdefault(place, []).append(message.offset() or 0)
            if self._options.verbose:
                self._events.print(
                    "record_data",
                    key=_text(message.key()),
                    value=_text(message.value()),
                    topic=message.topic(),
                    partition=message.partition(),
                    offset=message.offset(),
                )
        self._count += len(messages)
        self._events.print(
            "records_consumed",
            count=len(messages),
            partitions=[
                {
                    "topic": topic,
                    "partition": partition,
                    "count": len(offsets),
                    "minOffset": min(offsets),
                    "maxOffset": max(offsets),
                }
                for (topic, partition), offsets in ranges.items()
            ],
        )
        if not self._options.enable_autocommit:
            self._commit({place: max(offsets) + 1 for place, offsets in ranges.items()})

    def _commit(self, offsets: dict[tuple[str, int], int]) -> None:
        from headrace.client.librdkafka import KafkaException, TopicPartition

        places = [
            TopicPartition(topic, partition, offset)
            for (topic, partition), offset in offsets.items()
        ]
        told = [
            {"topic": topic, "partition": partition, "offset": offset}
            for (topic, partition), offset in offsets.items()
        ]
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as failed:
            error = failed.args[0]
            self._events.print("offsets_committed", offsets=told, error=error.str(), success=False)
        else:
            self._events.print("offsets_committed", offsets=told, success=True)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._positions.on_assign(consumer, partitions)
        self._events.print("partitions_assigned", partitions=_plain(partitions))

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._events.print("partitions_revoked", partitions=_plain(partitions))


def _plain(partitions: list[TopicPartition]) -> list[dict[str, object]]:
    return [{"topic": each.topic, "partition": each.partition} for each in partitions]


def _text(data: bytes | str | None) -> str | None:
    return data.decode(errors="replace") if isinstance(data, bytes) else data
