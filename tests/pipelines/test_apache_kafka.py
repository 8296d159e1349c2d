"""Source and sink speak Kafka's protocol, so they work with Apache Kafka as well."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from tests.pipelines.queries import batch, drain, into_topic, stream, write
from tests.support import tools
from tests.support.apache_kafka import ApacheKafka
from tests.support.spark_topics import Topics


@pytest.fixture(scope="module", autouse=True)
def no_java() -> None:
    """Apache Kafka runs on Java."""


def test_source_and_sink_on_apache_kafka(
    spark: SparkSession, tmp_path: Path, checkpoint: str
) -> None:
    tools.require("kafka-jars")
    with ApacheKafka(tmp_path / "kafka") as kafka:
        place = SimpleNamespace(bootstrap_servers=f"127.0.0.1:{kafka.port}")
        with Topics(place, suffix="") as topics:
            read_and_write(spark, topics, checkpoint)


def read_and_write(spark: SparkSession, topics: Topics, checkpoint: str) -> None:
    topics.create_named("numbers", 2)
    topics.create_named("copies", 2)
    numbers = spark.range(300).selectExpr(
        "cast(id % 7 as string) as key", "cast(id as string) as value"
    )
    write(numbers, topics, topic="numbers", kafka__compression__type="zstd")
    assert {int(bytes(row.value)) for row in batch(spark, topics, "numbers").collect()} == set(
        range(300)
    )
    frame = stream(
        spark,
        topics,
        "numbers",
        startingOffsets="earliest",
        maxOffsetsPerTrigger="100",
        commitGroup="watched",
    ).select("key", "value")
    query = into_topic(frame, topics, "copies", checkpoint, availableNow=True)
    assert sum(drain(query)) == 300
    assert sorted(int(value or b"") for value in topics.values("copies")) == list(range(300))
    assert sum(topics.committed("watched", "numbers").values()) == 300
