"""`headrace console-producer`: write lines from stdin to a topic. Kafka's `kafka-console-producer`."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.cli.records.line_partitions import BY_KEY, LinePartitions
from headrace.cli.records.line_reader import Line, LineReader
from headrace.cli.records.value_format import (
    SCHEMA_FORMATS,
    add_format_options,
    chosen_formats,
    confluent_format,
)
from headrace.cli.shell.client_properties import librdkafka_settings, parse_pairs
from headrace.cli.shell.command_line import (
    FAILED,
    OK,
    Failure,
    ToolParser,
    renamed,
    require_option,
    run_tool,
    tell,
)
from headrace.cli.shell.connecting import add_connection_options, check_reachable, read_properties
from headrace.cli.shell.stopping import interruptible

if TYPE_CHECKING:
    from headrace.client.librdkafka import KafkaError, Message, Producer

LINE_READER = "org.apache.kafka.tools.LineMessageReader"
LAST_FLUSH_S = 5.0
PARTITIONS_GOOD_S = 10.0  # then they are asked for again: some may be new, or without a leader
LOOK_UP_S = 2.0


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("console-producer", "Write lines from stdin to a topic.")
    parser.value("topic", "the topic to write to (required)")
    add_connection_options(parser, old_names=("broker-list",))
    parser.value(
        "command-property", "a setting of the producer", action="append", metavar="NAME=VALUE"
    )
    parser.hidden("producer-property", action="append")
    parser.hidden("producer.config", dest="producer_config")
    parser.value(
        "reader-property",
        "how to read lines: parse.key, key.separator, parse.headers, headers.delimiter,"
        " headers.separator, headers.key.separator, ignore.error, null.marker; with schemas"
        " value.schema, value.schema.file, value.schema.id, value.refs (and key. alike),"
        " auto.register, use.latest.version, schema.registry.url",
        action="append",
        metavar="NAME=VALUE",
    )
    parser.hidden("property", action="append")
    parser.value("reader-config", "a properties file with the same", metavar="FILE")
    parser.value(
        "line-reader",
        "Kafka's own, or Confluent's AvroMessageReader, JsonSchemaMessageReader, ProtobufMessageReader",
        metavar="CLASS",
        default=LINE_READER,
    )
    add_format_options(parser)
    parser.flag("sync", "wait for each record to be written before the next is read")
    parser.value(
        "compression-codec",
        "none, gzip, snappy, lz4 or zstd; without a value gzip",
        nargs="?",
        const="gzip",
        metavar="CODEC",
    )
    parser.value("batch-size", "bytes of a batch", type=int, metavar="BYTES")
    parser.hidden("max-partition-memory-bytes", type=int)
    parser.value("timeout", "how long a record may wait for others", type=int, metavar="MS")
    parser.value("request-required-acks", "0, 1, -1 or all", metavar="ACKS")
    parser.value("request-timeout-ms", "how long a request may take", type=int, metavar="MS")
    parser.value("message-send-max-retries", "how often to try again", type=int, metavar="N")
    parser.value("retry-backoff-ms", "how long to wait in between", type=int, metavar="MS")
    parser.value("metadata-expiry-ms", "how long metadata is good", type=int, metavar="MS")
    parser.value("max-memory-bytes", "bytes of records not yet sent", type=int, metavar="BYTES")
    parser.value("max-block-ms", "accepted for Kafka's sake", type=int, metavar="MS")
    parser.value("socket-buffer-size", "bytes of the socket's buffer", type=int, metavar="BYTES")
    return parser


def _work(options: argparse.Namespace) -> int:
    options.command_config = renamed(options, "producer-config", "command-config")
    require_option(options, "topic", "bootstrap-server")
    confluent = confluent_format(options.line_reader)
    if options.line_reader.rpartition(".")[2] != "LineMessageReader" and not confluent:
        raise Failure(
            f"the line reader {options.line_reader} is not known",
            why="Java classes cannot be loaded here",
            hint=f"leave it out: {LINE_READER} is what reads; --value-format avro reads as Confluent's do",
        )
    reader_properties = _reader_properties(options)
    reader = LineReader(reader_properties)
    encode = _encoder(options, reader_properties, confluent)
    properties = producer_properties(options)
    partitions = LinePartitions(properties, start=random.randrange(1 << 16))
    settings = producer_settings(properties, options.bootstrap_server)
    check_reachable(options.bootstrap_server, settings, options.topic)
    from headrace.cli.shell.record_clients import make_producer

    sender = _Sender(make_producer(settings), options.topic, partitions)
    return _produce(sender, lambda line: encode(reader.read(line)), options)


def _encoder(
    options: argparse.Namespace, properties: dict[str, str], confluent: str
) -> Callable[[Line], Line]:
    """Makes keys and values of lines what their formats say. The schemas are registered, or looked up, here."""
    formats = chosen_formats(options, properties, confluent=confluent, key_class="key.serializer")
    parse_key = properties.get("parse.key", "").strip().lower() == "true"
    if formats.value == "string" and (formats.key == "string" or not parse_key):
        return lambda line: line
    from headrace.cli.records.plain_serializers import plain_serializer
    from headrace.cli.records.schema_values import SchemaWriter, connect

    def serializer(name: str, *, is_key: bool) -> Callable[[bytes], bytes]:
        if name not in SCHEMA_FORMATS:
            return plain_serializer(name)
        client = connect(formats.registry_url, properties)
        writer = SchemaWriter(client, properties, language=name, topic=options.topic, is_key=is_key)
        return writer.serialized

    value = serializer(formats.value, is_key=False)
    key = serializer(formats.key, is_key=True) if parse_key else None

    def encode(line: Line) -> Line:
        return Line(
            line.headers,
            line.key if key is None or line.key is None else key(line.key),
            None if line.value is None else value(line.value),
        )

    return encode


def _reader_properties(options: argparse.Namespace) -> dict[str, str]:
    pairs = renamed(options, "property", "reader-property")
    from_file = read_properties(options.reader_config) if options.reader_config else {}
    return from_file | parse_pairs(pairs or [])


def producer_properties(options: argparse.Namespace) -> dict[str, str]:
    """The producer's settings in Java's names: options given count most, then properties, the file, the tool's defaults."""
    defaults = {
        "client.id": "console-producer",
        "linger.ms": "1000",
        "acks": "-1",
        "retries": "3",
        "batch.size": "16384",
        "request.timeout.ms": "1500",
        "delivery.timeout.ms": "120000",
        "retry.backoff.ms": "100",
    }
    # As in Kafka's tool, where both name the same setting.
    batch_size = options.max_partition_memory_bytes
    given = {
        "linger.ms": options.timeout,
        "acks": options.request_required_acks,
        "retries": options.message_send_max_retries,
        "batch.size": options.batch_size if batch_size is None else batch_size,
        "request.timeout.ms": options.request_timeout_ms,
        "retry.backoff.ms": options.retry_backoff_ms,
        "metadata.max.age.ms": options.metadata_expiry_ms,
        "buffer.memory": options.max_memory_bytes,
        "send.buffer.bytes": options.socket_buffer_size,
        "compression.type": options.compression_codec,
    }
    pairs = renamed(options, "producer-property", "command-property")
    from_file = read_properties(options.command_config) if options.command_config else {}
    properties = defaults | from_file | parse_pairs(pairs or [])
    return properties | {name: str(value) for name, value in given.items() if value is not None}


def producer_settings(properties: dict[str, str], bootstrap_servers: str) -> dict[str, str]:
    """The same settings in librdkafka's words."""
    own = ("partitioner.class", "partitioner.ignore.keys")  # those of LinePartitions
    settings = librdkafka_settings(
        {name: value for name, value in properties.items() if name not in own}
    )
    settings["bootstrap.servers"] = bootstrap_servers
    # Keys go to the same partitions as from Java.
    settings.setdefault("partitioner", "murmur2_random")
    if settings["acks"] == "-1" and settings["retries"] != "0":
        settings.setdefault("enable.idempotence", "true")
    return settings


class _Deliveries:
    """What became of the records."""

    def __init__(self) -> None:
        self.failed = 0
        self._told: set[int] = set()

    def note(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            return
        self.failed += 1
        if error.code() not in self._told:  # a thousand records fail for one reason
            self._told.add(error.code())
            tell(f"Error when sending message to topic {message.topic()}: {error.str()}")


class _Sender:
    """Sends lines, each to its partition."""

    def __init__(self, producer: Producer, topic: str, partitions: LinePartitions) -> None:
        self._producer = producer
        self._topic = topic
        self._partitions = partitions
        self._partitions_good_until_s = 0.0
        self.deliveries = _Deliveries()

    def send(self, line: Line) -> None:
        """Hand a line to the producer; waits while so many are under way that those have to go first."""
        from headrace.client.librdkafka import UNKNOWN_PARTITION, KafkaException

        if time.monotonic() > self._partitions_good_until_s:
            self._look_up_partitions()
        partition = self._partitions.choose(line.key)
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=line.value,
                    key=line.key,
                    partition=partition,
                    headers=line.headers or None,
                    on_delivery=self.deliveries.note,
                )
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as failed:
                if partition == BY_KEY or failed.args[0].code() != UNKNOWN_PARTITION:
                    raise Failure("the record was not taken", why=failed.args[0].str()) from failed
                self._partitions_good_until_s = 0.0  # the topic has fewer than before
                partition = BY_KEY
            else:
                self._producer.poll(0)
                return

    def _look_up_partitions(self) -> None:
        """Ask which partitions there are and which of them are led. What was known stays where nobody answers."""
        from headrace.client.librdkafka import KafkaException

        try:
            topics = self._producer.list_topics(self._topic, timeout=LOOK_UP_S).topics
        except KafkaException:
            pass
        else:
            found = topics[self._topic].partitions if self._topic in topics else {}
            self._partitions.set_partitions({each.id: each.leader for each in found.values()})
        self._partitions_good_until_s = time.monotonic() + PARTITIONS_GOOD_S

    def flush(self) -> None:
        """Wait until everything is delivered or has failed."""
        while self._producer.flush(LAST_FLUSH_S):
            pass


def _produce(sender: _Sender, read: Callable[[bytes], Line], options: argparse.Namespace) -> int:
    prompts = sys.stdin.isatty() and sys.stdout.isatty()
    with interruptible():
        try:
            while True:
                if prompts:
                    print(">", end="", flush=True)
                line = sys.stdin.buffer.readline()
                if not line:
                    break
                sender.send(read(line.rstrip(b"\n").removesuffix(b"\r")))
                if options.sync:
                    sender.flush()
        finally:
            sender.flush()  # a second Ctrl-C gives up
    if prompts:
        print()
    if sender.deliveries.failed:
        tell(f"{sender.deliveries.failed} records were not written.")
        return FAILED
    return OK
