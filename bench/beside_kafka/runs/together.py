"""Produce and consume at the same time: librdkafka writes 1 KiB records as fast as they are taken, a consumer follows."""

from collections.abc import Iterator

from bench.beside_kafka import topics
from bench.beside_kafka.cost import Cost, measured
from bench.beside_kafka.librdkafka import Messages, Producer
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.raw_consumer import RawConsumer
from bench.beside_kafka.rounds import Notebook, Size
from bench.beside_kafka.servers import Node
from bench.beside_kafka.threads import at_once

ABOUT = "produce and consume together, 1 KiB records"
WITH_FLOOR = False

TOPIC = "together"
RECORD_BYTES = 1024
RECORDS = 300_000
AT_ONCE = 5_000
FIRST = 1_000


def measure(broker: Node, notebook: Notebook, size: Size) -> Iterator[None]:
    records = size.count(RECORDS)
    cost = pass_through(broker, records)
    notebook.note("together 1 KiB", cost.of_bytes(records * RECORD_BYTES, records))
    yield


def pass_through(broker: Node, records: int) -> Cost:
    """That many records through a new topic, until the last was read. Both clients are connected before."""
    topics.create(broker.port, TOPIC)
    messages = Messages(payloads(RECORD_BYTES), AT_ONCE)
    with (
        Producer({"bootstrap.servers": broker.bootstrap}) as producer,
        RawConsumer(broker.port, TOPIC, {0: 0}) as consumer,
    ):
        producer.send(TOPIC, messages, FIRST)
        producer.flush()
        consumer.read(FIRST)

        def produce() -> None:
            for start in range(0, records, AT_ONCE):
                producer.send(TOPIC, messages, min(AT_ONCE, records - start))
            producer.flush()

        def consume() -> None:
            consumer.read(FIRST + records)

        with measured(broker.pids) as cost:
            at_once(produce, consume)
    topics.delete(broker.port, TOPIC)
    return cost
