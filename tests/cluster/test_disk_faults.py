"""One of a broker's two disks is full, or has bad sectors, while producers write with acks=all: nothing is lost or doubled.

A full disk refuses writes until there is room: leaders on it stay, followers on it leave the ISR and come back by themselves.
A disk that cannot be read costs its replicas: they are led elsewhere until the broker starts with another disk.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from headrace.client.connection import Connection
from headrace.wire.error_code import ErrorCode
from tests.cluster.load import Load
from tests.robustness.wire_calls import FETCH_VERSION, fetch_request, produce
from tests.support.bad_disk import bad_disk
from tests.support.cluster_process import ClusterBroker, ClusterProcess
from tests.support.small_volume import fill, small_volume

MIB = 1024 * 1024
TOPIC = "orders"
COLD = "cold"  # written before the fault, read after it
VICTIM = 1
ROUNDS = 2
ASSIGNMENT = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [3, 1, 2]] * 2
PROPERTIES = {
    "replica.lag.time.max.ms": "1500",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "auto.leader.rebalance.enable": "false",
}


@contextmanager
def cluster_with(tmp_path: Path, second_disk: Path) -> Iterator[ClusterProcess]:
    """Three brokers, the first of which has one more disk."""
    with ClusterProcess(tmp_path / "cluster", properties=PROPERTIES) as cluster:
        victim = cluster.brokers[VICTIM]
        victim.stop()
        victim.add_log_dir(second_disk)
        victim.start()
        cluster.wait_for_all_brokers()
        for topic in (COLD, TOPIC):
            cluster.create_topic(topic, replicas=ASSIGNMENT)
        yield cluster


def partitions_in(directory: Path, topic: str) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in directory.glob(f"{topic}-*")}


def led_by_victim(cluster: ClusterProcess, topic: str) -> set[int]:
    views = cluster.partitions(topic).items()
    return {index for index, view in views if view.leader == VICTIM}


def refusals(broker: ClusterBroker, partition: int) -> int:
    """How often a broker has told that there is no room for a partition."""
    line = rf" {TOPIC}-{partition}: .*; appends are refused until there is room"
    return len(re.findall(line, broker.log_tail(1_000_000)))


def refused_since(broker: ClusterBroker, before: dict[int, int]) -> bool:
    """Whether every one of these partitions has been refused room more often than before."""
    return all(refusals(broker, partition) > count for partition, count in before.items())


@pytest.mark.timeout(240)
def test_a_full_disk_under_leaders_and_followers(tmp_path: Path) -> None:
    with (
        small_volume(tmp_path / "volume", size_bytes=16 * MIB) as volume,
        cluster_with(tmp_path, volume / "data") as cluster,
    ):
        victim = cluster.brokers[VICTIM]
        on_volume = partitions_in(volume / "data", TOPIC)
        led = led_by_victim(cluster, TOPIC) & on_volume
        followed = on_volume - led
        epochs = {index: view.leader_epoch for index, view in cluster.partitions(TOPIC).items()}
        assert led
        assert followed
        with Load(cluster, TOPIC) as load:
            elsewhere = set(load.partitions) - on_volume
            for _ in range(ROUNDS):
                before = {partition: refusals(victim, partition) for partition in on_volume}
                fill(volume)
                cluster.wait_for(
                    partial(refused_since, victim, before),
                    "every replica on the full disk has been refused a write",
                )
                cluster.wait_for(
                    lambda: all(
                        (VICTIM in view.isr) == (index not in followed)
                        for index, view in cluster.partitions(TOPIC).items()
                    ),
                    "followers on the full disk are out of the ISR, and only they",
                )
                load.wait_for_progress(30, partitions=elsewhere | followed)
                (volume / "filler").unlink()
                cluster.wait_for_full_isr(TOPIC)
                load.wait_for_progress(50)
            assert victim.is_running
            views = cluster.partitions(TOPIC)
            assert {index: view.leader_epoch for index, view in views.items()} == epochs
            load.finish()


@pytest.mark.timeout(240)
def test_bad_sectors_under_leaders_and_followers(tmp_path: Path) -> None:
    with (
        bad_disk(tmp_path / "bad") as disk,
        cluster_with(tmp_path, disk.path) as cluster,
    ):
        victim = cluster.brokers[VICTIM]
        lost = partitions_in(disk.path, TOPIC)
        cold = led_by_victim(cluster, COLD) & partitions_in(disk.path, COLD)
        assert lost & led_by_victim(cluster, TOPIC)
        assert lost - led_by_victim(cluster, TOPIC)
        assert cold
        with Connection("127.0.0.1", victim.port) as connection:
            for partition in cold:
                for _ in range(10):
                    produce(connection, COLD, [bytes(200_000)], partition=partition)
            with Load(cluster, TOPIC) as load:
                cold_logs = [*disk.path.glob(f"{COLD}-*/*.log")]
                disk.fail(*(path for path in cold_logs if path.stat().st_size))
                partition = min(cold)
                answer = connection.send(fetch_request(COLD, 0, partition=partition), FETCH_VERSION)
                assert answer.responses[0].partitions[0].error_code in (
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    ErrorCode.NOT_LEADER_OR_FOLLOWER,  # the failure was noticed earlier
                )
                cluster.wait_for(
                    lambda: all(
                        (VICTIM in view.isr) == (index not in lost) and view.leader in view.isr
                        for index, view in cluster.partitions(TOPIC).items()
                    ),
                    "the replicas on the failed disk are out of the ISR, and only they",
                )
                load.wait_for_progress(50)
                assert victim.is_running
                victim.stop()
                disk.replace()
                victim.start()
                cluster.wait_for_full_isr(None)
                load.wait_for_progress(50)
                load.finish()
