"""Queries that the tests of the source and the sink share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.pipelines.spark_session import make_active
from tests.support.spark_topics import Topics

PATIENCE_S = 180.0


def batch(
    spark: SparkSession, topics: Topics, topic: str | None = None, **options: str
) -> DataFrame:
    """A batch read."""
    return _loaded(spark.read.format("headrace"), topics, topic, options)


def stream(
    spark: SparkSession, topics: Topics, topic: str | None = None, **options: str
) -> DataFrame:
    """A streaming read."""
    return _loaded(spark.readStream.format("headrace"), topics, topic, options)


def _loaded(reader: Any, topics: Topics, topic: str | None, options: dict[str, str]) -> DataFrame:
    reader = reader.option("kafka.bootstrap.servers", topics.bootstrap_servers)
    if topic is not None:
        reader = reader.option("subscribe", topic)
    if "schema" in options:
        reader = reader.schema(options.pop("schema"))
    frame: DataFrame = reader.options(
        **{name.replace("__", "."): value for name, value in options.items()}
    ).load()
    return frame


def into_topic(
    frame: DataFrame, topics: Topics, topic: str | None, checkpoint: str, **trigger: Any
) -> StreamingQuery:
    """Start a query that writes to a topic."""
    writer = (
        frame.writeStream.format("headrace")
        .option("kafka.bootstrap.servers", topics.bootstrap_servers)
        .option("checkpointLocation", checkpoint)
    )
    if topic is not None:
        writer = writer.option("topic", topic)
    make_active(frame.sparkSession)
    return writer.trigger(**trigger).start() if trigger else writer.start()


def write(frame: DataFrame, topics: Topics, **options: str) -> None:
    """Write a batch."""
    make_active(frame.sparkSession)
    (
        frame.write.format("headrace")
        .mode("append")
        .option("kafka.bootstrap.servers", topics.bootstrap_servers)
        .options(**{name.replace("__", "."): value for name, value in options.items()})
        .save()
    )


def drain(query: StreamingQuery) -> list[int]:
    """Wait for a query that ends by itself; the rows of its batches."""
    assert query.awaitTermination(int(PATIENCE_S)), "the query did not end"
    return [progress.numInputRows for progress in query.recentProgress]


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds. Looking often takes time away from the Spark that is waited for."""
    deadline = time.monotonic() + PATIENCE_S
    pause_s = 0.1
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.3, 0.5)
