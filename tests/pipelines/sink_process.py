"""A driver and its tasks in one process without Spark, to be killed: writes numbered batches exactly once, from the one after its checkpoint.

    python -m tests.pipelines.sink_process BOOTSTRAP TOPIC CHECKPOINT RUN LAST_BATCH

The checkpoint stands for Spark's commit log: it holds the last batch whose commit returned.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from headrace.client.idempotent_producer import IdempotentProducer, ProduceSettings
from headrace.client.transaction_coordinator import OpenTransaction
from headrace.ids import TopicPartition
from headrace.pipelines.writing.exactly_once import BatchIdentity, TransactionalSink
from headrace.records.batch_builder import append_record
from headrace.records.batch_reader import Record

TASKS = 3
PARTITIONS = 2
TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class OneRecord:
    """`client.idempotent_producer.RecordRun` of one record."""

    payload: bytes
    record_count: int = 1

    def halves(self) -> list["OneRecord"]:
        return [self]


def write_record(
    sink: TransactionalSink, transaction: OpenTransaction, partition: TopicPartition, value: str
) -> None:
    """Write one record in a transaction."""
    producer = IdempotentProducer(
        sink.leaders,
        ProduceSettings(),
        transaction=transaction,
        coordinator=sink.coordinator,
    )
    payload = bytearray()
    append_record(payload, Record(0, 0, None, value.encode()), 0, 0)
    producer.send([(partition, OneRecord(bytes(payload)))], 1)
    producer.flush(1)


def main(bootstrap_servers: str, topic: str, checkpoint: Path, run_id: str, last: int) -> None:
    """Write batches until the last one."""
    sink = TransactionalSink(bootstrap_servers, "sink-process", 60.0)
    first = int(checkpoint.read_text()) + 1 if checkpoint.exists() else 0
    for number in range(first, last + 1):
        batch = BatchIdentity(
            sink_id=f"sink-of-{topic}", batch_id=number, run_id=run_id, older_is_done=False
        )
        open_ones = []
        for task in range(TASKS):
            if sink.is_decided(batch):
                continue
            transaction = sink.begin(batch.transactional_id(task, 0), TIMEOUT_MS)
            partition = TopicPartition(topic, task % PARTITIONS)
            write_record(sink, transaction, partition, f"{number}-{task}")
            open_ones.append(transaction)
        sink.commit(batch, open_ones, fail_on_data_loss=True, has_failed_attempts=False)
        following = checkpoint.with_suffix(".next")
        following.write_text(str(number))
        following.replace(checkpoint)
        print(number, flush=True)  # noqa: T201 - read by the test


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
