"""A killed process is missed at once: no wait here is as long as a session with ZooKeeper, so none can be for its end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.support.cluster_process import ClusterProcess

SESSION_MS = 60_000  # as long as our ZooKeeper allows
PATIENCE_S = 30
TOPIC = "orders"


@pytest.fixture(scope="module")
def all_along(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    directory: Path = tmp_path_factory.mktemp("cluster")
    with ClusterProcess(directory, session_timeout_ms=SESSION_MS) as cluster:
        # One partition: two of the brokers lead nothing.
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]])
        yield cluster


@pytest.fixture
def cluster(all_along: ClusterProcess) -> Iterator[ClusterProcess]:
    """Whole again after each test: whoever was killed comes back without waiting for its old session either."""
    yield all_along
    for broker in all_along.brokers.values():
        if not broker.is_running:
            broker.start()
    all_along.wait_for_full_isr(TOPIC, PATIENCE_S)


def write(cluster: ClusterProcess) -> None:
    """A record that all in-sync replicas have."""
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    producer.produce(TOPIC, b"a record", partition=0, on_delivery=on_delivery)
    assert producer.flush(PATIENCE_S) == 0, "not acknowledged"
    assert not failures


def test_a_leader_is_killed(cluster: ClusterProcess) -> None:
    victim = cluster.leader(TOPIC)
    write(cluster)
    cluster.brokers[victim].kill()
    write(cluster)
    assert cluster.leader(TOPIC) != victim
    assert victim not in cluster.partitions(TOPIC)[0].isr


def test_a_controller_is_killed(cluster: ClusterProcess) -> None:
    victim = cluster.controller()
    cluster.brokers[victim].kill()
    cluster.wait_for_another_controller(victim, PATIENCE_S)
    cluster.create_topic(f"without-{victim}", replication_factor=2)
    write(cluster)


def test_a_broker_that_leads_nothing_is_killed(cluster: ClusterProcess) -> None:
    """Nobody fetches from it; the controller misses it, or everyone does if it is the controller itself."""
    leader = cluster.leader(TOPIC)
    victim = next(broker for broker in cluster.brokers if broker != leader)
    cluster.brokers[victim].kill()
    write(cluster)
    assert cluster.leader(TOPIC) == leader
    assert victim not in cluster.partitions(TOPIC)[0].isr


def test_a_broker_is_killed_and_started_again_at_once(cluster: ClusterProcess) -> None:
    victim = cluster.leader(TOPIC)
    before = cluster.partitions(TOPIC)[0].leader_epoch
    cluster.brokers[victim].kill()
    cluster.brokers[victim].start()
    write(cluster)
    assert cluster.partitions(TOPIC)[0].leader_epoch > before
