"""`headrace console-consumer`: print the records of a topic. Kafka's `kafka-console-consumer`."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from headrace.cli.records.message_formatter import (
    MessageFormatter,
    Record,
    Shown,
    formatter_name,
    logged,
)
from headrace.cli.records.value_format import (
    PLAIN_FORMATS,
    SCHEMA_FORMATS,
    add_format_options,
    chosen_formats,
    confluent_format,
    default_registry,
)
from headrace.cli.shell.client_properties import librdkafka_settings, parse_pairs
from headrace.cli.shell.command_line import (
    FAILED,
    Failure,
    ToolParser,
    UsageError,
    abandon_stdout,
    renamed,
    require_option,
    run_tool,
    tell,
)
from headrace.cli.shell.connecting import (
    add_connection_options,
    add_zookeeper_option,
    ask_zookeeper,
    check_reachable,
    read_properties,
)
from headrace.cli.shell.stopping import StopRequest, stop_signals

if TYPE_CHECKING:
    from headrace.cli.records.position_commits import PositionCommits
    from headrace.client.librdkafka import Consumer, KafkaError, Message

DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
POLL_S = 0.2  # how long a signal may go unnoticed
MOST_AT_ONCE = 500


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("console-consumer", "Print the records of a topic.")
    parser.value("topic", "the topic to read")
    parser.value("include", "topics to read, as a regular expression", metavar="REGEX")
    parser.hidden("whitelist", dest="include")
    add_connection_options(parser, old_names=("broker-list",))
    add_zookeeper_option(parser)
    parser.hidden("new-consumer", action="store_true")
    parser.flag("from-beginning", "begin at the first record where the group has no offset yet")
    parser.value("partition", "read only this partition", type=int, metavar="N")
    parser.value("offset", "begin at this offset, 'earliest' or 'latest'; needs --partition")
    parser.value("max-messages", "end after so many", type=int, metavar="N")
    parser.value("timeout-ms", "end when nothing came for so long", type=int, metavar="MS")
    parser.value("group", "the consumer group to read in")
    parser.value(
        "isolation-level",
        "read_uncommitted (default) or read_committed",
        choices=("read_uncommitted", "read_committed"),
    )
    parser.flag("skip-message-on-error", "go on after a record that cannot be printed")
    parser.value(
        "command-property", "a setting of the consumer", action="append", metavar="NAME=VALUE"
    )
    parser.hidden("consumer-property", action="append")
    parser.hidden("consumer.config", dest="consumer_config")
    parser.value(
        "formatter-property",
        "what to print: print.key, print.value, print.timestamp, print.partition, print.offset,"
        " print.headers, print.epoch, key.separator, line.separator, headers.separator,"
        " null.literal, key.deserializer, value.deserializer, print.schema.ids,"
        " schema.id.separator, schema.registry.url",
        action="append",
        metavar="NAME=VALUE",
    )
    parser.hidden("property", action="append")
    parser.value("formatter-config", "a properties file with the same", metavar="FILE")
    parser.value(
        "formatter",
        "DefaultMessageFormatter, LoggingMessageFormatter, NoOpMessageFormatter, or Confluent's"
        " AvroMessageFormatter, JsonSchemaMessageFormatter, ProtobufMessageFormatter",
        metavar="CLASS",
        default=DEFAULT_FORMATTER,
    )
    parser.value("key-deserializer", "how to read keys", metavar="CLASS")
    parser.value("value-deserializer", "how to read values", metavar="CLASS")
    add_format_options(parser)
    parser.flag("enable-systest-events", "print 'shutdown_complete' at the end")
    return parser


def _work(options: argparse.Namespace) -> int:
    options.command_config = renamed(options, "consumer-config", "command-config")
    _check(options)
    name = formatter_name(options.formatter)
    formatter = _message_formatter(options)
    settings = consumer_settings(options)
    check_reachable(options.bootstrap_server, settings, options.topic)
    from headrace.cli.records.position_commits import PositionCommits
    from headrace.cli.shell.record_clients import make_consumer

    positions = PositionCommits(settings)
    consumer = make_consumer(settings | positions.needed_settings())
    printer = _Printer(formatter, name, skip_errors=options.skip_message_on_error)
    with stop_signals() as stop:
        try:
            _begin(consumer, options, positions)
            _print_records(consumer, positions, printer, options, stop)
        finally:
            consumer.close()
            tell(f"Processed a total of {printer.count} messages")
    if options.enable_systest_events:
        print("shutdown_complete")
    return FAILED if printer.has_failed else stop.exit_code


def _message_formatter(options: argparse.Namespace) -> MessageFormatter:
    properties = _formatter_properties(options)
    formats = chosen_formats(
        options,
        properties,
        confluent=confluent_format(options.formatter),
        key_class="key.deserializer",
    )
    for part, name in (("key", formats.key), ("value", formats.value)):
        if name in PLAIN_FORMATS and name != "string":
            properties[f"{part}.deserializer"] = PLAIN_FORMATS[name]
    if not formats.has_schemas and "json" not in formats:
        return MessageFormatter(properties)
    from headrace.cli.records.plain_serializers import json_checked
    from headrace.cli.records.schema_values import SchemaValues, connect

    values = SchemaValues(connect(formats.registry_url or default_registry(), properties))

    def shown(name: str, *, is_key: bool) -> Shown | None:
        if name == "json":
            return Shown(text=lambda data, _: json_checked(data), schema_id=lambda _, __: b"null")
        if name not in SCHEMA_FORMATS:
            return None
        return Shown(
            text=partial(values.shown, is_key=is_key),
            schema_id=partial(values.schema_id, is_key=is_key),
        )

    return MessageFormatter(
        properties, key=shown(formats.key, is_key=True), value=shown(formats.value, is_key=False)
    )


def _check(options: argparse.Namespace) -> None:
    ask_zookeeper(options)
    if (options.topic is None) == (options.include is None):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    if options.partition is not None:
        if options.topic is None:
            raise UsageError("The topic is required when partition is specified.")
        if options.from_beginning and options.offset is not None:
            raise UsageError("Options from-beginning and offset cannot be specified together.")
    elif options.offset is not None:
        raise UsageError("The partition is required when offset is specified.")
    require_option(options, "bootstrap-server")


def _formatter_properties(options: argparse.Namespace) -> dict[str, str]:
    pairs = renamed(options, "property", "formatter-property")
    properties = read_properties(options.formatter_config) if options.formatter_config else {}
    if options.key_deserializer:
        properties["key.deserializer"] = options.key_deserializer
    if options.value_deserializer:
        properties["value.deserializer"] = options.value_deserializer
    return properties | parse_pairs(pairs or [])


def consumer_settings(options: argparse.Namespace) -> dict[str, str]:
    """The consumer's settings: what options, properties and the file say, with Kafka's defaults."""
    from_file = read_properties(options.command_config) if options.command_config else {}
    pairs = parse_pairs(renamed(options, "consumer-property", "command-property") or [])
    given = [options.group, from_file.get("group.id"), pairs.get("group.id")]
    groups = sorted({each for each in given if each is not None})
    if len(groups) > 1:
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via"
            " '--consumer-property', or via '--consumer.config') do not match. Detected group ids: "
            + ", ".join(f"'{each}'" for each in groups)
        )
    if groups and options.partition is not None:
        raise UsageError("Options group and partition cannot be specified together.")
    properties = {"client.id": "console-consumer"} | from_file | pairs
    reset = properties.setdefault(
        "auto.offset.reset", "earliest" if options.from_beginning else "latest"
    )
    if options.from_beginning and reset != "earliest":
        raise Failure(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}',"
            " please remove one option"
        )
    if options.isolation_level is not None or "isolation.level" not in properties:
        properties["isolation.level"] = options.isolation_level or "read_uncommitted"
    if not groups:
        # Nobody will come back to a group with such a name.
        properties.setdefault("enable.auto.commit", "false")
    properties["group.id"] = (
        groups[0] if groups else f"console-consumer-{random.randrange(100_000)}"
    )
    settings = librdkafka_settings(properties)
    settings["bootstrap.servers"] = options.bootstrap_server
    settings.setdefault("allow.auto.create.topics", "true")
    return settings


def _begin(consumer: Consumer, options: argparse.Namespace, positions: PositionCommits) -> None:
    from headrace.client.librdkafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    if options.partition is not None:
        places = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}
        text = (options.offset or ("earliest" if options.from_beginning else "latest")).lower()
        if text not in places and not text.isdecimal():
            raise UsageError(
                f"The provided offset value '{options.offset}' is incorrect. Valid values are"
                " 'earliest', 'latest', or a non-negative long."
            )
        offset = places[text] if text in places else int(text)
        consumer.assign([TopicPartition(options.topic, options.partition, offset)])
    elif options.include is not None:
        consumer.subscribe([f"^({options.include})$"], on_assign=positions.on_assign)
    else:
        consumer.subscribe([options.topic], on_assign=positions.on_assign)


class _Printer:
    """Writes records to stdout, and knows how many."""

    def __init__(self, formatter: MessageFormatter, name: str, *, skip_errors: bool) -> None:
        self._formatter = formatter
        self._is_silent = name == "NoOpMessageFormatter"
        self._logs = name == "LoggingMessageFormatter"
        self._skip_errors = skip_errors
        self._told: set[int] = set()
        self.count = 0
        self.has_failed = False

    def note(self, error: KafkaError) -> None:
        """Trouble that passes by itself, or not: either way the consumer goes on, and it is told once."""
        if error.fatal():
            raise Failure("the consumer cannot go on", why=error.str())
        if error.code() not in self._told:
            self._told.add(error.code())
            tell(f"WARN {error.str()}")

    def write(self, message: Message) -> None:
        self.count += 1
        if self._is_silent:
            return
        record = record_of(message)
        try:
            line = self._formatter.line(record)
        except Failure as failure:
            if not self._skip_errors:
                self.has_failed = True
                raise
            why = f" ({failure.why})" if failure.why else ""
            tell(f"Error processing message, skipping this message: {failure.what}{why}")
            return
        if self._logs:
            tell(logged(record))
        sys.stdout.buffer.write(line)


def record_of(message: Message) -> Record:
    """A record of librdkafka as the formatter takes it."""
    kind, timestamp = message.timestamp()
    return Record(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        leader_epoch=message.leader_epoch(),
        timestamp_type=kind,
        timestamp=timestamp,
        headers=message.headers() or (),  # type: ignore[arg-type]  # the stub allows text, librdkafka gives bytes
        key=message.key(),
        value=message.value(),
    )


def _print_records(
    consumer: Consumer,
    positions: PositionCommits,
    printer: _Printer,
    options: argparse.Namespace,
    stop: StopRequest,
) -> None:
    from headrace.cli.records.position_commits import is_partition_end

    limit = options.max_messages if options.max_messages is not None else -1
    patience_s = None
    if options.timeout_ms is not None and options.timeout_ms >= 0:
        patience_s = options.timeout_ms / 1000
    last_s = time.monotonic()
    while not stop.is_made and printer.count != limit:
        first = consumer.poll(POLL_S if patience_s is None else min(POLL_S, patience_s))
        if first is None:
            if patience_s is not None and time.monotonic() - last_s > patience_s:
                tell(f"Nothing came for {options.timeout_ms} ms.")
                return
            continue
        # One poll at a time: within the next one the partition may be revoked, and its position must be stored by then.
        for messages in _with_those_at_hand(consumer, first, limit - printer.count):
            records = [each for each in messages if not is_partition_end(each)]
            if not _write_all(records, printer):
                return
            positions.advance(consumer, messages)
            if records:
                last_s = time.monotonic()


def _with_those_at_hand(consumer: Consumer, first: Message, limit: int) -> Iterator[list[Message]]:
    """A message, then those that need not be waited for: `limit` at most in all, unless it is negative."""
    yield [first]
    left = MOST_AT_ONCE if limit < 0 else min(MOST_AT_ONCE, limit) - 1
    if left > 0:
        yield consumer.consume(left, 0)


def _write_all(messages: list[Message], printer: _Printer) -> bool:
    try:
        for message in messages:
            error = message.error()
            if error is None:
                printer.write(message)
            else:
                printer.note(error)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        abandon_stdout()  # first: telling flushes it
        tell("Unable to write to standard out, closing consumer.")
        return False
    return True
