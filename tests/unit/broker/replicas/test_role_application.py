"""Many partitions are given their roles a few at a time, whatever happens to them before their turn comes."""

import asyncio
from itertools import pairwise

from headrace.broker.replicas.role_application import PARTITIONS_PER_SLICE, RoleApplication
from headrace.controller.changes import ChangeBatch, PartitionChanged, TopicDeleted
from headrace.controller.values import PartitionState
from headrace.coordination.store import SessionState
from headrace.replication.partition import Partition
from tests.unit.broker.apis.one_broker import OneBroker, on_broker

AT_ONCE = 4


def hosted(broker: OneBroker, topic: str = "many") -> list[int]:
    return sorted(broker.partitions.of_topic(topic) or {})


async def create(broker: OneBroker, partitions: int = 10) -> None:
    broker.replica_hosting._at_once = AT_ONCE
    await broker.topic("many", partitions)


def publish(broker: OneBroker, *changes: PartitionChanged | TopicDeleted) -> None:
    broker.feed.apply(ChangeBatch(broker.cluster.state.controller_epoch, 0, changes))


@on_broker()
async def test_they_come_in_turns(broker: OneBroker) -> None:
    await create(broker)
    assert hosted(broker) == [0, 1, 2, 3]
    assert broker.replica_hosting.apply_queued(4)
    assert hosted(broker) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert not broker.replica_hosting.apply_queued(4)
    assert hosted(broker) == list(range(10))
    assert all(partition.is_leader for partition in broker.partitions)


@on_broker()
async def test_a_change_before_its_turn_counts_when_its_turn_comes(broker: OneBroker) -> None:
    await create(broker)
    state = broker.cluster.state.topics["many"].partitions[9]
    after = PartitionState(state.replicas, state.isr, state.leader, state.leader_epoch + 1, 9)
    broker.replica_hosting._at_once = 0
    publish(broker, PartitionChanged("many", 9, after))
    assert hosted(broker) == [0, 1, 2, 3]
    broker.replica_hosting.apply_queued()
    partition = broker.partitions.get("many", 9)
    assert partition is not None
    assert partition.leader_epoch == after.leader_epoch
    assert hosted(broker) == list(range(10))


@on_broker()
async def test_what_is_deleted_meanwhile_is_not_taken_up(broker: OneBroker) -> None:
    await create(broker)
    topic_id = broker.cluster.state.topics["many"].topic_id
    publish(broker, TopicDeleted("many", topic_id, ()))
    assert not broker.replica_hosting.apply_queued()
    assert hosted(broker) == []
    assert list(broker.log_dirs) == []


@on_broker()
async def test_without_a_registration_they_wait_for_the_next_picture(broker: OneBroker) -> None:
    await create(broker)
    broker.replica_hosting.session_changed(SessionState.LOST)
    assert not broker.replica_hosting.apply_queued()
    assert hosted(broker) == [0, 1, 2, 3]
    assert broker.replica_hosting.has_queued_roles


class FollowsInSilence:
    """Notes what is to be followed."""

    def __init__(self) -> None:
        self.followed: list[int] = []

    def follow(self, partition: Partition, leader_id: int, on_disk_failed: object) -> None:
        self.followed.append(partition.topic_partition.partition)

    def leave(self, partition: Partition) -> None:
        """It was never fetched."""


def elected(broker: OneBroker, leaders: list[int]) -> list[PartitionChanged]:
    """All partitions change hands."""
    before = broker.cluster.state.topics["many"].partitions
    return [
        PartitionChanged(
            "many",
            index,
            PartitionState(
                (1, 2), (1, 2), leader, state.leader_epoch + 1, state.partition_epoch + 1
            ),
        )
        for index, (leader, state) in enumerate(zip(leaders, before, strict=True))
    ]


def epochs(broker: OneBroker) -> list[int]:
    known = broker.partitions.of_topic("many") or {}
    return [known[index].leader_epoch for index in sorted(known)]


@on_broker()
async def test_what_changes_hands_comes_in_turns_and_new_leaders_first(broker: OneBroker) -> None:
    broker.replica_hosting._fetchers = following = FollowsInSilence()
    await broker.topic("many", 8)
    broker.replica_hosting._at_once = 2
    publish(broker, *elected(broker, [2, 1, 2, 1, 2, 1, 2, 2]))
    assert epochs(broker) == [0, 1, 0, 1, 0, 0, 0, 0]
    assert broker.replica_hosting.apply_queued(2)
    assert epochs(broker) == [1, 1, 0, 1, 0, 1, 0, 0]
    assert not broker.replica_hosting.apply_queued(10)
    assert epochs(broker) == [1] * 8
    assert following.followed == [0, 2, 4, 6, 7]


@on_broker()
async def test_a_newer_word_counts_when_the_turn_comes(broker: OneBroker) -> None:
    broker.replica_hosting._fetchers = FollowsInSilence()
    await broker.topic("many", 3)
    broker.replica_hosting._at_once = 0
    publish(broker, *elected(broker, [2, 2, 2]))
    publish(broker, *elected(broker, [1, 1, 1]))
    broker.replica_hosting.apply_queued()
    assert epochs(broker) == [2, 2, 2]
    assert all(partition.is_leader for partition in broker.partitions)


@on_broker()
async def test_a_new_registration_settles_everything_at_once(broker: OneBroker) -> None:
    broker.replica_hosting._fetchers = FollowsInSilence()
    await broker.topic("many", 5)
    broker.replica_hosting._at_once = 1
    broker.replica_hosting._needs_full_state = True
    changes = elected(broker, [2, 2, 2, 2, 2])
    broker.cluster.apply(ChangeBatch(broker.cluster.state.controller_epoch, 0, tuple(changes)))
    broker.replica_hosting.registered()
    assert epochs(broker) == [1] * 5


@on_broker()
async def test_others_have_their_turn_in_between(broker: OneBroker) -> None:
    turns = RoleApplication(broker.replica_hosting)
    broker.replica_hosting._at_once = PARTITIONS_PER_SLICE
    await broker.topic("many", 100)
    turns.apply(ChangeBatch(broker.cluster.state.controller_epoch, 0, ()))
    running = asyncio.create_task(turns.run())
    seen: list[int] = []

    async def look() -> None:
        while len(seen) < 2 or seen[-1] < 100:
            seen.append(len(hosted(broker)))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await turns.all_applied()
    assert hosted(broker) == list(range(100))
    await looking
    steps = [later - earlier for earlier, later in pairwise(seen)]
    assert max(steps) <= 2 * PARTITIONS_PER_SLICE, "each a piece of the whole"
    running.cancel()
