"""Leaders that change fast, each leaving records behind that nobody else has: the logs must agree in the end (KIP-101, KIP-279)."""

import time
from pathlib import Path

from confluent_kafka import Producer

from tests.cluster.load import read_all
from tests.cluster.replicas import differences, stored_batches
from tests.support.cluster_process import ClusterProcess

TOPIC = "contested"
FETCH_WAIT_MS = 100


def write(cluster: ClusterProcess, broker_id: int, *values: bytes, acks: str) -> None:
    """Write through one broker only, which leads."""
    address = f"127.0.0.1:{cluster.brokers[broker_id].port}"
    producer = Producer({"bootstrap.servers": address, "acks": acks, "log_level": 0})
    for value in values:
        producer.produce(TOPIC, value, partition=0)
        assert producer.flush(20) == 0, f"{value!r} was not taken"


def die_with_a_tail(cluster: ClusterProcess, leader: int, *values: bytes) -> None:
    """The leader takes records while nobody else can fetch, and dies with them."""
    others = [broker for broker in cluster.brokers.values() if broker.is_awake]
    others.remove(cluster.brokers[leader])
    for broker in others:
        broker.pause()
    try:
        # What a follower has asked for is answered with nothing before there is anything.
        time.sleep(3 * FETCH_WAIT_MS / 1000)
        write(cluster, leader, *values, acks="1")
        cluster.brokers[leader].kill()
    finally:
        for broker in others:
            broker.resume()


def wait_for_leader(cluster: ClusterProcess, wanted: int) -> int:
    """Returns the leader epoch."""
    cluster.wait_for(
        lambda: cluster.partitions(TOPIC)[0].leader == wanted, f"broker {wanted} leads"
    )
    return cluster.partitions(TOPIC)[0].leader_epoch


def log_of(cluster: ClusterProcess, broker_id: int) -> Path:
    return cluster.brokers[broker_id].data_dir / f"{TOPIC}-0"


def test_fast_leader_changes_with_unreplicated_tails_leave_identical_logs(tmp_path: Path) -> None:
    properties = {
        "replica.fetch.wait.max.ms": str(FETCH_WAIT_MS),
        "auto.leader.rebalance.enable": "false",
    }
    with ClusterProcess(tmp_path, properties=properties) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]], config={"min.insync.replicas": "1"})
        common = [b"common-%d" % number for number in range(5)]
        write(cluster, 1, *common, acks="all")
        epochs = [wait_for_leader(cluster, 1)]

        die_with_a_tail(cluster, 1, b"first of 1", b"second of 1")
        epochs.append(wait_for_leader(cluster, 2))
        cluster.brokers[1].start()
        cluster.wait_for_full_isr(TOPIC)

        die_with_a_tail(cluster, 2, b"first of 2", b"second of 2", b"third of 2")
        epochs.append(wait_for_leader(cluster, 1))
        die_with_a_tail(cluster, 1, b"again of 1")
        epochs.append(wait_for_leader(cluster, 3))

        tails = {broker: stored_batches(log_of(cluster, broker))[-1] for broker in (1, 2)}
        assert tails[1].next_offset == 6, "broker 1 has no tail: nothing was tested"
        assert tails[2].next_offset == 8, "broker 2 has no tail: nothing was tested"
        assert tails[1].leader_epoch > tails[2].leader_epoch

        write(cluster, 3, b"first of 3", b"second of 3", acks="all")
        cluster.brokers[1].start()
        cluster.brokers[2].start()
        cluster.wait_for_full_isr(TOPIC)
        log, high_watermarks = read_all(cluster, TOPIC, [0])
        cluster.stop_brokers()

        assert epochs == sorted(set(epochs)), "every change of leader has a new epoch"
        assert [value for _, value in log[0]] == [*common, b"first of 3", b"second of 3"]
        assert high_watermarks == {0: 7}
        replicas = {f"broker {each}": log_of(cluster, each) for each in cluster.brokers}
        assert differences(replicas, 7) == []
        for path in replicas.values():
            assert stored_batches(path)[-1].next_offset == 7, "a tail is left"


def test_a_follower_with_a_longer_log_than_its_leader_is_cut_without_new_records(
    tmp_path: Path,
) -> None:
    properties = {"replica.fetch.wait.max.ms": str(FETCH_WAIT_MS)}
    with ClusterProcess(tmp_path, properties=properties) as cluster:
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]], config={"min.insync.replicas": "1"})
        write(cluster, 1, b"common", acks="all")
        die_with_a_tail(cluster, 1, b"one", b"two", b"three")
        wait_for_leader(cluster, 2)
        cluster.brokers[1].start()
        cluster.wait_for_full_isr(TOPIC)
        cluster.stop_brokers()
        for broker in cluster.brokers:
            (batch,) = stored_batches(log_of(cluster, broker))
            assert batch.next_offset == 1
