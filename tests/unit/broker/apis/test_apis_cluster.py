"""DescribeCluster, DescribeTopicPartitions, DescribeLogDirs, InitProducerId."""

import pytest

from headrace.broker.apis import (
    describe_cluster,
    describe_log_dirs,
    describe_topic_partitions,
    init_producer_id,
)
from headrace.controller.driver import ControllerDriver
from headrace.coordination.store import StoreFailed
from headrace.internal_topics import TRANSACTION_STATE
from headrace.log.files.os_disk import OsDisk
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.messages.describe_cluster import DescribeClusterRequest
from headrace.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from headrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from tests.unit.broker.apis.one_broker import (
    BROKER_ID,
    CLUSTER_ID,
    LOG_DIR,
    NOW_MS,
    OneBroker,
    on_broker,
)


@on_broker()
async def test_the_cluster_is_described(broker: OneBroker) -> None:
    for version in range(3):
        response = await broker.ask(describe_cluster, DescribeClusterRequest(), version)
        assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, BROKER_ID)
        (one,) = response.brokers
        assert (one.broker_id, one.host, one.port, one.rack) == (1, "dialled", 9092, "here")
        assert response.cluster_authorized_operations == -(2**31)
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = await broker.ask(describe_cluster, asked, 2)
    assert response.cluster_authorized_operations == 8096


@on_broker()
async def test_there_are_no_endpoints_of_controllers(broker: OneBroker) -> None:
    for endpoint_type, error in ((2, 114), (9, 115)):
        asked = DescribeClusterRequest(endpoint_type=endpoint_type)
        response = await broker.ask(describe_cluster, asked, 1)
        assert (response.error_code, response.brokers) == (error, [])
        assert response.error_message


# ---- DescribeTopicPartitions


def page(response: DescribeTopicPartitionsResponse) -> tuple[object, ...]:
    topics = [
        (topic.name, [partition.partition_index for partition in topic.partitions])
        for topic in response.topics
    ]
    cursor = response.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


def pages(
    *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


# What Kafka 4.3 answers, asked with a topic t3 of four partitions and t5 of five.
PAGES = [
    (pages("t5", "t3", "t3"), [("t3", [0, 1, 2, 3]), ("t5", [0, 1, 2, 3, 4])], None),
    (pages("t5", "t3", limit=4), [("t3", [0, 1, 2, 3])], ("t5", 0)),
    (pages("t5", "t3", limit=4, cursor=("t5", 1)), [("t5", [1, 2, 3, 4])], None),
    (pages("t5", "t3", limit=3), [("t3", [0, 1, 2])], ("t3", 3)),
    (pages("t5", "t3", limit=8), [("t3", [0, 1, 2, 3]), ("t5", [0, 1, 2, 3])], ("t5", 4)),
    (pages("t5", "t3", limit=0), [("t3", [0])], ("t3", 1)),
    (pages("t5", "t3", limit=-5), [("t3", [0])], ("t3", 1)),
    (pages("t5", "t3", cursor=("t3", 7)), [("t3", []), ("t5", [0, 1, 2, 3, 4])], None),
    (pages("nope", "t3", limit=3), [("nope", []), ("t3", [0, 1, 2])], ("t3", 3)),
    (pages(limit=5), [("t3", [0, 1, 2, 3]), ("t5", [0])], ("t5", 1)),
    (pages(limit=2, cursor=("t4", 3)), [("t5", [0, 1])], ("t5", 2)),
]


@on_broker()
async def test_topics_are_described_page_by_page(broker: OneBroker) -> None:
    await broker.topic("t5", 5)
    await broker.topic("t3", 4)
    for request, topics, cursor in PAGES:
        response = await broker.ask(describe_topic_partitions, request, 0)
        assert page(response) == (topics, cursor), request


@on_broker(max_request_partition_size_limit="2")
async def test_the_broker_limits_a_page_too(broker: OneBroker) -> None:
    await broker.topic("a", 3)
    response = await broker.ask(describe_topic_partitions, pages("a"), 0)
    assert page(response) == ([("a", [0, 1])], ("a", 2))


@on_broker()
async def test_a_cursor_that_fits_nothing_is_refused(broker: OneBroker) -> None:
    await broker.topic("a")
    for cursor in (("b", 0), ("a", -1)):
        response = await broker.ask(describe_topic_partitions, pages("a", cursor=cursor), 0)
        assert [topic.error_code for topic in response.topics] == [42]


@on_broker()
async def test_what_is_said_of_a_topic(broker: OneBroker) -> None:
    topic_id = await broker.topic("a")
    response = await broker.ask(describe_topic_partitions, pages("a", "b", "c d"), 0)
    found, missing, illegal = response.topics
    assert (found.topic_id, found.topic_authorized_operations) == (topic_id, 3576)
    (partition,) = found.partitions
    assert (partition.leader_id, partition.leader_epoch, partition.isr_nodes) == (1, 0, [1])
    # Empty, not null: that would mean a cluster too old to know.
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
    assert (missing.error_code, illegal.error_code) == (3, 17)


# ---- DescribeLogDirs


@on_broker()
async def test_log_directories_tell_sizes_and_room(broker: OneBroker) -> None:
    await broker.topic("a", 2)
    await broker.topic("b")
    partition = broker.partitions.get("a", 1)
    assert partition is not None
    batch = build_batch(records_at(0, NOW_MS, [(b"k", b"v")]), BatchOptions())
    partition.append([bytearray(batch)], acks=1, now_ms=NOW_MS)
    for version in range(1, 6):
        response = await broker.ask(describe_log_dirs, DescribeLogDirsRequest(topics=None), version)
        (directory,) = response.results
        assert (directory.error_code, directory.log_dir) == (0, LOG_DIR)
        sizes = {
            (topic.name, one.partition_index): one.partition_size
            for topic in directory.topics
            for one in topic.partitions
        }
        assert sizes == {("a", 0): 0, ("a", 1): len(batch), ("b", 0): 0}
        if version >= 4:
            assert directory.total_bytes == 1 << 30
            assert directory.usable_bytes == (1 << 30) - broker.disk.used_bytes


@on_broker()
async def test_only_the_logs_that_were_asked_for(broker: OneBroker) -> None:
    await broker.topic("a", 2)
    asked = [
        DescribableLogDirTopic(topic="a", partitions=[1, 99]),
        DescribableLogDirTopic(topic="zz", partitions=[0]),
    ]
    response = await broker.ask(describe_log_dirs, DescribeLogDirsRequest(topics=asked), 5)
    (topic,) = response.results[0].topics
    assert (topic.name, [one.partition_index for one in topic.partitions]) == ("a", [1])
    response = await broker.ask(describe_log_dirs, DescribeLogDirsRequest(topics=[]), 5)
    assert response.results[0].topics == []


@on_broker()
async def test_a_directory_that_is_offline(broker: OneBroker) -> None:
    broker.log_dirs.take_offline(LOG_DIR, "it is broken")
    response = await broker.ask(describe_log_dirs, DescribeLogDirsRequest(topics=None), 5)
    assert [(one.error_code, one.log_dir) for one in response.results] == [(56, LOG_DIR)]


def test_the_room_on_a_disk(tmp_path: object) -> None:
    usage = OsDisk().usage(str(tmp_path))
    assert 0 < usage.usable_bytes <= usage.total_bytes
    assert MemoryDisk().usage("/").usable_bytes > 0


# ---- InitProducerId


@on_broker()
async def test_every_producer_gets_an_id_of_its_own(broker: OneBroker) -> None:
    given = set()
    for version in range(6):
        asked = InitProducerIdRequest(transactional_id=None)
        response = await broker.ask(init_producer_id, asked, version)
        assert (response.error_code, response.producer_epoch) == (0, 0)
        given.add(response.producer_id)
    asked = InitProducerIdRequest(transactional_id=None, producer_id=3, producer_epoch=7)
    response = await broker.ask(init_producer_id, asked, 3)
    assert (response.error_code, response.producer_epoch) == (0, 0)
    given.add(response.producer_id)
    assert len(given) == 7
    assert min(given) >= 0


@on_broker()
async def test_malformed_requests_for_a_producer_id_are_refused(broker: OneBroker) -> None:
    await initialized(broker)
    for transactional_id, producer_id, epoch in (
        ("", 5, -1),
        ("tx", -1, 0),
        (None, 5, -1),
        (None, -1, 3),
    ):
        asked = InitProducerIdRequest(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch
        )
        response = await broker.ask(init_producer_id, asked, 4)
        assert (response.error_code, response.producer_id) == (42, -1)
        assert response.producer_epoch == -1


async def initialized(broker: OneBroker) -> None:
    """The topic of the transaction coordinator exists and is loaded."""
    await broker.topic_creation.create([TRANSACTION_STATE])
    await broker.transaction_runtime.loaded()


@on_broker()
async def test_a_transactional_producer_gets_its_id_and_the_next_one_its_next_epoch(
    broker: OneBroker,
) -> None:
    await initialized(broker)
    asked = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    first = await broker.ask(init_producer_id, asked, 5)
    second = await broker.ask(init_producer_id, asked, 5)
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, 1)
    asked.producer_id, asked.producer_epoch = first.producer_id, first.producer_epoch
    for version, error in ((3, 47), (4, 90)):
        fenced = await broker.ask(init_producer_id, asked, version)
        assert (fenced.error_code, fenced.producer_id, fenced.producer_epoch) == (error, -1, -1)
    asked.producer_epoch = 1
    assert (await broker.ask(init_producer_id, asked, 4)).producer_epoch == 2
    asked.transaction_timeout_ms = 0
    assert (await broker.ask(init_producer_id, asked, 4)).error_code == 50


@on_broker()
async def test_without_ids_the_client_tries_again(broker: OneBroker) -> None:
    broker.broker_epoch -= 1  # the controller gives nothing to a former incarnation
    response = await broker.ask(init_producer_id, InitProducerIdRequest(transactional_id=None), 4)
    assert (response.error_code, response.producer_id) == (14, -1)


def test_a_store_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StoreFailed("the disk is full")

    monkeypatch.setattr(ControllerDriver, "ask", fail)

    @on_broker()
    async def scenario(broker: OneBroker) -> None:
        asked = InitProducerIdRequest(transactional_id=None)
        assert (await broker.ask(init_producer_id, asked, 4)).error_code == 14

    scenario()
