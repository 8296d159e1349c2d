"""One batch may say much about a topic: what counts is the newest state, and the topic's id, not its name."""

from uuid import UUID

from headrace.controller.changes import (
    BrokerRegistered,
    Change,
    ChangeBatch,
    ControllerElected,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from headrace.controller.values import PartitionState
from headrace.ids import TopicPartition
from tests.unit.broker.apis.one_broker import BROKER_ID, LOG_DIR, OneBroker, on_broker

ORDERS = TopicPartition("orders", 0)
NEXT_ID = UUID(int=77)
ALONE = PartitionState((BROKER_ID,), (BROKER_ID,), BROKER_ID, 0, 0)


def publish(broker: OneBroker, *changes: Change) -> None:
    broker.feed.apply(ChangeBatch(broker.cluster.state.controller_epoch, 0, changes))


def elected_again(epoch: int = 1) -> PartitionState:
    return PartitionState((BROKER_ID,), (BROKER_ID,), BROKER_ID, epoch, epoch)


def hosted_id(broker: OneBroker) -> UUID | None:
    partition = broker.partitions.get(*ORDERS)
    return None if partition is None else partition.topic_id


@on_broker()
async def test_a_topic_changes_and_is_deleted(broker: OneBroker) -> None:
    topic_id = await broker.topic("orders")
    publish(
        broker,
        PartitionChanged("orders", 0, elected_again()),
        PartitionsAdded("orders", 1, (ALONE,)),
        TopicDeleted("orders", topic_id, (BROKER_ID,)),
    )
    assert list(broker.partitions) == []
    assert list(broker.log_dirs) == []


@on_broker()
async def test_a_topic_is_deleted_and_created_again(broker: OneBroker) -> None:
    """The new topic has neither the old one's log nor its leader epoch."""
    topic_id = await broker.topic("orders")
    publish(
        broker,
        PartitionChanged("orders", 0, elected_again(5)),
        TopicDeleted("orders", topic_id, (BROKER_ID,)),
        TopicCreated("orders", NEXT_ID, (ALONE,)),
    )
    partition = broker.partitions.get(*ORDERS)
    assert partition is not None
    assert partition.topic_id == partition.log.topic_id == NEXT_ID
    assert partition.leader_epoch == 0
    assert partition.is_leader


@on_broker()
async def test_one_in_the_queue_is_deleted_and_created_again(broker: OneBroker) -> None:
    broker.replica_hosting._at_once = 0
    topic_id = await broker.topic("orders")
    publish(
        broker,
        TopicDeleted("orders", topic_id, (BROKER_ID,)),
        TopicCreated("orders", NEXT_ID, (ALONE,)),
    )
    assert hosted_id(broker) is None
    assert not broker.replica_hosting.apply_queued()
    assert hosted_id(broker) == NEXT_ID


@on_broker()
async def test_one_without_room_is_deleted_and_created_again(broker: OneBroker) -> None:
    broker.disk.capacity_bytes = broker.disk.used_bytes
    topic_id = await broker.topic("orders")
    broker.disk.capacity_bytes = None
    broker.replica_hosting._at_once = 0
    publish(
        broker,
        TopicDeleted("orders", topic_id, (BROKER_ID,)),
        TopicCreated("orders", NEXT_ID, (ALONE,)),
    )
    broker.replica_hosting.retry_after_full_disk()
    assert hosted_id(broker) is None, "that was the topic that is gone"
    broker.replica_hosting.apply_queued()
    assert hosted_id(broker) == NEXT_ID


async def returned(broker: OneBroker, *successor: TopicCreated) -> list[str]:
    """`orders` was deleted while this broker was away. Returns the directories it is told to remove."""
    topic_id = await broker.topic("orders")
    state = broker.cluster.state
    broker.partitions.remove(ORDERS)  # a new process has logs and no roles
    removed: list[str] = []
    broker.replica_hosting._on_topics_deleted = lambda topics, paths: removed.extend(paths)
    changes: tuple[Change, ...] = (
        ControllerElected(state.controller_id, state.controller_epoch),
        BrokerRegistered(state.brokers[BROKER_ID]),
        *successor,
        TopicDeleted("orders", topic_id, (BROKER_ID,)),
    )
    broker.feed.apply(ChangeBatch(state.controller_epoch, 0, changes, is_snapshot=True))
    return removed


@on_broker()
async def test_a_topic_deleted_while_the_broker_was_away_is_removed_from_disk(
    broker: OneBroker,
) -> None:
    removed = await returned(broker)
    assert broker.log_dirs.get(ORDERS) is None
    assert removed == [f"{LOG_DIR}/{name}" for name in broker.disk.list_directories(LOG_DIR)]
    assert removed[0].endswith("-delete")


@on_broker()
async def test_so_is_one_whose_name_is_in_use_again(broker: OneBroker) -> None:
    removed = await returned(broker, TopicCreated("orders", NEXT_ID, (ALONE,)))
    assert hosted_id(broker) == NEXT_ID
    (path,) = removed
    assert path.endswith("-delete")


def unreadable(broker: OneBroker, *topics: TopicCreated) -> ChangeBatch:
    """A new controller cannot read `orders`."""
    state = broker.cluster.state
    election = ControllerElected(
        state.controller_id, state.controller_epoch, {"orders": "a node makes no sense"}
    )
    changes: tuple[Change, ...] = (
        election,
        BrokerRegistered(state.brokers[BROKER_ID]),
        *topics,
    )
    return ChangeBatch(state.controller_epoch, 0, changes, is_snapshot=True)


@on_broker()
async def test_the_log_of_a_topic_that_cannot_be_read_is_left_as_it_is(broker: OneBroker) -> None:
    topic_id = await broker.topic("orders")
    state = broker.cluster.state.topics["orders"].partitions[0]
    before = broker.disk.list_directories(LOG_DIR)
    broker.feed.apply(unreadable(broker))
    assert hosted_id(broker) is None, "nobody leads it"
    assert broker.disk.list_directories(LOG_DIR) == before
    publish(broker, TopicCreated("orders", topic_id, (state,)))
    assert hosted_id(broker) == topic_id


@on_broker()
async def test_other_topics_go_on_beside_one_that_cannot_be_read(broker: OneBroker) -> None:
    await broker.topic("orders")
    topic_id = await broker.topic("payments")
    payments = broker.cluster.state.topics["payments"].partitions
    other = TopicCreated("payments", topic_id, tuple(payments))
    broker.feed.apply(unreadable(broker, other))
    partition = broker.partitions.get("payments", 0)
    assert partition is not None
    assert partition.is_leader
