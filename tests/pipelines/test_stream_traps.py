"""What goes wrong while a stream runs: partitions come, leaders go, drivers restart."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headrace.testing.embedded_cluster import EmbeddedCluster
from tests.pipelines.queries import drain, eventually, into_topic, stream
from tests.support.spark_topics import Topics


@contextmanager
def sending_without_pause(topics: Topics, topic: str) -> Iterator[None]:
    """Records come in all the time."""
    done = Event()

    def send() -> None:
        number = 0
        while not done.wait(0.01):
            topics.send(topic, [str(number)])
            number += 1

    sender = Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        done.set()
        sender.join()


def test_latest_is_where_the_query_was_started_not_restarted(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    """What comes between the start and the first batch with data is not lost."""
    topic, out = topics.create("first"), topics.create("first-out")
    topics.send(topic, ["before"] * 5)
    frame = stream(spark, topics, topic).select("value")
    assert drain(into_topic(frame, topics, out, checkpoint, availableNow=True)) == [0]
    topics.send(topic, ["after"] * 3)
    assert drain(into_topic(frame, topics, out, checkpoint, availableNow=True)) == [3]
    assert topics.values(out) == [b"after"] * 3


def test_without_new_records_there_are_no_new_batches(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    topic, out = topics.create("still", 12), topics.create("still-out")
    frame = stream(spark, topics, topic).select("value")
    query = into_topic(frame, topics, out, checkpoint, processingTime="100 milliseconds")
    try:
        eventually(lambda: query.lastProgress is not None, "no batch")
        query.processAllAvailable()
        topics.send(topic, ["x"])
        query.processAllAvailable()
        assert query.lastProgress is not None
        assert query.lastProgress.batchId == 1
    finally:
        query.stop()


def test_a_partition_added_while_running_is_read_from_its_beginning(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    topic, out = topics.create("growing"), topics.create("growing-out")
    frame = stream(spark, topics, topic, startingOffsets="earliest").select("value")
    query = into_topic(frame, topics, out, checkpoint, processingTime="100 milliseconds")
    try:
        topics.send(topic, ["a"])
        query.processAllAvailable()
        topics.grow(topic, 2)
        eventually(lambda: topics.partitions_of(topic) == [0, 1], "no second partition")
        topics.send(topic, ["b"], partition=1)
        eventually(lambda: set(topics.values(out)) == {b"a", b"b"}, "b did not come")
    finally:
        query.stop()


def test_a_leader_that_dies_while_it_is_read_and_written(
    spark: SparkSession, checkpoint: str
) -> None:
    with EmbeddedCluster() as cluster, Topics(cluster, suffix="") as topics:
        for name in ("watched", "copies"):
            cluster.create_topic(name)
        topics.send("watched", [str(number) for number in range(200)])
        frame = stream(
            spark, topics, "watched", startingOffsets="earliest", maxOffsetsPerTrigger="10"
        ).select("value")
        query = into_topic(frame, topics, "copies", checkpoint, processingTime="100 milliseconds")
        try:
            for name, done in (("watched", 20), ("copies", 80)):
                eventually(lambda: len(topics.read("copies")) >= done, "nothing moves")  # noqa: B023 - called at once
                leader = cluster.leader(name)
                cluster.kill(leader)
                eventually(lambda: len(topics.read("copies")) >= done + 30, "nothing moves")  # noqa: B023
                cluster.start(leader)
                cluster.wait_until_in_sync()
            eventually(lambda: len(topics.read("copies")) >= 200, "not all came")
        finally:
            query.stop()
        assert topics.values("copies") == [b"%d" % number for number in range(200)], (
            "each once, in order"
        )


def test_records_lost_between_two_runs(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    topic, out = topics.create("expired"), topics.create("expired-out")
    topics.send(topic, ["0", "1"])
    frame = stream(spark, topics, topic, startingOffsets="earliest").select("value")
    drain(into_topic(frame, topics, out, checkpoint, availableNow=True))
    topics.send(topic, ["2", "3", "4"])
    topics.delete_records(topic, 0, 4)
    with pytest.raises(StreamingQueryException, match="Records may have been lost"):
        drain(into_topic(frame, topics, out, checkpoint, availableNow=True))
    relaxed = stream(spark, topics, topic, failOnDataLoss="false").select("value")
    drain(into_topic(relaxed, topics, out, checkpoint, availableNow=True))
    assert topics.values(out) == [b"0", b"1", b"4"]


def test_a_topic_deleted_between_two_runs_that_end_by_themselves(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    kept, dropped, out = (topics.create(stem) for stem in ("kept", "dropped", "kept-out"))
    topics.send(kept, ["0"])
    topics.send(dropped, ["1"])
    both = f"{kept},{dropped}"
    frame = stream(spark, topics, both, startingOffsets="earliest").select("value")
    drain(into_topic(frame, topics, out, checkpoint, availableNow=True))
    topics.delete(dropped)
    topics.send(kept, ["2"])
    with pytest.raises(StreamingQueryException, match="gone, because the topic was deleted"):
        drain(into_topic(frame, topics, out, checkpoint, availableNow=True))
    relaxed = stream(spark, topics, both, failOnDataLoss="false").select("value")
    drain(into_topic(relaxed, topics, out, checkpoint, availableNow=True))
    assert set(topics.values(out)) == {b"0", b"1", b"2"}
    assert len(topics.values(out)) == 3


def test_available_now_from_latest_while_records_come_in(
    spark: SparkSession, topics: Topics, checkpoint: str
) -> None:
    topic, out = topics.create("busy"), topics.create("busy-out")
    frame = stream(spark, topics, topic).select("value")
    with sending_without_pause(topics, topic):
        drain(into_topic(frame, topics, out, checkpoint, availableNow=True))
        drain(into_topic(frame, topics, out, checkpoint, availableNow=True))
    drain(into_topic(frame, topics, out, checkpoint, availableNow=True))
    sent, copied = topics.values(topic), topics.values(out)
    assert copied, "the second run read what came since the first"
    assert copied == sent[-len(copied) :], "without a gap, up to the end"
