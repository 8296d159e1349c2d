"""A broker whose logs have seen newer leader epochs or producer ids than the coordination store knows of."""

from uuid import UUID

import msgspec
import pytest

from headrace.broker.replicas.epoch_raising import EpochRaising
from headrace.broker.upkeep.housekeeping import note_replicas
from headrace.controller.raise_epochs import PRODUCER_IDS_A_SECOND
from headrace.controller.values import PartitionState
from headrace.ids import TopicIdPartition, TopicPartition
from headrace.log.append_result import Appended
from headrace.records.batch_builder import BatchOptions
from headrace.replication.partition import Partition
from headrace.wire.error_code import ErrorCode
from tests.differential.requests import batch, by_producer
from tests.unit.broker.apis.one_broker import NOW_MS, OneBroker, on_broker

ORDERS = TopicPartition("orders", 0)


def newer_logs(broker: OneBroker) -> EpochRaising:
    return EpochRaising(
        broker.cluster,
        broker.replica_hosting,
        broker.controller,
        lambda: broker.broker_epoch,
        broker.clock,
    )


def append(broker: OneBroker, options: BatchOptions | None = None) -> None:
    records = bytearray(batch(b"v", options=options))
    assert isinstance(hosted(broker).append([records], acks=-1, now_ms=NOW_MS), Appended)


def hosted(broker: OneBroker) -> Partition:
    partition = broker.partitions.get(*ORDERS)
    assert partition is not None
    return partition


def leads(broker: OneBroker) -> bool:
    return hosted(broker).is_leader


def state_of(broker: OneBroker) -> PartitionState:
    return broker.cluster.state.topics["orders"].partitions[0]


def host_again(broker: OneBroker, topic_id: UUID) -> Partition:
    """As at the next start: the log is there, the role is given anew."""
    broker.partitions.remove(ORDERS)
    broker.replica_hosting._apply_role(TopicIdPartition(topic_id, 0))
    return hosted(broker)


@on_broker()
async def test_a_leader_does_not_write_under_an_epoch_that_its_log_has_seen(
    broker: OneBroker,
) -> None:
    """The store gives an epoch of which the log has records; then the log has records of a newer one."""
    topic_id = await broker.topic("orders")
    append(broker)
    for newer_by in (0, 7):
        log = hosted(broker).log
        if newer_by:
            epoch = log.leader_epochs.latest + newer_by
            log.append_as_leader([bytearray(batch(b"v"))], leader_epoch=epoch, now_ms=NOW_MS)
        before = log.leader_epochs.entries
        partition = host_again(broker, topic_id)
        assert not leads(broker)
        assert log.leader_epochs.entries == before
        due = newer_logs(broker).due()
        assert due is not None
        assert [each.leader_epoch for each in due.logs] == [log.leader_epochs.latest]
        assert await broker.controller.ask(due) is ErrorCode.NONE
        assert leads(broker)
        assert partition.leader_epoch > before[-1].epoch
        assert log.leader_epochs.entries[: len(before)] == before
        assert newer_logs(broker).due() is None
        append(broker)


@on_broker()
async def test_a_newer_log_is_not_cut_to_what_an_older_leader_has(broker: OneBroker) -> None:
    """To follow would truncate the log; `NobodyToFollow` fails if it is asked to."""
    topic_id = await broker.topic("orders")
    append(broker)
    log = hosted(broker).log
    log.append_as_leader([bytearray(batch(b"v"))], leader_epoch=7, now_ms=NOW_MS)
    broker.partitions.remove(ORDERS)
    partition = broker.replica_hosting._host(ORDERS, topic_id, is_new=False)
    assert partition is not None
    elsewhere = msgspec.structs.replace(state_of(broker), leader=9, leader_epoch=6)
    broker.replica_hosting._give_role(partition, elsewhere)
    assert not leads(broker)
    assert newer_logs(broker).due() is None, "only a leader's epoch is raised"


@on_broker()
async def test_an_epoch_that_was_heard_of_is_not_led_in_again(broker: OneBroker) -> None:
    """Its leadership wrote no record, so that the log does not tell of it."""
    topic_id = await broker.topic("orders")
    note_replicas(broker.log_dirs, broker.partitions)
    (directory,) = broker.log_dirs.online
    assert directory.seen_epochs == {ORDERS: 0}
    directory.seen_epochs[ORDERS] = 9
    host_again(broker, topic_id)
    assert not leads(broker)
    due = newer_logs(broker).due()
    assert due is not None
    assert [each.leader_epoch for each in due.logs] == [9]


@pytest.mark.parametrize(("seen", "is_other"), [(3, False), (6, False), (4, True), (7, True)])
def test_a_follower_that_knows_an_epoch_which_was_never_given_out(
    seen: int, is_other: bool
) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        topic_id = await broker.topic("orders")
        append(broker)
        broker.partitions.remove(ORDERS)
        (directory,) = broker.log_dirs.online
        directory.seen_epochs[ORDERS] = seen
        partition = broker.replica_hosting._host(ORDERS, topic_id, is_new=False)
        assert partition is not None
        state = msgspec.structs.replace(
            state_of(broker), leader=9, leader_epoch=6, former_epochs=(0, 3, 5)
        )
        broker.replica_hosting._fetchers = Followed()
        broker.replica_hosting._give_role(partition, state)
        assert partition.is_of_other_history is is_other
        note_replicas(broker.log_dirs, broker.partitions)
        assert directory.seen_epochs[ORDERS] == (seen if is_other else 6)
        partition.append_as_follower(b"", high_watermark=0, log_start_offset=0, now_ms=NOW_MS)
        note_replicas(broker.log_dirs, broker.partitions)
        assert not partition.is_of_other_history, "the leader has all that is here"
        assert directory.seen_epochs[ORDERS] == 6

    story()


class Followed:
    """Follows without a network."""

    def follow(self, *_: object) -> None:
        pass

    def leave(self, _: Partition) -> None:
        pass


@on_broker()
async def test_an_old_cluster_state_does_not_end_a_leadership(broker: OneBroker) -> None:
    """As a controller publishes it that does not know yet that it is deposed."""
    await broker.topic("orders")
    partition = hosted(broker)
    newest = msgspec.structs.replace(state_of(broker), leader_epoch=4)
    broker.replica_hosting._give_role(partition, newest)
    append(broker)
    for leader in (9, newest.leader):
        old = msgspec.structs.replace(newest, leader=leader, leader_epoch=3)
        broker.replica_hosting._give_role(partition, old)
        assert leads(broker)
        assert newer_logs(broker).due() is None


@on_broker()
async def test_a_leader_that_goes_on_under_a_restored_store_asks_for_a_new_epoch(
    broker: OneBroker,
) -> None:
    topic_id = await broker.topic("orders")
    partition = hosted(broker)
    partition.resign()
    partition.leader_epoch = 6
    broker.replica_hosting._apply_role(TopicIdPartition(topic_id, 0))
    assert not leads(broker)
    due = newer_logs(broker).due()
    assert due is not None
    assert await broker.controller.ask(due) is ErrorCode.NONE
    assert leads(broker)
    assert partition.leader_epoch >= 7


@on_broker()
async def test_producer_ids_of_the_logs_are_not_given_out_again(broker: OneBroker) -> None:
    topic_id = await broker.topic("orders")
    append(broker, by_producer(41_000, 0))
    host_again(broker, topic_id)
    logs = newer_logs(broker)
    due = logs.due()
    assert due is not None
    assert await broker.controller.ask(due) is ErrorCode.NONE
    assert broker.cluster.state.next_producer_id == NOW_MS // 1_000 * PRODUCER_IDS_A_SECOND
    assert (await broker.producer_ids.next_id() or 0) > 41_000
    assert logs.due() is None
