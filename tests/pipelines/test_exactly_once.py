"""The exactly-once sink in a real Spark: batches that come again are not written again, to a reader of committed data."""

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.pipelines.spark_session import make_active
from tests.pipelines.queries import drain, stream, write
from tests.support.committed_records import committed_values
from tests.support.spark_topics import Topics


def start(frame: DataFrame, topics: Topics, topic: str, checkpoint: str) -> StreamingQuery:
    make_active(frame.sparkSession)
    return (
        frame.writeStream.format("headrace")
        .option("kafka.bootstrap.servers", topics.bootstrap_servers)
        .option("deliveryGuarantee", "exactly-once")
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


def numbers(first: int, end: int) -> list[str]:
    return [str(number) for number in range(first, end)]


def encoded(values: list[str]) -> list[bytes]:
    return sorted(value.encode() for value in values)


def test_a_batch_that_spark_repeats_is_written_once(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    """A driver that dies between the sink's commit and Spark's own has the whole batch again."""
    source, into = topics.create("source", 3), topics.create("into", 2)
    topics.send(source, numbers(0, 50))
    read = stream(
        spark,
        topics,
        source,
        valueFormat="string",
        startingOffsets="earliest",
        maxOffsetsPerTrigger="20",
    ).select("value")
    drain(start(read, topics, into, checkpoint))
    commits = Path(checkpoint) / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    for each in (commits / str(last), commits / f".{last}.crc"):
        each.unlink(missing_ok=True)
    topics.send(source, numbers(50, 60))
    drain(start(read, topics, into, checkpoint))
    found = committed_values(topics.bootstrap_servers, into, 2)
    assert sorted(each or b"" for each in found) == encoded(numbers(0, 60))


def test_a_checkpoint_that_was_set_back_is_refused(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    """The batches after it may have other rows now: neither to write nor to leave them out would be right."""
    source, into = topics.create("source", 1), topics.create("into", 1)
    topics.send(source, numbers(0, 5))
    read = stream(spark, topics, source, valueFormat="string", startingOffsets="earliest")
    drain(start(read.select("value"), topics, into, checkpoint))
    backup = f"{checkpoint}-backup"
    shutil.copytree(checkpoint, backup)
    for first in (5, 10):
        topics.send(source, numbers(first, first + 5))
        drain(start(read.select("value"), topics, into, checkpoint))
    query = start(read.select("value"), topics, into, backup)
    with pytest.raises(Exception, match="checkpoint was set back"):
        query.awaitTermination(180)
    found = committed_values(topics.bootstrap_servers, into, 1)
    assert sorted(each or b"" for each in found) == encoded(numbers(0, 15))


def test_a_batch_write_with_a_version_is_written_once(spark: SparkSession, topics: Topics) -> None:
    into = topics.create("versions", 2)
    for version in (0, 1, 1, 0, 2):
        frame = spark.range(10).selectExpr(f"concat('{version}-', id) as value").repartition(2)
        write(
            frame,
            topics,
            topic=into,
            deliveryGuarantee="exactly-once",
            txnAppId=into,
            txnVersion=str(version),
        )
    found = committed_values(topics.bootstrap_servers, into, 2)
    assert sorted(each or b"" for each in found) == encoded(
        [f"{version}-{number}" for version in range(3) for number in range(10)]
    )


def test_foreach_batch_writes_a_repeated_batch_once(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    source, into = topics.create("source", 2), topics.create("into", 2)
    topics.send(source, numbers(0, 20))

    def twice(frame: DataFrame, batch_id: int) -> None:
        for _ in range(2):
            write(
                frame,
                topics,
                topic=into,
                deliveryGuarantee="exactly-once",
                txnAppId=into,
                txnVersion=str(batch_id),
            )

    read = stream(spark, topics, source, valueFormat="string", startingOffsets="earliest")
    writer = read.select("value").writeStream.foreachBatch(twice)
    drain(writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start())
    found = committed_values(topics.bootstrap_servers, into, 2)
    assert sorted(each or b"" for each in found) == encoded(numbers(0, 20))


def test_a_job_that_fails_leaves_nothing_to_readers(spark: SparkSession, topics: Topics) -> None:
    """One task writes all of its rows, the other fails."""
    into = topics.create("failed", 1)
    frame = spark.range(0, 10, 1, 2).selectExpr(
        "cast(if(id = 9, raise_error('no'), id) as string) as value"
    )
    with pytest.raises(PySparkException):
        write(
            frame,
            topics,
            topic=into,
            deliveryGuarantee="exactly-once",
            txnAppId=into,
            txnVersion="0",
        )
    good = spark.range(3).selectExpr("cast(id as string) as value")
    write(good, topics, topic=into, deliveryGuarantee="exactly-once", txnAppId=into, txnVersion="0")
    found = committed_values(topics.bootstrap_servers, into, 1)
    assert sorted(each or b"" for each in found) == encoded(numbers(0, 3))


def test_what_cannot_be_exact_is_refused(spark: SparkSession, topics: Topics) -> None:
    frame = spark.range(1).selectExpr("cast(id as string) as value")
    exactly = {"topic": "t", "deliveryGuarantee": "exactly-once"}
    named = {"txnAppId": "a", "txnVersion": "0"}
    for options, words in (
        (exactly, "needs the options txnAppId and txnVersion"),
        (exactly | {"txnAppId": "a"}, "one of them is missing"),
        ({"topic": "t"} | named, "need deliveryGuarantee=exactly-once"),
        (exactly | named | {"kafka__acks": "1"}, "needs kafka.acks=all"),
        (exactly | named | {"kafka__transactional__id": "x"}, "makes its own"),
    ):
        with pytest.raises(PySparkException, match=words):
            write(frame, topics, **options)
