"""Consume from the page cache: one consumer of three partitions, then three consumers of one each.

The consumer reads batches and looks at their headers only (`raw_consumer`); `librdkafka` is a real one, whose records
become Python objects, so that the client is what it waits for.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from bench.beside_kafka import topics
from bench.beside_kafka.cost import measured
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.raw_client import pump_bytes
from bench.beside_kafka.raw_consumer import RawConsumer
from bench.beside_kafka.rounds import Notebook, Size
from bench.beside_kafka.servers import FLOOR, Node
from bench.beside_kafka.threads import at_once
from bench.beside_kafka.wire_frames import produce_frame

ABOUT = "1 GB of 1 KiB records from the page cache, one and three consumers"
WITH_FLOOR = True

TOPIC = "consume"
RECORD_BYTES = 1024
RECORDS_A_BATCH = 120  # about what a busy producer puts together
PARTITIONS = 3
BATCHES_A_PARTITION = 2_800
TIMES = 3  # once takes half a second
LIBRDKAFKA_RECORDS = 400_000


def measure(broker: Node, notebook: Notebook, size: Size) -> Iterator[None]:
    batches = size.count(BATCHES_A_PARTITION)
    records = batches * RECORDS_A_BATCH
    with measured(broker.pids) as cost:
        fill(broker, TOPIC, batches=batches, partitions=PARTITIONS)
    sent = records * PARTITIONS
    notebook.note("fill 1 KiB, ready frames", cost.of_bytes(sent * RECORD_BYTES, sent))
    yield
    everything = list(range(PARTITIONS))
    _read(broker, TOPIC, [everything], records)
    with measured(broker.pids) as cost:
        total = sum(_read(broker, TOPIC, [everything], sent) for _ in range(TIMES))
    notebook.note("consume 1 consumer", cost.of_bytes(total * RECORD_BYTES, total))
    yield
    with measured(broker.pids) as cost:
        shares = [[partition] for partition in everything]
        total = sum(_read(broker, TOPIC, shares, records) for _ in range(TIMES))
    notebook.note("consume 3 consumers", cost.of_bytes(total * RECORD_BYTES, total))
    yield
    if broker.name != FLOOR:
        librdkafka(broker, notebook, min(records, size.count(LIBRDKAFKA_RECORDS)))
    topics.delete(broker.port, TOPIC)


def fill(broker: Node, topic: str, *, batches: int, partitions: int) -> None:
    """A topic with so many batches, and one more, in each partition."""
    topics.create(broker.port, topic, partitions=partitions)
    for partition in range(partitions):
        frame = produce_frame(
            topic, list(payloads(RECORD_BYTES)[:RECORDS_A_BATCH]), partition=partition
        )
        pump_bytes(broker.port, frame, window=5, count=batches)


def read_everything(broker: Node, topic: str, *, partitions: int, batches: int) -> int:
    """What `fill` wrote, with one consumer. Returns how many records that were."""
    records = partitions * batches * RECORDS_A_BATCH
    return _read(broker, topic, [range(partitions)], records)


def _read(broker: Node, topic: str, shares: Sequence[Sequence[int]], records: int) -> int:
    """A consumer for each share of the partitions, all at once, each until it saw that many records. Returns how many
    came in all: the last answer may bring more than were waited for.
    """
    seen: list[int] = []

    def consume(share: Sequence[int]) -> None:
        with RawConsumer(broker.port, topic, dict.fromkeys(share, 0)) as consumer:
            consumer.read(records)
            seen.append(consumer.records)

    at_once(*(partial(consume, share) for share in shares))
    return sum(seen)


def librdkafka(broker: Node, notebook: Notebook, records: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "bench",
        "enable.auto.commit": False,
        # When its queue is full, librdkafka asks for nothing for a second, as long as all of this takes.
        "fetch.queue.backoff.ms": 1,
    }

    def consume(count: int) -> None:
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        while count > 0:
            count -= len(consumer.consume(10_000, timeout=30))
        consumer.close()

    consume(1)  # the first one of a cluster has to wait until there is a coordinator
    with measured(broker.pids) as cost:
        consume(records)
    notebook.note("consume 1 consumer, librdkafka", cost.of_bytes(records * RECORD_BYTES, records))
