"""What a broker leads hangs on its session with the store, and on a picture that knows this very incarnation."""

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.controller.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    ChangeBatch,
    ControllerElected,
    PartitionChanged,
    TopicCreated,
)
from headrace.controller.values import Broker, PartitionState
from headrace.coordination.store import SessionState
from headrace.ids import TopicPartition
from headrace.internal_topics import CONSUMER_OFFSETS
from headrace.log.append_result import Appended
from headrace.replication.partition import Partition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.refusal import Refusal
from tests.support.log_samples import NOW_MS, make_batch
from tests.unit.broker.apis.one_broker import BROKER_ID, OneBroker, on_broker

ORDERS = TopicPartition("orders", 0)


def led(broker: OneBroker) -> Partition:
    partition = broker.partitions.get(*ORDERS)
    assert partition is not None
    return partition


def next_state(broker: OneBroker) -> PartitionState:
    """As elected once more."""
    state = broker.cluster.state.topics["orders"].partitions[0]
    return PartitionState(
        state.replicas, state.isr, state.leader, state.leader_epoch + 1, state.partition_epoch + 1
    )


def publish(broker: OneBroker, *changes: Change, is_snapshot: bool = False) -> None:
    epoch = broker.cluster.state.controller_epoch
    broker.feed.apply(ChangeBatch(epoch, 0, changes, is_snapshot=is_snapshot))


@on_broker()
async def test_an_overdue_session_suspends_and_the_same_session_resumes(broker: OneBroker) -> None:
    await broker.topic("orders")
    epoch = led(broker).leader_epoch
    broker.replica_hosting.session_changed(SessionState.SUSPENDED)
    assert led(broker).is_leader, "there is still time"
    broker.replica_hosting.session_changed(SessionState.OVERDUE)
    assert not led(broker).is_leader
    assert not broker.replica_hosting.may_lead
    broker.replica_hosting.session_changed(SessionState.CONNECTED)
    assert led(broker).is_leader
    assert led(broker).leader_epoch == epoch


@on_broker()
async def test_an_election_during_the_suspension_counts_when_it_is_over(broker: OneBroker) -> None:
    await broker.topic("orders")
    broker.replica_hosting.session_changed(SessionState.OVERDUE)
    elected = next_state(broker)
    publish(broker, PartitionChanged("orders", 0, elected))
    assert not led(broker).is_leader
    broker.replica_hosting.session_changed(SessionState.CONNECTED)
    assert led(broker).is_leader
    assert led(broker).leader_epoch == elected.leader_epoch


@on_broker()
async def test_a_lost_session_ends_it_until_the_next_registration_is_known(
    broker: OneBroker,
) -> None:
    await broker.topic("orders")
    broker.replica_hosting.session_changed(SessionState.OVERDUE)
    broker.replica_hosting.session_changed(SessionState.LOST)
    broker.replica_hosting.session_changed(SessionState.CONNECTED)
    assert not led(broker).is_leader
    elected = next_state(broker)
    publish(broker, PartitionChanged("orders", 0, elected))
    assert not led(broker).is_leader, "that was meant for the broker before it lost its session"
    us = broker.cluster.state.brokers[BROKER_ID]
    broker.broker_epoch = us.epoch + 10
    publish(
        broker,
        BrokerRegistered(Broker(BROKER_ID, us.epoch + 10, us.endpoints)),
        PartitionChanged("orders", 0, next_state(broker)),
    )
    assert led(broker).is_leader
    assert led(broker).leader_epoch == elected.leader_epoch + 1


@on_broker()
async def test_the_picture_may_know_a_registration_before_the_broker_does(
    broker: OneBroker,
) -> None:
    await broker.topic("orders")
    broker.replica_hosting.session_changed(SessionState.LOST)
    us = broker.cluster.state.brokers[BROKER_ID]
    publish(
        broker,
        BrokerRegistered(Broker(BROKER_ID, us.epoch + 10, us.endpoints)),
        PartitionChanged("orders", 0, next_state(broker)),
    )
    assert not led(broker).is_leader
    broker.broker_epoch = us.epoch + 10
    broker.replica_hosting.registered()
    assert led(broker).is_leader


@on_broker()
async def test_a_picture_of_a_former_incarnation_gives_nothing_and_takes_nothing(
    broker: OneBroker,
) -> None:
    topic_id = await broker.topic("orders")
    state = broker.cluster.state
    us, partitions = state.brokers[BROKER_ID], tuple(state.topics["orders"].partitions)
    election = ControllerElected(state.controller_id, state.controller_epoch)
    # The process starts anew: its roles are gone, its logs are there.
    broker.partitions.remove(ORDERS)
    broker.broker_epoch = us.epoch + 10
    stale = (election, BrokerRegistered(us))
    publish(broker, *stale, TopicCreated("orders", topic_id, partitions), is_snapshot=True)
    assert broker.partitions.get(*ORDERS) is None, "the epoch of a dead process must not be reused"
    publish(broker, *stale, is_snapshot=True)
    assert broker.log_dirs.get(ORDERS) is not None, "not known there is not deleted"
    assert isinstance(broker.cluster, ClusterView)
    assert not broker.cluster.state.topics, "what clients are told is the newest there is"


@on_broker()
async def test_a_cluster_state_without_this_registration_ends_what_it_leads(
    broker: OneBroker,
) -> None:
    await broker.topic("orders")
    state = next_state(broker)
    elsewhere = PartitionState((*state.replicas, 9), (9,), 9, state.leader_epoch, 7)
    publish(broker, BrokerUnregistered(BROKER_ID), PartitionChanged("orders", 0, elsewhere))
    assert not led(broker).is_leader
    broker.replica_hosting.session_changed(SessionState.OVERDUE)
    broker.replica_hosting.session_changed(SessionState.CONNECTED)
    assert not led(broker).is_leader, "the session is alive, the registration is not"


@on_broker()
async def test_a_later_leader_elsewhere_ends_it_before_the_partition_has_its_turn(
    broker: OneBroker,
) -> None:
    await broker.topic("orders")
    broker.replica_hosting._at_once = 0
    state = next_state(broker)
    elsewhere = PartitionState((*state.replicas, 9), (9,), 9, state.leader_epoch, 7)
    publish(broker, PartitionChanged("orders", 0, elsewhere))
    assert broker.replica_hosting.has_queued_roles
    assert not led(broker).is_leader


@on_broker()
async def test_past_its_lease_a_leader_appends_and_deletes_nothing(broker: OneBroker) -> None:
    await broker.topic("orders")
    partition = led(broker)
    broker.lease.until = 10.0
    broker.lease_clock_s = 9.9
    assert isinstance(partition.append([make_batch()], acks=1, now_ms=NOW_MS), Appended)
    broker.lease_clock_s = 10.0
    refused = partition.append([make_batch()], acks=1, now_ms=NOW_MS)
    assert isinstance(refused, Refusal)
    assert refused.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert isinstance(partition.delete_records(1), Refusal)
    assert partition.log.log_end_offset == 1
    assert partition.is_leader, "nobody has been told yet; the timer may be late"
    broker.lease.until = 20.0
    assert isinstance(partition.append([make_batch()], acks=1, now_ms=NOW_MS), Appended)


@on_broker()
async def test_past_its_lease_a_broker_coordinates_nothing(broker: OneBroker) -> None:
    await broker.topic(CONSUMER_OFFSETS, partitions=50)
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    for _ in range(100):
        answer = await broker.groups.heartbeat(heartbeat)
        if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    broker.lease.until = 0.0
    answer = await broker.groups.heartbeat(heartbeat)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
