"""The cluster of the pytest plugin: three real brokers in this process, killed and restarted, seen through real clients."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from headrace.controller.cluster_state import ClusterState
from headrace.controller.values import NO_LEADER
from headrace.coordination.nodes import BrokerNode, ControllerNode
from headrace.coordination.store import Delete
from headrace.errors import HeadraceError
from headrace.testing.embedded_cluster import EmbeddedCluster

BROKERS = {1, 2, 3}
PATIENCE_S = 30.0


def produce(cluster: EmbeddedCluster, topic: str, *values: str) -> None:
    """Every value once, acknowledged by all in-sync replicas."""
    failed: list[KafkaError] = []
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 0}
    )

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for value in values:
        producer.produce(topic, value.encode(), key=value.encode(), on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0
    assert not failed


def consume(cluster: EmbeddedCluster, topic: str, count: int, **settings: str) -> list[str]:
    """This many values, from the beginning or from what the group has committed, which is committed too."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "a-group",
            "auto.offset.reset": "earliest",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    consumer.subscribe([topic])
    values: list[str] = []
    try:
        while len(values) < count:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"only {len(values)} of {count} values"
            if message.error() is None:
                values.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return sorted(values)


def test_a_partition_does_not_wait_until_a_leader_has_news_of_the_others() -> None:
    settings = {"replica.fetch.wait.max.ms": "20000", "replica.lag.time.max.ms": "60000"}
    with EmbeddedCluster(settings) as cluster:
        for number in range(4):
            topic = f"quiet-{number}"
            cluster.create_topic(topic, partitions=3)
            began_s = time.monotonic()
            produce(cluster, topic, *numbered(0, 9))
            assert time.monotonic() - began_s < 10


def numbered(first: int, end: int) -> list[str]:
    return [f"{number:05}" for number in range(first, end)]


def log_bytes(cluster: EmbeddedCluster, topic: str, index: int = 0) -> set[bytes]:
    """The different contents that a partition's log has on the brokers."""
    contents = set()
    for broker in cluster.brokers.values():
        segments = sorted(Path(broker.data_directory, f"{topic}-{index}").glob("*.log"))
        assert segments, f"{broker.data_directory} has no {topic}-{index}"
        contents.add(b"".join(segment.read_bytes() for segment in segments))
    return contents


def test_writes_go_on_when_the_leader_is_killed(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", min_insync_replicas="2")
    produce(cluster, "a", *numbered(0, 100))
    first = cluster.leader("a")
    cluster.kill(first)
    produce(cluster, "a", *numbered(100, 200))
    partition = cluster.partition("a")
    assert partition.leader != first
    assert set(partition.isr) == BROKERS - {first}
    cluster.start(first)
    cluster.wait_until_in_sync()
    produce(cluster, "a", *numbered(200, 300))
    assert consume(cluster, "a", 300) == numbered(0, 300)
    cluster.wait_until_in_sync()
    assert len(log_bytes(cluster, "a")) == 1


def test_nothing_is_lost_when_the_minimum_is_lowered(headrace_cluster: EmbeddedCluster) -> None:
    """The usual remedy for NOT_ENOUGH_REPLICAS: what the leader then commits alone, nobody else can be elected without."""
    cluster = headrace_cluster
    cluster.create_topic("a", replication_factor=2, min_insync_replicas="2")
    produce(cluster, "a", *numbered(0, 5))
    cluster.wait_until_in_sync()
    first = cluster.leader("a")
    (other,) = set(cluster.partition("a").replicas) - {first}
    cluster.stop(other)
    assert cluster.partition("a").elr == (other,)
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        "a",
        incremental_configs=[
            ConfigEntry("min.insync.replicas", "1", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
    cluster.wait_until(lambda state: is_led_by_one(state, "a"))
    produce(cluster, "a", *numbered(5, 10))
    cluster.kill(first)
    cluster.start(other)
    assert cluster.partition("a").leader == NO_LEADER, "it does not have what was committed last"
    cluster.start(first)
    assert cluster.leader("a") == first
    assert consume(cluster, "a", 10) == numbered(0, 10)


def is_led_by_one(state: ClusterState, topic: str) -> bool:
    """Whether one replica in sync is enough to commit."""
    partition = state.partition(topic, 0)
    return partition is not None and partition.needed_isr == 1 and not partition.elr


def test_deleted_records_are_not_back_after_a_failover() -> None:
    """Idle followers wait for 20 s at their leader, and hear of the deletion all the same."""
    settings = {"replica.fetch.wait.max.ms": "20000", "replica.lag.time.max.ms": "60000"}
    with EmbeddedCluster(settings) as cluster:
        cluster.create_topic("a")
        for round_number in range(1, 4):
            produce(cluster, "a", *numbered(0, 10))
            cluster.wait_until_in_sync()
            place = TopicPartition("a", 0, round_number * 10 - 3)
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
            began_s = time.monotonic()
            deleted = admin.delete_records([place])[place].result(PATIENCE_S)
            assert time.monotonic() - began_s < 10, "a fetch that waits is woken"
            assert deleted.low_watermark == place.offset
            first = cluster.leader("a")
            cluster.kill(first)
            assert cluster.leader("a") != first
            assert earliest(cluster, "a") == place.offset
            cluster.start(first)


def test_deleted_records_are_not_back_after_a_kill_of_all_brokers() -> None:
    """The checkpoints that are written now and then are an hour away."""
    hour = str(60 * 60 * 1000)
    settings = {
        "replica.high.watermark.checkpoint.interval.ms": hour,
        "log.flush.offset.checkpoint.interval.ms": hour,
        "log.flush.start.offset.checkpoint.interval.ms": hour,
    }
    with EmbeddedCluster(settings) as cluster:
        cluster.create_topic("a")
        for round_number in range(1, 4):
            produce(cluster, "a", *numbered(0, 10))
            cluster.wait_until_in_sync()
            place = TopicPartition("a", 0, round_number * 10 - 3)
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
            admin.delete_records([place])[place].result(PATIENCE_S)
            for broker in BROKERS:
                cluster.kill(broker)
            for broker in BROKERS:
                cluster.start(broker)
            cluster.wait_until_in_sync()
            leader = cluster.leader("a")
            assert earliest(cluster, "a") == place.offset
            cluster.kill(leader)
            assert cluster.leader("a") != leader
            assert earliest(cluster, "a") == place.offset
            cluster.start(leader)
            cluster.wait_until_in_sync()


def earliest(cluster: EmbeddedCluster, topic: str) -> int:
    """The first offset that a consumer can read."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "a-group"})
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)
    finally:
        consumer.close()
    assert isinstance(low, int)
    return low


def test_a_stopped_broker_hands_its_leaderships_over(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", partitions=6)
    victim = cluster.leader("a")
    cluster.stop(victim)
    assert victim not in {cluster.partition("a", index).leader for index in range(6)}
    cluster.start(victim)
    cluster.wait_until_in_sync()


def test_the_controller_is_replaced(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    first = cluster.controller()
    cluster.kill(first)
    second = cluster.controller()
    assert second != first
    cluster.create_topic("a", replication_factor=2)
    cluster.start(first)
    cluster.wait_until(lambda state: set(state.brokers) == BROKERS)
    assert cluster.controller() == second


def is_newer(broker_id: int, epoch: int, state: ClusterState) -> bool:
    """Whether a broker is there with a later registration than that of `epoch`."""
    return broker_id in state.brokers and state.brokers[broker_id].epoch > epoch


def test_a_lost_session_costs_no_record(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", partitions=3)
    produce(cluster, "a", *numbered(0, 50))
    for broker_id in BROKERS:
        epoch = cluster.brokers[broker_id].look(lambda state: dict(state.brokers))[broker_id].epoch
        cluster.expire_session(broker_id)
        cluster.wait_until(partial(is_newer, broker_id, epoch))
        produce(cluster, "a", *numbered(50 * broker_id, 50 * (broker_id + 1)))
    assert consume(cluster, "a", 200) == numbered(0, 200)
    cluster.wait_until_in_sync()


def remove(cluster: EmbeddedCluster, broker_id: int) -> None:
    """What others do to a broker that they take for dead."""
    with cluster._tree.lock:
        nodes = cluster._tree.nodes
        paths = [BrokerNode.path(broker_id)]
        controller_node = nodes.get(ControllerNode.PATH)
        if (
            controller_node is not None
            and ControllerNode.decode(controller_node.data).brokerid == broker_id
        ):
            paths.append(ControllerNode.PATH)
        nodes.write([Delete(path) for path in paths], 0)


def test_a_living_broker_that_is_taken_for_dead_costs_no_record(
    headrace_cluster: EmbeddedCluster,
) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", partitions=3)
    produce(cluster, "a", *numbered(0, 50))
    for broker_id in BROKERS:
        epoch = cluster.brokers[broker_id].look(lambda state: dict(state.brokers))[broker_id].epoch
        remove(cluster, broker_id)
        cluster.wait_until(partial(is_newer, broker_id, epoch))
        produce(cluster, "a", *numbered(50 * broker_id, 50 * (broker_id + 1)))
    assert consume(cluster, "a", 200) == numbered(0, 200)
    cluster.wait_until_in_sync()
    assert len(log_bytes(cluster, "a")) == 1


def test_a_broker_with_an_empty_disk_gets_everything_again(
    headrace_cluster: EmbeddedCluster,
) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a")
    produce(cluster, "a", *numbered(0, 100))
    victim = cluster.leader("a")
    cluster.kill(victim)
    cluster.brokers[victim].wipe()
    cluster.start(victim)
    cluster.wait_until_in_sync()
    assert cluster.partition("a").leader != victim
    assert len(log_bytes(cluster, "a")) == 1
    assert log_bytes(cluster, "a") != {b""}


def test_a_group_goes_on_when_its_coordinator_is_killed(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a")
    produce(cluster, "a", *numbered(0, 10))
    assert consume(cluster, "a", 10) == numbered(0, 10)
    coordinators = {cluster.leader("__consumer_offsets", index) for index in range(5)}
    cluster.kill(coordinators.pop())
    produce(cluster, "a", *numbered(10, 20))
    assert consume(cluster, "a", 10) == numbered(10, 20)


def test_brokers_are_found_empty_and_running_again(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    assert set(cluster.running) == BROKERS
    assert cluster.brokers[1].look(lambda state: list(state.topics)) == []
    cluster.kill(1)  # and left to the fixture


def test_too_few_brokers_are_told_apart_from_a_fault(headrace_cluster: EmbeddedCluster) -> None:
    with pytest.raises(HeadraceError, match="INVALID_REPLICATION_FACTOR"):
        headrace_cluster.create_topic("a", replication_factor=4)


@pytest.fixture
def small_cluster() -> Iterator[EmbeddedCluster]:
    """Two brokers of their own, which look after their leaders every second."""
    settings = {"leader.imbalance.check.interval.seconds": "1", "default.replication.factor": "2"}
    with EmbeddedCluster(settings, size=2) as cluster:
        yield cluster


def test_preferred_leaders_lead_again_by_themselves(small_cluster: EmbeddedCluster) -> None:
    cluster = small_cluster
    cluster.create_topic("a", partitions=2)
    preferred = [cluster.partition("a", index).replicas[0] for index in range(2)]
    assert set(preferred) == {1, 2}
    cluster.kill(1)
    cluster.wait_until(lambda state: state.topics["a"].partitions[0].leader == 2)
    cluster.start(1)
    cluster.wait_until(
        lambda state: [one.leader for one in state.topics["a"].partitions] == preferred
    )
