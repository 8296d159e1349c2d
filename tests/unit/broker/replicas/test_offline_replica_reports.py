"""What a broker tells the controller of replicas that it cannot use, and when."""

from headrace.broker.apis import describe_topic_partitions, metadata
from headrace.broker.replicas.offline_replica_reports import OfflineReplicaReports
from headrace.broker.replicas.partition_lookup import missing
from headrace.controller.values import NO_LEADER
from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headrace.wire.messages.metadata import MetadataRequest
from tests.unit.broker.apis.one_broker import BROKER_ID, OneBroker, on_broker

ORDERS = TopicPartition("orders", 0)


def telling(broker: OneBroker) -> OfflineReplicaReports:
    return OfflineReplicaReports(
        broker.cluster,
        broker.partitions,
        broker.log_dirs,
        broker.controller,
        lambda: broker.broker_epoch,
        all_roles_applied=lambda: not broker.replica_hosting.has_queued_roles,
    )


@on_broker()
async def test_there_is_nothing_to_tell_while_all_is_well(broker: OneBroker) -> None:
    await broker.topic("orders", 2)
    assert telling(broker).untold() is None


@on_broker()
async def test_a_failed_directory_is_told_until_the_controller_knows(broker: OneBroker) -> None:
    topic_id = await broker.topic("orders", 2)
    broker.replica_hosting.take_offline(ORDERS, DiskFailed("it burns"))
    untold = telling(broker).untold()
    assert untold is not None
    assert untold.replicas == {(topic_id, 0), (topic_id, 1)}
    assert await broker.controller.ask(untold) is ErrorCode.NONE
    assert telling(broker).untold() is None
    for index in (0, 1):
        state = broker.cluster.state.topics["orders"].partitions[index]
        assert (state.leader, state.isr, state.last_known_elr) == (NO_LEADER, (), (BROKER_ID,))
        assert missing(broker.cluster, "orders", index).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@on_broker()
async def test_a_log_that_cannot_be_opened_is_told_of_alone(broker: OneBroker) -> None:
    topic_id = await broker.topic("orders", 2)
    broker.partitions.remove(ORDERS)
    broker.log_dirs.broken[ORDERS] = "unreadable"
    untold = telling(broker).untold()
    assert untold is not None
    assert untold.replicas == {(topic_id, 0)}


@on_broker()
async def test_what_was_told_is_taken_back(broker: OneBroker) -> None:
    await broker.topic("orders")
    partition = broker.partitions.remove(ORDERS)
    assert partition is not None
    log = broker.log_dirs.online[0].logs.pop(ORDERS)
    broker.log_dirs.broken[ORDERS] = "unreadable"
    untold = telling(broker).untold()
    assert untold is not None
    await broker.controller.ask(untold)
    del broker.log_dirs.broken[ORDERS]
    broker.log_dirs.online[0].logs[ORDERS] = log
    broker.partitions.add(partition)
    healed = telling(broker).untold()
    assert healed is not None
    assert healed.replicas == frozenset()
    await broker.controller.ask(healed)
    assert broker.cluster.state.topics["orders"].partitions[0].leader == BROKER_ID
    assert telling(broker).untold() is None


@on_broker()
async def test_nothing_is_told_under_a_registration_that_the_picture_does_not_know(
    broker: OneBroker,
) -> None:
    await broker.topic("orders")
    broker.replica_hosting.take_offline(ORDERS, DiskFailed("it burns"))
    broker.broker_epoch += 1
    assert telling(broker).untold() is None


@on_broker()
async def test_clients_are_told_which_replicas_are_offline(broker: OneBroker) -> None:
    await broker.topic("orders", 2)
    everything = MetadataRequest(topics=None)
    before = await broker.ask(metadata, everything, 12)
    assert [part.offline_replicas for part in before.topics[0].partitions] == [[], []]
    broker.partitions.remove(ORDERS)
    broker.log_dirs.online[0].logs.pop(ORDERS)
    broker.log_dirs.broken[ORDERS] = "unreadable"
    untold = telling(broker).untold()
    assert untold is not None
    await broker.controller.ask(untold)
    after = await broker.ask(metadata, everything, 12)
    assert [part.offline_replicas for part in after.topics[0].partitions] == [[BROKER_ID], []]
    names = [TopicRequest(name="orders")]
    described = await broker.ask(
        describe_topic_partitions, DescribeTopicPartitionsRequest(topics=names), 0
    )
    assert [part.offline_replicas for part in described.topics[0].partitions] == [[BROKER_ID], []]
