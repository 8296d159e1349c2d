"""Produce to 1, 100 and 1,000 partitions: 1 KiB records without keys, spread by librdkafka."""

from collections.abc import Iterator

from bench.beside_kafka.librdkafka import Messages
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.rounds import Notebook, Size
from bench.beside_kafka.runs.produce import produce
from bench.beside_kafka.servers import Node

ABOUT = "produce to 1, 100 and 1,000 partitions"
WITH_FLOOR = False

RECORDS = 400_000
AT_ONCE = 10_000


def measure(broker: Node, notebook: Notebook, size: Size) -> Iterator[None]:
    messages = Messages(payloads(1024), AT_ONCE)
    for partitions in (1, 100, 1000):
        figures = produce(broker, messages, size.count(RECORDS), {}, partitions=partitions)
        notebook.note(f"partitions {partitions}", figures)
        yield
