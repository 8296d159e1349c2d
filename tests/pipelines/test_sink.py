"""The sink on a real broker and a real Spark: partitions, topics, headers, compression, large batches."""

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from headrace.client.key_partition import partition_of_key
from headrace.pipelines.spark_session import make_active
from tests.pipelines.queries import batch, write
from tests.support.spark_topics import Topics


def test_keys_decide_partitions_as_kafkas_clients_do(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("keys", 5)
    rows = [(f"key-{number}", f"value-{number}") for number in range(200)]
    write(spark.createDataFrame(rows, "key string, value string"), topics, topic=topic)
    found = topics.read(topic)
    assert sorted((each.key, each.value) for each in found) == sorted(
        (key.encode(), value.encode()) for key, value in rows
    )
    assert all(each.partition == partition_of_key(each.key or b"", 5) for each in found)


def test_rows_without_a_key_are_spread(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("spread", 4)
    write(
        spark.range(400).select(fn.col("id").cast("string").alias("value")).coalesce(1),
        topics,
        topic=topic,
    )
    found = topics.read(topic)
    assert sorted(int(each.value or b"") for each in found) == list(range(400))
    assert {each.partition for each in found} == {0, 1, 2, 3}


def test_columns_decide_topic_partition_and_headers(spark: SparkSession, topics: Topics) -> None:
    one, two = topics.create("one", 3), topics.create("two", 3)
    rows = [
        (one, 2, b"a", None, [("h", b"1"), ("h", None)]),
        (two, None, b"b", b"k", None),
        (one, 2, None, b"k", []),
    ]
    kinds = "topic string, partition int, value binary, key binary, headers array<struct<key:string,value:binary>>"
    write(spark.createDataFrame(rows, kinds).coalesce(1), topics)
    assert [(each.partition, each.key, each.value, each.headers) for each in topics.read(one)] == [
        (2, None, b"a", (("h", b"1"), ("h", None))),
        (2, b"k", None, ()),
    ]
    assert [(each.partition, each.value) for each in topics.read(two)] == [
        (partition_of_key(b"k", 3), b"b")
    ]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_written_and_read(spark: SparkSession, topics: Topics, codec: str) -> None:
    topic = topics.create(codec)
    frame = spark.range(1000).select(fn.concat(fn.lit("value-"), "id").alias("value")).coalesce(1)
    write(frame, topics, topic=topic, kafka__compression__type=codec)
    expected = [b"value-%d" % number for number in range(1000)]
    assert topics.values(topic) == expected
    assert [bytes(row.value) for row in batch(spark, topics, topic).collect()] == expected


def test_a_batch_that_the_topic_finds_too_large_is_sent_in_smaller_ones(
    spark: SparkSession, topics: Topics
) -> None:
    topic = topics.create("small", 1, max_message_bytes="2000")
    frame = spark.range(100).select(fn.repeat(fn.lit("x"), 500).alias("value")).coalesce(1)
    write(frame, topics, topic=topic)
    assert topics.values(topic) == [b"x" * 500] * 100
    with pytest.raises(PySparkException, match="MESSAGE_TOO_LARGE"):
        write(
            spark.range(1).select(fn.repeat(fn.lit("x"), 5000).alias("value")), topics, topic=topic
        )


def test_mistakes_are_told(spark: SparkSession, topics: Topics) -> None:
    frame = spark.range(1).select(fn.lit("v").alias("value"))
    for options, words in (
        ({}, "neither the option topic nor a column 'topic'"),
        ({"topic": "t", "kafka__acks": "2"}, "not one of"),
        (
            {"topic": "t", "kafka__acks": "1", "kafka__enable__idempotence": "true"},
            "needs kafka.acks=all",
        ),
        ({"topic": "t", "topik": "t"}, "did you mean 'topic'"),
        ({"topic": "t", "subscribe": "t"}, "subscribe does not apply to a sink"),
    ):
        with pytest.raises(PySparkException, match=words):
            write(frame, topics, **options)
    with pytest.raises(PySparkException, match="there is no column 'id'"):
        write(spark.range(1), topics, topic="t")
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        frame.write.format("headrace").mode("overwrite").option("topic", "t").save()
    topic = topics.create("mistakes")
    with pytest.raises(
        PySparkException, match="asks for a partition that is not there: there are 1"
    ):
        write(frame.withColumn("partition", fn.lit(7)), topics, topic=topic)


def test_a_thread_writes_once_the_session_is_active_in_it(
    spark: SparkSession, topics: Topics
) -> None:
    """Spark looks for sinks written in Python in the thread's active session only, and a new thread has none."""
    topic = topics.create("thread")
    records = spark.range(3).select(fn.col("id").cast("string").alias("value"))
    place = {"kafka.bootstrap.servers": topics.bootstrap_servers, "topic": topic}
    writer = records.write.format("headrace").mode("append").options(**place)
    with ThreadPoolExecutor(max_workers=1) as thread:
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            thread.submit(writer.save).result()
        thread.submit(make_active, spark).result()
        thread.submit(writer.save).result()
    assert set(topics.values(topic)) == {b"0", b"1", b"2"}


def test_the_next_task_of_a_worker_finds_its_imports_frozen(
    spark: SparkSession, topics: Topics
) -> None:
    """Spark collects all garbage after each task: with the imports, that takes longer than a small task."""

    def frozen(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([pa.array([gc.get_freeze_count()])], names=["count"])

    rows = spark.range(10).selectExpr("cast(id as string) as value").coalesce(1)
    write(rows, topics, topic=topics.create("frozen", 1))
    [found] = spark.range(1).coalesce(1).mapInArrow(frozen, "count long").collect()
    assert found["count"] > 10_000
