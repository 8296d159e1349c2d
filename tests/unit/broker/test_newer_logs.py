"""A broker whose logs have seen newer leader epochs or producer ids than the coordination store knows of."""

from uuid import UUID

import msgspec

from headrace.broker.newer_logs import NewerLogs
from headrace.controller.raise_epochs import PRODUCER_IDS_A_SECOND
from headrace.controller.values import Partition as PartitionState
from headrace.ids import TopicIdPartition, TopicPartition
from headrace.log.append_result import Appended
from headrace.records.batch_builder import BatchOptions
from headrace.replication.partition import Partition
from headrace.wire.error_code import ErrorCode
from tests.differential.requests import batch, by_producer
from tests.unit.broker.apis.one_broker import NOW_MS, OneBroker, on_broker

ORDERS = TopicPartition("orders", 0)


def newer_logs(broker: OneBroker) -> NewerLogs:
    return NewerLogs(
        broker.cluster, broker.roles, broker.controller, lambda: broker.broker_epoch, broker.clock
    )


def append(broker: OneBroker, options: BatchOptions | None = None) -> None:
    records = bytearray(batch(b"v", options=options))
    assert isinstance(hosted(broker).append(records, acks=-1, now_ms=NOW_MS), Appended)


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
    broker.roles._settle(TopicIdPartition(topic_id, 0))
    return hosted(broker)


@on_broker()
async def test_a_leader_does_not_write_under_an_epoch_that_its_log_has_seen(
    broker: OneBroker,
) -> None:
    """The store gives leader epoch 0; the log has records of epochs 0 and 7, or of 0 alone."""
    topic_id = await broker.topic("orders")
    append(broker)
    for seen in (0, 7):
        log = hosted(broker).log
        if seen:
            log.append_as_leader(bytearray(batch(b"v")), leader_epoch=seen, now_ms=NOW_MS)
        before = log.leader_epochs.entries
        partition = host_again(broker, topic_id)
        assert not leads(broker)
        assert log.leader_epochs.entries == before
        due = newer_logs(broker).due()
        assert due is not None
        assert [each.leader_epoch for each in due.logs] == [log.leader_epochs.latest]
        assert await broker.controller.ask(due) is ErrorCode.NONE
        assert leads(broker)
        assert partition.leader_epoch == before[-1].epoch + 1
        assert log.leader_epochs.entries[: len(before)] == before
        assert newer_logs(broker).due() is None
        append(broker)


@on_broker()
async def test_a_newer_log_is_not_cut_to_what_an_older_leader_has(broker: OneBroker) -> None:
    """To follow would truncate the log; `NobodyToFollow` fails if it is asked to."""
    topic_id = await broker.topic("orders")
    append(broker)
    log = hosted(broker).log
    log.append_as_leader(bytearray(batch(b"v")), leader_epoch=7, now_ms=NOW_MS)
    broker.partitions.remove(ORDERS)
    partition = broker.roles._host(ORDERS, topic_id, is_new=False)
    assert partition is not None
    elsewhere = msgspec.structs.replace(state_of(broker), leader=9, leader_epoch=6)
    broker.roles._give_role(partition, elsewhere)
    assert not leads(broker)
    assert newer_logs(broker).due() is None, "only a leader's epoch is raised"


@on_broker()
async def test_an_old_cluster_state_does_not_end_a_leadership(broker: OneBroker) -> None:
    """As a controller publishes it that does not know yet that it is deposed."""
    await broker.topic("orders")
    partition = hosted(broker)
    newest = msgspec.structs.replace(state_of(broker), leader_epoch=4)
    broker.roles._give_role(partition, newest)
    append(broker)
    for leader in (9, newest.leader):
        old = msgspec.structs.replace(newest, leader=leader, leader_epoch=3)
        broker.roles._give_role(partition, old)
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
    broker.roles._settle(TopicIdPartition(topic_id, 0))
    assert not leads(broker)
    due = newer_logs(broker).due()
    assert due is not None
    assert await broker.controller.ask(due) is ErrorCode.NONE
    assert leads(broker)
    assert partition.leader_epoch == 7


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
