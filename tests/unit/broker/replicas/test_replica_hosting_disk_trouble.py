"""What a broker hosts when its disk is full or gone: refused, tried again, and never made up."""

import pytest

from headrace.broker.replicas.partition_lookup import missing
from headrace.controller.deletions import DeleteTopics
from headrace.coordination.store import SessionState
from headrace.errors import DiskFailed, DiskFull
from headrace.ids import TopicIdPartition, TopicPartition
from headrace.log.append_result import Appended
from headrace.wire.error_code import ErrorCode
from tests.differential.requests import batch
from tests.unit.broker.apis.one_broker import LOG_DIR, NOW_MS, OneBroker, on_broker

ORDERS = TopicPartition("orders", 0)


def test_a_topic_created_on_a_full_disk_is_hosted_once_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        broker.disk.capacity_bytes = broker.disk.used_bytes
        await broker.topic("orders")
        assert broker.partitions.get("orders", 0) is None
        assert missing(broker.cluster, "orders", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        broker.replica_hosting.retry_after_full_disk()
        assert broker.partitions.get("orders", 0) is None
        told = [each for each in caplog.messages if "orders-0 waits for room on the disk" in each]
        assert len(told) == 1, "once, not with every retry"
        broker.disk.capacity_bytes = None
        broker.replica_hosting.retry_after_full_disk()
        partition = broker.partitions.get("orders", 0)
        assert partition is not None
        assert partition.is_leader

    story()


@on_broker()
async def test_without_a_registration_nothing_is_tried_again(broker: OneBroker) -> None:
    broker.disk.capacity_bytes = broker.disk.used_bytes
    await broker.topic("orders")
    broker.disk.capacity_bytes = None
    broker.replica_hosting.session_changed(SessionState.LOST)
    broker.replica_hosting.retry_after_full_disk()
    assert broker.partitions.get(*ORDERS) is None, "another run of this broker was to lead it"


@on_broker()
async def test_a_full_disk_does_not_take_a_directory_offline(broker: OneBroker) -> None:
    await broker.topic("orders")
    broker.replica_hosting.take_offline(ORDERS, DiskFull("no room"))
    assert broker.log_dirs.offline == {}
    assert broker.partitions.get(*ORDERS) is not None


@on_broker()
async def test_a_failed_directory_takes_its_partitions_along(broker: OneBroker) -> None:
    await broker.topic("orders", 2)
    broker.replica_hosting.take_offline(ORDERS, DiskFailed("it burns"))
    assert broker.log_dirs.offline == {LOG_DIR: "it burns"}
    for index in (0, 1):
        assert broker.partitions.get("orders", index) is None
        assert missing(broker.cluster, "orders", index).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@on_broker()
async def test_a_log_that_cannot_be_opened_is_not_replaced_by_an_empty_one(
    broker: OneBroker,
) -> None:
    topic_id = await broker.topic("orders")
    broker.partitions.remove(ORDERS)
    broker.log_dirs.online[0].logs.pop(ORDERS)
    broker.log_dirs.broken[ORDERS] = "unreadable"
    broker.replica_hosting._apply_role(TopicIdPartition(topic_id, 0))
    assert broker.partitions.get(*ORDERS) is None
    assert ORDERS in broker.log_dirs.broken


@on_broker()
async def test_a_topic_can_be_deleted_though_its_directory_is_gone(broker: OneBroker) -> None:
    topic_id = await broker.topic("orders")
    await broker.topic("others")
    broker.disk.remove_tree(f"{LOG_DIR}/orders-0")
    broker.replica_hosting._remove_topics({topic_id: "orders"})
    assert broker.partitions.get(*ORDERS) is None
    assert list(broker.log_dirs.offline) == [LOG_DIR]


@on_broker()
async def test_the_only_log_of_a_directory_that_cannot_be_set_aside_takes_it_offline(
    broker: OneBroker,
) -> None:
    """Or the next topic of this name would start with the records of the one that was deleted."""
    topic_id = await broker.topic("orders")
    broker.disk.remove_tree(f"{LOG_DIR}/orders-0")
    broker.replica_hosting._remove_topics({topic_id: "orders"})
    assert list(broker.log_dirs.offline) == [LOG_DIR]


@on_broker()
async def test_a_topic_created_again_does_not_start_in_the_directory_of_a_broken_log(
    broker: OneBroker,
) -> None:
    await broker.topic("orders")
    partition = broker.partitions.remove(ORDERS)
    assert partition is not None
    appended = partition.log.append_as_leader(
        [bytearray(batch(b"of the old topic"))], leader_epoch=0, now_ms=NOW_MS
    )
    assert isinstance(appended, Appended)
    broker.log_dirs.online[0].logs.pop(ORDERS)
    broker.log_dirs.broken[ORDERS] = "unreadable"
    await broker.controller.ask(DeleteTopics(names=("orders",)))
    topic_id = await broker.topic("orders")
    successor = broker.partitions.get(*ORDERS)
    assert successor is not None
    assert successor.log.topic_id == topic_id
    assert successor.log.log_end_offset == 0
    assert not broker.log_dirs.broken
    (kept,) = set(broker.disk.list_directories(LOG_DIR)) - {"orders-0"}
    assert kept.endswith("-stray")


@on_broker()
async def test_a_directory_in_which_no_log_can_be_created_takes_its_partitions_along(
    broker: OneBroker,
) -> None:
    await broker.topic("orders")
    # A file where the directory of the new log should be.
    broker.disk.create(f"{LOG_DIR}/others-0")
    broker.disk.rename = _refuse  # type: ignore[method-assign]
    await broker.topic("others")
    assert list(broker.log_dirs.offline) == [LOG_DIR]
    assert broker.partitions.get(*ORDERS) is None


def _refuse(source: str, target: str) -> None:
    raise DiskFailed(f"{source}: Input/output error")
