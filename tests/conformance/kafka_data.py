"""Topics that a real Kafka is filled with before its data directory is looked at, and what its consumers see of them."""

import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headrace.ids import TopicPartition as OurTopicPartition
from headrace.log.files.checkpoint import (
    CLEANER_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    read_offsets,
)
from headrace.log.files.os_disk import OsDisk
from headrace.log.recovery import Checkpointed
from headrace.records.batch_reader import Record
from tests.conformance.clients.confluent import received
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker import bootstrap
from tests.support.watermarks import watermarks

# Background work that a test waits for comes soon.
QUICK_TASKS = {
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
}


def create(
    kafka: ApacheKafka, partitions: dict[str, int], configs: dict[str, dict[str, str]]
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap(kafka)})
    topics = [
        NewTopic(topic, count, 1, config=configs.get(topic, {}))
        for topic, count in partitions.items()
    ]
    for created in admin.create_topics(topics).values():
        created.result(30)
    names = [f"{topic}-{number}" for topic, count in partitions.items() for number in range(count)]
    wait_until(lambda: all((kafka.data_dir / name).exists() for name in names), kafka)


def wait_until(happened: Callable[[], bool], kafka: ApacheKafka) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, (
            f"did not happen in time; Kafka's log ends:\n{kafka.log_tail()}"
        )
        time.sleep(0.1)


def send(producer: Producer, topic: str, count: int, value: bytes) -> None:
    for number in range(count):
        producer.produce(
            topic, key=b"%d" % (number % 40), value=b"%d " % number + value, partition=0
        )
    assert producer.flush(30) == 0


def run_transactions(address: str) -> None:
    producers = [
        Producer({"bootstrap.servers": address, "transactional.id": name, "linger.ms": 0})
        for name in ("one", "two")
    ]
    for producer in producers:
        producer.init_transactions(30)
    for number in range(6):
        for producer in producers:
            producer.begin_transaction()
        for step in range(3):  # the two are open at once, and their batches interleave
            for producer in producers:
                send(producer, "transactions", 2, b"%d-%d" % (number, step))
        producers[0].commit_transaction(30)
        if number % 2:
            producers[1].commit_transaction(30)
        else:
            producers[1].abort_transaction(30)


def consume(
    kafka: ApacheKafka, name: str, *, isolation: str = "read_uncommitted", least_end: int = 0
) -> list[Record]:
    """Everything that Kafka's consumers see of a partition.

    A leader that has just started has the high watermark of its checkpoint for a moment; `least_end` waits for a later one.
    """
    topic, _, partition = name.rpartition("-")
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap(kafka),
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    records: list[Record] = []
    try:
        place = TopicPartition(topic, int(partition))
        wait_until(lambda: watermarks(consumer, place)[1] >= least_end, kafka)
        start, _ = watermarks(consumer, place)
        consumer.assign([TopicPartition(topic, int(partition), start)])
        while True:
            message = consumer.poll(30)
            assert message is not None, f"{name}: nothing more came after {len(records)} records"
            error = message.error()
            if error is not None and error.name() == "_PARTITION_EOF":
                return records
            found = received(message)
            offset, record = found.offset, found.record
            records.append(
                Record(offset, record.timestamp_ms, record.key, record.value, record.headers)
            )
    finally:
        consumer.close()


def checkpointed(data_dir: Path, name: str, *, clean: bool) -> Checkpointed:
    """What Kafka's checkpoint files say of one partition."""
    topic, _, partition = name.rpartition("-")
    here = OurTopicPartition(topic, int(partition))
    starts, points, cleaned = (
        _read_checkpoint(data_dir / file)
        for file in (LOG_START_FILE, RECOVERY_POINT_FILE, CLEANER_FILE)
    )
    return Checkpointed(
        clean=clean,
        recovery_point=points.get(here, 0),
        log_start_offset=starts.get(here, 0),
        cleaned_to=cleaned.get(here),
    )


def _read_checkpoint(path: Path) -> dict[OurTopicPartition, int]:
    """A checkpoint that Kafka has created but not yet written is empty."""
    written = path.exists() and path.stat().st_size > 0
    return read_offsets(OsDisk(), str(path)) if written else {}
