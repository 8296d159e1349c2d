"""The source on a real broker and a real Spark: columns, places, formats, portions."""

import json

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from headrace.testing.embedded_broker import EmbeddedBroker
from tests.pipelines.queries import batch, drain, eventually, into_topic, stream
from tests.support.spark_topics import Topics


def test_every_column_is_what_was_sent(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("columns", 2)
    topics.send(
        topic,
        ["v"],
        key="k",
        partition=1,
        timestamp_ms=1_700_000_000_123,
        headers=[("h", b"1"), ("n", None)],
    )
    topics.send(topic, [None], partition=0, timestamp_ms=1_700_000_000_456)
    rows = batch(spark, topics, topic, includeHeaders="true").orderBy("partition").collect()
    assert [(row.key, row.value, row.topic, row.partition, row.offset) for row in rows] == [
        (None, None, topic, 0, 0),
        (bytearray(b"k"), bytearray(b"v"), topic, 1, 0),
    ]
    assert [row.timestamp.timestamp() for row in rows] == [1_700_000_000.456, 1_700_000_000.123]
    assert [row.timestampType for row in rows] == [0, 0]
    assert rows[0].headers is None
    assert [(each.key, each.value) for each in rows[1].headers] == [
        ("h", bytearray(b"1")),
        ("n", None),
    ]


def test_only_the_wanted_columns_in_the_wanted_order(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("projection")
    topics.send(topic, ["v"])
    frame = batch(spark, topics, topic, schema="offset bigint, value binary")
    assert frame.columns == ["offset", "value"]
    assert [tuple(row) for row in frame.collect()] == [(0, bytearray(b"v"))]
    with pytest.raises(PySparkException, match="there is no column 'valu'"):
        batch(spark, topics, topic, schema="valu binary").collect()
    with pytest.raises(PySparkException, match="the column offset has the type int64"):
        batch(spark, topics, topic, schema="offset int").collect()


def test_places_to_start_and_end(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("places", 2)
    for number in range(10):
        topics.send(topic, [str(number)], partition=0, timestamp_ms=1000 * number + 1000)
    topics.send(topic, ["x"], partition=1, timestamp_ms=500)

    def values(**options: str) -> list[str]:
        frame = batch(spark, topics, topic, valueFormat="string", **options)
        return sorted(row.value for row in frame.collect())

    def at(first: int, second: int) -> str:
        return json.dumps({topic: {"0": first, "1": second}})

    assert values(startingOffsets=at(7, -2)) == ["7", "8", "9", "x"]
    assert values(startingOffsets=at(2, -1), endingOffsets=at(4, -1)) == ["2", "3"]
    assert values(startingTimestamp="9000", startingOffsetsByTimestampStrategy="latest") == [
        "8",
        "9",
    ]
    assert values(startingOffsetsByTimestamp=at(2500, 500), endingTimestamp="5000") == [
        "2",
        "3",
        "x",
    ]
    with pytest.raises(PySparkException, match="has no record at or after 9000"):
        values(startingTimestamp="9000")
    with pytest.raises(PySparkException, match=f"nothing for {topic}-1"):
        values(startingOffsets=json.dumps({topic: {"0": 1}}))


def test_what_to_read(spark: SparkSession, topics: Topics) -> None:
    one, two = topics.create("choice-a", 2), topics.create("choice-b")
    topics.send(one, ["a0"], partition=0)
    topics.send(one, ["a1"], partition=1)
    topics.send(two, ["b"])

    def values(**options: str) -> list[str]:
        return sorted(
            row.value for row in batch(spark, topics, valueFormat="string", **options).collect()
        )

    assert values(subscribe=f"{one},{two}") == ["a0", "a1", "b"]
    assert values(subscribePattern=topics.name("choice-.")) == ["a0", "a1", "b"]
    assert values(assign=json.dumps({one: [1]})) == ["a1"]


def test_a_topic_without_records_has_no_rows(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("empty", 2)
    assert batch(spark, topics, topic).collect() == []


def test_a_range_is_cut_for_tasks(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("cut")
    topics.send(topic, [str(number) for number in range(1000)])
    frame = batch(spark, topics, topic, minPartitions="4", schema="offset bigint")
    assert frame.rdd.getNumPartitions() == 4
    assert sorted(row.offset for row in frame.collect()) == list(range(1000))
    assert batch(spark, topics, topic, maxRecordsPerPartition="300").rdd.getNumPartitions() == 4


def test_mistakes_are_told_before_anything_runs(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("mistakes")
    with pytest.raises(AnalysisException, match="did you mean 'startingOffsets'"):
        batch(spark, topics, topic, startingOffset="earliest")
    with pytest.raises(AnalysisException, match="needs valueSchema"):
        batch(spark, topics, topic, valueFormat="json")
    with pytest.raises(PySparkException, match="there is no topic no-such-topic"):
        batch(spark, topics, "no-such-topic").collect()


def test_json_values_are_columns(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("json")
    topics.send(topic, ['{"id":1,"who":{"name":"ann"},"more":true}', None, '{"id":2}'], key="k")
    frame = batch(
        spark,
        topics,
        topic,
        valueFormat="json",
        valueSchema="id BIGINT, who STRUCT<name: STRING>",
        keyFormat="string",
    )
    rows = frame.orderBy("offset").select("key", "value.id", "value.who.name").collect()
    assert [tuple(row) for row in rows] == [("k", 1, "ann"), ("k", None, None), ("k", 2, None)]
    projected = batch(spark, topics, topic, valueFormat="json", schema="value struct<id int>")
    assert sorted(row.value.id for row in projected.collect() if row.value) == [1, 2]


def test_what_cannot_be_decoded(spark: SparkSession, topics: Topics) -> None:
    topic, dead = topics.create("bad"), topics.create("dead")
    topics.send(topic, ['{"id":1}'])
    topics.send(topic, ["not json"], key="k", headers=[("trace", b"t")])
    topics.send(topic, ['{"id":3}'])
    opening = {"valueFormat": "json", "valueSchema": "id BIGINT"}
    with pytest.raises(PySparkException, match=f"offset 1 of {topic}-0 cannot be decoded"):
        batch(spark, topics, topic, **opening).collect()
    nulls = batch(spark, topics, topic, onDecodeError="null", **opening)
    assert [row.id for row in nulls.select("value.id").collect()] == [1, None, 3]
    rest = batch(
        spark, topics, topic, onDecodeError="deadLetterTopic", deadLetterTopic=dead, **opening
    )
    assert [row.id for row in rest.select("value.id").collect()] == [1, 3]
    letter = topics.read(dead)[0]
    assert (letter.key, letter.value) == (b"k", b"not json")
    headers = dict(letter.headers)
    assert headers["trace"] == b"t"
    assert headers["headrace.topic"] == topic.encode()
    assert (headers["headrace.partition"], headers["headrace.offset"]) == (b"0", b"1")
    assert headers["headrace.attempt"] == b"1"
    assert b"not an object" in (headers["headrace.error"] or b"")


def test_a_stream_in_portions_with_its_progress_in_a_group(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    topic, out = topics.create("portions", 2), topics.create("portions-out")
    for number in (0, 1):
        topics.send(topic, [str(each) for each in range(50)], partition=number)
    group = topics.name("group")
    frame = stream(
        spark,
        topics,
        topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="40",
        commitGroup=group,
    )
    query = into_topic(frame.select("value"), topics, out, checkpoint, availableNow=True)
    assert drain(query) == [0, 40, 40, 20], "the first batch is empty on purpose"
    assert len(topics.read(out)) == 100
    assert query.lastProgress is not None
    latest = json.loads(query.lastProgress.sources[0].latestOffset)
    assert latest[topic] == {"0": 50, "1": 50}
    assert topics.committed(group, topic) == {0: 50, 1: 50}, "the last batch is shown as well"
    topics.send(topic, ["new"], partition=1)
    left = batch(spark, topics, topic, startingOffsets="committed", commitGroup=group)
    assert [bytes(row.value) for row in left.collect()] == [b"new"]


def test_earliest_is_where_the_log_begins(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("shortened")
    topics.send(topic, [str(number) for number in range(10)])
    topics.delete_records(topic, 0, 4)
    rows = batch(spark, topics, topic).select("offset").collect()
    assert [row.offset for row in rows] == list(range(4, 10))


def test_the_gaps_of_a_compacted_topic_are_no_loss(spark: SparkSession, checkpoint: str) -> None:
    settings = {"log.cleaner.backoff.ms": "50"}
    with EmbeddedBroker(settings) as broker, Topics(broker, suffix="") as topics:
        topics.create_named(
            "gaps",
            cleanup_policy="compact",
            min_cleanable_dirty_ratio="0",
            segment_ms="1",
        )
        topics.create_named("gaps-out")
        # Each in a segment of its own; the cleaner leaves the last one alone.
        for number, key in enumerate(("once", *["often"] * 8)):
            timestamp_ms = 1_700_000_000_000 + 1000 * number
            topics.send("gaps", [str(number)], key=key, timestamp_ms=timestamp_ms)
        eventually(
            lambda: [each.offset for each in topics.read("gaps")] == [0, 7, 8], "not compacted"
        )
        start = json.dumps({"gaps": {"0": 3}})
        rows = batch(spark, topics, "gaps", startingOffsets=start).collect()
        assert [row.offset for row in rows] == [7, 8]
        frame = stream(
            spark, topics, "gaps", startingOffsets="earliest", maxOffsetsPerTrigger="4"
        ).select("value")
        drain(into_topic(frame, topics, "gaps-out", checkpoint, availableNow=True))
        assert topics.values("gaps-out") == [b"0", b"7", b"8"]


def test_records_that_are_gone(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create("gone")
    topics.send(topic, [str(number) for number in range(10)])
    topics.delete_records(topic, 0, 6)
    start = json.dumps({topic: {"0": 2}})
    with pytest.raises(
        PySparkException, match=r"offset 2 of gone-.* is not in the log, which begins at 6"
    ):
        batch(spark, topics, topic, startingOffsets=start).collect()
    rest = batch(spark, topics, topic, startingOffsets=start, failOnDataLoss="false").collect()
    assert [row.offset for row in rest] == [6, 7, 8, 9]


def test_a_topic_created_anew_under_its_name_is_noticed_after_a_restart(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    topic, out = topics.create("anew"), topics.create("anew-out")
    topics.send(topic, ["old"] * 3)
    frame = stream(spark, topics, topic, startingOffsets="earliest").select("value")
    drain(into_topic(frame, topics, out, checkpoint, availableNow=True))
    topics.delete(topic)
    topics.create_named(topic)
    topics.send(
        topic, [f"new{number}" for number in range(5)]
    )  # more than there was: offsets alone show nothing
    with pytest.raises(StreamingQueryException, match="its id has changed"):
        drain(into_topic(frame, topics, out, checkpoint, availableNow=True))
    relaxed = stream(
        spark, topics, topic, startingOffsets="earliest", failOnDataLoss="false"
    ).select("value")
    drain(into_topic(relaxed, topics, out, checkpoint, availableNow=True))
    assert topics.values(out) == [b"old"] * 3 + [b"new%d" % number for number in range(5)]
