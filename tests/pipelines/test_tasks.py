"""What the tasks of the source and the sink do against real brokers, without a Spark around them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from headrace.client.connection import Connection
from headrace.client.key_partition import partition_of_key
from headrace.ids import TopicPartition
from headrace.pipelines.cluster import task_clients
from headrace.pipelines.cluster.cluster_offsets import ClusterOffsets
from headrace.pipelines.options.sink_options import parse_sink_options
from headrace.pipelines.options.source_options import SourceOptions, parse_source_options
from headrace.pipelines.reading import range_reading
from headrace.pipelines.reading.range_reading import DataLost, TaskRange, read_now, read_range
from headrace.pipelines.reading.record_opening import SourceColumns
from headrace.pipelines.redrive import redrive
from headrace.pipelines.writing.row_writing import write_rows
from headrace.schemas.columns.codec import PinnedSchema
from headrace.testing.embedded_cluster import EmbeddedCluster
from headrace.wire.messages.fetch import FetchRequest
from tests.support.spark_topics import Topics

VALUES = SourceColumns(pa.schema([("value", pa.binary())]))
RECORDS = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])


@pytest.fixture(autouse=True)
def fresh_clients() -> Iterator[None]:
    """Tests share one process, as tasks do; clients of brokers that are gone must not stay."""
    yield
    for leaders in task_clients._leaders.values():
        leaders.close()
    for producer in list(task_clients._producers.values()):
        producer.close()
    task_clients._leaders.clear()
    task_clients._producers.clear()


def source(topics: Topics, names: str, **options: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": topics.bootstrap_servers, "subscribe": names}
    more = {name.replace("__", "."): value for name, value in options.items()}
    return parse_source_options(given | more, streaming=True)


def read(options: SourceOptions, topic: str, end: int) -> list[bytes]:
    task = TaskRange(partition=TopicPartition(topic, 0), start=0, end=end, topic_id=None)
    return [
        value
        for rows in read_range(task, VALUES, options)
        for value in rows.column("value").to_pylist()
    ]


def written(topics: Topics, topic: str, keys: list[bytes], **options: str) -> None:
    given = {"kafka.bootstrap.servers": topics.bootstrap_servers, "topic": topic}
    more = {name.replace("__", "."): value for name, value in options.items()}
    column = pa.array(keys, pa.binary())
    rows = pa.RecordBatch.from_arrays([column, column], ["key", "value"])
    write_rows(iter([rows]), parse_sink_options(given | more, RECORDS))


def test_a_deleted_topic_is_missing_from_the_end_offsets_and_the_others_are_told(
    topics: Topics,
) -> None:
    kept, dropped = topics.create("kept"), topics.create("dropped")
    topics.send(kept, ["x"])
    # What was found is believed for a minute: the deletion shows in the offsets first.
    options = source(topics, f"{kept},{dropped}", **{"partition.metadata.cache.ttl.ms": "60000"})
    cluster = ClusterOffsets(options)
    try:
        both = {TopicPartition(kept, 0), TopicPartition(dropped, 0)}
        assert set(cluster.ends([])) == both
        topics.delete(dropped)
        since = time.monotonic()
        assert cluster.ends(both) == {TopicPartition(kept, 0): 1}
        assert time.monotonic() - since < 30, "no election is waited for"
    finally:
        cluster.close()


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_a_task_whose_topic_was_deleted_does_not_wait_for_an_election(
    topics: Topics, fail_on_data_loss: str
) -> None:
    topic = topics.create("deleted")
    topics.send(topic, ["x"])
    options = source(topics, topic, failOnDataLoss=fail_on_data_loss)
    assert read(options, topic, 1) == [b"x"]
    topics.delete(topic)
    since = time.monotonic()
    if fail_on_data_loss == "true":
        with pytest.raises(DataLost, match="does not exist any more"):
            read(options, topic, 1)
    else:
        assert read(options, topic, 1) == []
    assert time.monotonic() - since < 30


def test_a_small_batch_is_read_at_once_and_a_large_one_is_not(topics: Topics) -> None:
    topic, dead = topics.create("small", 2), topics.create("small-letters")
    topics.send(topic, ['{"id":1}', "bad"], partition=0)
    topics.send(topic, ['{"id":2}', '{"id":3}'], partition=1)
    options = source(
        topics,
        topic,
        valueFormat="json",
        valueSchema="id BIGINT",
        onDecodeError="deadLetterTopic",
        deadLetterTopic=dead,
    )
    columns = SourceColumns(pa.schema([("value", pa.struct([("id", pa.int64())]))]))
    tasks = [
        TaskRange(partition=TopicPartition(topic, number), start=0, end=2, topic_id=None)
        for number in (0, 1)
    ]
    assert read_now(tasks, columns, options, most_bytes=10) is None
    assert topics.read(dead) == [], "a task will read the records and send this one"
    rows = read_now(tasks, columns, options, most_bytes=1000)
    assert rows is not None
    found = [each["id"] for batch in rows for each in batch.column("value").to_pylist()]
    assert found == [1, 2, 3]
    assert len(topics.read(dead)) == 1


def test_what_cannot_be_read_at_once_is_left_to_a_task(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reading, "_SOON_MS", 300)
    topic = topics.create("silent")
    task = TaskRange(partition=TopicPartition(topic, 0), start=0, end=1, topic_id=None)
    assert read_now([task], VALUES, source(topics, topic), most_bytes=1000) is None


def test_a_batch_whose_schemas_cannot_be_had_at_once_is_left_to_a_task(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reading, "_REGISTRY_SOON_S", 0.3)
    topic = topics.create("no-registry")
    topics.send(topic, ["\0\0\0\0\x01\x02"])
    with closing(socket.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))  # never listens, so that connections are refused
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        options = source(topics, topic, valueFormat="avro", schemaRegistry=url)
        columns = SourceColumns(
            pa.schema([("value", pa.int64())]), {"value": PinnedSchema("AVRO", '"long"')}
        )
        task = TaskRange(partition=TopicPartition(topic, 0), start=0, end=1, topic_id=None)
        assert read_now([task], columns, options, most_bytes=1000) is None
    assert options.opening.registry is not None
    assert options.opening.registry.total_timeout_s == 30, "a task waits as long as it was told"


def test_added_partitions_are_used_by_a_sink_that_wrote_before(topics: Topics) -> None:
    topic = topics.create("widened")
    keys = [b"%d" % number for number in range(50)]
    written(topics, topic, keys, kafka__metadata__max__age__ms="0")
    topics.grow(topic, 4)
    while topics.partitions_of(topic) != [0, 1, 2, 3]:
        time.sleep(0.05)
    written(topics, topic, keys, kafka__metadata__max__age__ms="0")
    second = [each for each in topics.read(topic) if each.partition or each.offset >= len(keys)]
    assert sorted((each.key, each.partition) for each in second) == sorted(
        (key, partition_of_key(key, 4)) for key in keys
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The peers that were sent Fetch requests."""
    peers: list[str] = []
    begin = Connection.begin

    def noted(self: Connection, request: Any, version: int | None = None) -> None:
        if isinstance(request, FetchRequest):
            peers.append(self._peer)
        begin(self, request, version)

    monkeypatch.setattr(Connection, "begin", noted)
    return peers


def test_the_replica_in_the_readers_rack_is_read(asked: list[str]) -> None:
    settings = {
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    }
    with (
        EmbeddedCluster(settings, racks=("r1", "r2", "r3")) as cluster,
        Topics(cluster, suffix="") as topics,
    ):
        cluster.create_topic("near")
        topics.send("near", [str(number) for number in range(100)])
        cluster.wait_until_in_sync()
        leader = cluster.leader("near")
        follower = next(each for each in cluster.brokers if each != leader)
        options = source(topics, "near", kafka__client__rack=f"r{follower}")
        values = [b"%d" % number for number in range(100)]
        assert read(options, "near", 100) == values
        servers = {each: broker.bootstrap_servers for each, broker in cluster.brokers.items()}
        assert asked[0] == servers[leader]
        assert asked[-1] == servers[follower]
        assert len(asked) < 10
        asked.clear()
        assert read(options, "near", 100) == values
        assert set(asked) == {servers[follower]}, "the next task remembers it"
        asked.clear()
        cluster.kill(follower)
        assert read(options, "near", 100) == values, "the leader serves what its follower cannot"
        assert len(asked) < 20


def test_copies_of_a_dead_letter_are_sent_back_once(topics: Topics) -> None:
    """Also a copy that comes when the first one was sent back long ago; and they do not double with each round."""
    topic, dead = topics.create("origin"), topics.create("letters", 2)
    topics.send(topic, ["bad"])
    options = source(
        topics,
        topic,
        valueFormat="json",
        valueSchema="id BIGINT",
        onDecodeError="deadLetterTopic",
        deadLetterTopic=dead,
    )
    schema = pa.schema([("value", pa.struct([("id", pa.int64())]))])

    def flow(end: int) -> None:
        """What each flow that reads the source does; here all of them from the beginning."""
        with closing(ClusterOffsets(options)) as cluster:
            cluster.partitions()
            topic_id = cluster.topic_ids[topic]
        task = TaskRange(
            partition=TopicPartition(topic, 0), start=end - 1, end=end, topic_id=topic_id
        )
        assert list(read_range(task, SourceColumns(schema), options)) == []

    flow(1)
    flow(1)
    assert len(topics.read(dead)) == 2
    first = redrive(topics.bootstrap_servers, dead)
    assert (first.sent, first.copies) == ({topic: 1}, 1)
    flow(1)
    late = redrive(topics.bootstrap_servers, dead)
    assert (late.sent, late.copies) == ({}, 1)
    assert len(topics.read(topic)) == 2
    flow(2)
    flow(2)
    second = redrive(topics.bootstrap_servers, dead)
    assert (second.sent, second.copies) == ({topic: 1}, 1)
    assert len(topics.read(topic)) == 3, "one more, not twice as many"
