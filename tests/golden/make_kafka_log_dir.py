"""Writes `kafka_log_dir/` anew: a small data directory of a real Kafka 4.3, and what its consumers saw of it.

Run by hand when a newer Kafka is to be followed: `python -m tests.golden.make_kafka_log_dir`. The test beside it needs
neither Java nor Kafka.
"""

import json
import shutil
import tempfile
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.log.files.checkpoint import LOG_START_FILE, RECOVERY_POINT_FILE
from headrace.records.batch_reader import Record
from tests.conformance.clients.confluent import Confluent
from tests.conformance.kafka_data import (
    QUICK_TASKS,
    checkpointed,
    consume,
    create,
    run_transactions,
    send,
    wait_until,
)
from tests.conformance.samples import CODECS, SAMPLES
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker import bootstrap

HERE = Path(__file__).with_name("kafka_log_dir")
PARTITIONS = {"codecs": len(CODECS), "idempotent": 1, "transactions": 1, "cut": 1}
CUT_AT = 7


def fill(kafka: ApacheKafka) -> None:
    address = bootstrap(kafka)
    for partition, codec in enumerate(CODECS):
        Confluent().produce(address, "codecs", partition, SAMPLES[:-1], codec=codec)
    once = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    send(once, "idempotent", 20, b"once")
    run_transactions(address)
    send(Producer({"bootstrap.servers": address}), "cut", 20, b"some are deleted")
    cut = TopicPartition("cut", 0, CUT_AT)
    admin = AdminClient({"bootstrap.servers": address})  # must outlive the answer
    admin.delete_records([cut])[cut].result(30)
    wait_until(
        lambda: checkpointed(kafka.data_dir, "cut-0", clean=False).log_start_offset == CUT_AT, kafka
    )


def as_json(record: Record) -> list[object]:
    headers = [[name, _hex(value)] for name, value in record.headers]
    return [record.offset, record.timestamp, _hex(record.key), _hex(record.value), headers]


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def main() -> None:
    names = [f"{topic}-{number}" for topic, n in PARTITIONS.items() for number in range(n)]
    with tempfile.TemporaryDirectory() as directory:
        with ApacheKafka(Path(directory), properties=QUICK_TASKS) as kafka:
            create(kafka, PARTITIONS, {})
            fill(kafka)
            seen = {name: [as_json(record) for record in consume(kafka, name)] for name in names}
            committed = consume(kafka, "transactions-0", isolation="read_committed")
        shutil.rmtree(HERE, ignore_errors=True)
        for name in names:
            shutil.copytree(kafka.data_dir / name, HERE / name)
        for file in (RECOVERY_POINT_FILE, LOG_START_FILE):
            shutil.copy(kafka.data_dir / file, HERE / file)
    expected = {"records": seen, "committed": [record.offset for record in committed]}
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
