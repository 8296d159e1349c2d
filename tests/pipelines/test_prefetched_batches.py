"""Micro-batches whose rows come with their plan, beside batches that tasks read: no offset is missed or read twice.

How a batch was read is told by what Spark has received from tasks in Python. Spark adds that up over all queries of a session, so
that two batches with the same number are both without such tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.pipelines.options.source_options import ENOUGH_FOR_A_TASK
from tests.pipelines.queries import drain, stream
from tests.support.spark_topics import Topics

COLUMNS = "partition int, offset bigint, value binary"
Place = tuple[int, int]  # partition and offset


class Batches:
    """What a query has handed over, by batch, over all of its runs."""

    def __init__(self) -> None:
        self.rows: dict[int, list[tuple[Place, bytes]]] = {}
        self.runs: list[int] = []  # the batches in the order in which they came; one may come again

    def collect(self, frame: DataFrame, number: int) -> None:
        self.rows[number] = sorted(
            ((row.partition, row.offset), bytes(row.value)) for row in frame.collect()
        )
        self.runs.append(number)

    def all_rows(self) -> list[tuple[Place, bytes]]:
        return sorted(row for rows in self.rows.values() for row in rows)

    def start(self, frame: DataFrame, checkpoint: str) -> StreamingQuery:
        writer = frame.writeStream.foreachBatch(self.collect)
        return writer.option("checkpointLocation", checkpoint).start()

    def start_to_end(self, frame: DataFrame, checkpoint: str) -> StreamingQuery:
        """Start a run that reads what is there and ends."""
        writer = frame.writeStream.foreachBatch(self.collect).trigger(availableNow=True)
        return writer.option("checkpointLocation", checkpoint).start()


@contextmanager
def running(batches: Batches, frame: DataFrame, checkpoint: str) -> Iterator[StreamingQuery]:
    query = batches.start(frame, checkpoint)
    try:
        yield query
    finally:
        query.stop()


def received_from_tasks(query: StreamingQuery) -> int:
    """Bytes, up to the last batch."""
    scan = query._jsq.streamingQuery().lastExecution().executedPlan().collectLeaves().head()
    received: int = scan.metrics().apply("pythonDataReceived").value()
    return received


def sent(topics: Topics, topic: str) -> list[tuple[Place, bytes]]:
    return sorted(
        ((each.partition, each.offset), each.value)
        for each in topics.read(topic)
        if each.value is not None
    )


def few(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_every_offset_is_read_once_with_plans_and_by_tasks(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    """Each size is read by a run of its own, which starts from the checkpoint of the run before."""
    topic = topics.create("sizes", 3)
    frame = stream(spark, topics, topic, startingOffsets="earliest", schema=COLUMNS)
    found = Batches()
    received = 0
    large = [bytes(900_000) + each for each in few(12)]  # too large for a plan in bytes
    for values in (few(20), few(6000), few(7), large, few(1)):
        for partition in range(3):
            topics.send(topic, values[partition::3], partition=partition)
        with running(found, frame, checkpoint) as query:
            query.processAllAvailable()
            if values is large or len(values) > ENOUGH_FOR_A_TASK:
                assert received_from_tasks(query) > received
                continue
            received = received_from_tasks(query)
            topics.send(topic, [b"one more"], partition=2)
            query.processAllAvailable()
            assert received_from_tasks(query) == received
    assert found.all_rows() == sent(topics, topic)
    assert found.runs == sorted(set(found.runs)), "no batch came twice"


def test_a_batch_that_was_not_committed_is_read_again_as_it_was(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    topic = topics.create("again", 2)
    frame = stream(spark, topics, topic, startingOffsets="earliest", schema=COLUMNS)
    found = Batches()
    for partition in (0, 1):
        topics.send(topic, few(5), partition=partition)
    first = found.start_to_end(frame, checkpoint)
    drain(first)
    number, rows = forget_last_commit(checkpoint), dict(found.rows)
    assert len(rows[number]) == 10
    topics.send(topic, [b"later"], partition=1)
    query = found.start_to_end(frame, checkpoint)
    drain(query)
    assert received_from_tasks(query) == received_from_tasks(first)
    assert found.runs[-2:] == [number, number + 1]
    assert found.rows[number] == rows[number]
    assert found.rows[number + 1] == [((1, 5), b"later")]


def test_records_that_are_gone_when_their_batch_is_planned(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    """The end of the batch is in the checkpoint already, so that only the reading finds out."""
    topic = topics.create("gone", 2)
    frame = stream(spark, topics, topic, startingOffsets="earliest", schema=COLUMNS)
    found = Batches()
    for partition in (0, 1):
        topics.send(topic, few(4), partition=partition)
    first = found.start_to_end(frame, checkpoint)
    drain(first)
    number = forget_last_commit(checkpoint)
    topics.delete_records(topic, 0, 3)
    with pytest.raises(StreamingQueryException, match="Records may have been lost"):
        drain(found.start_to_end(frame, checkpoint))
    relaxed = stream(spark, topics, topic, failOnDataLoss="false", schema=COLUMNS)
    query = found.start_to_end(relaxed, checkpoint)
    drain(query)
    assert received_from_tasks(query) == received_from_tasks(first)
    kept = [((0, 3), b"3"), *(((1, each), b"%d" % each) for each in range(4))]
    assert found.rows[number] == kept


def forget_last_commit(checkpoint: str) -> int:
    """Make the checkpoint what it was before the last batch was done; the number of that batch."""
    commits = Path(checkpoint) / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    return last
