"""Links that break without a process dying: to ZooKeeper in silence, between brokers by resets. Nobody leads beside a successor.

Each test breaks a link while producers write, heals it, and lets the history checker judge what was acknowledged with acks=all.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.cluster.load import Load
from tests.cluster.proxied_cluster import proxied_cluster
from tests.support.cluster_process import ClusterProcess
from tests.support.log_samples import make_batch
from tests.support.watermarks import watermarks

ROUNDS = int(os.environ.get("HEADRACE_FAULT_ROUNDS", "2"))
TOPIC = "orders"
SESSION_S = 4.0


class InsistentProducer:
    """Writes with acks=1 to one broker, whatever others say about the leader, and asks it for what only the controller knows.

    The questions keep the broker's link to ZooKeeper busy: it looks for the controller each time.
    """

    def __init__(self, port: int, topic: str) -> None:
        self._port = port
        self._topic = topic
        self._stopping = threading.Event()
        self.acknowledged_s: list[float] = []  # when what was acknowledged had been sent
        self._threads = [
            threading.Thread(target=self._repeat, args=(work,))
            for work in (self._produce, self._ask)
        ]

    def __enter__(self) -> "InsistentProducer":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, work: Callable[[Connection], None]) -> None:
        while not self._stopping.is_set():
            try:
                with Connection("127.0.0.1", self._port, timeout_s=2) as connection:
                    while not self._stopping.is_set():
                        work(connection)
                        self._stopping.wait(0.02)
            except Disconnected:
                self._stopping.wait(0.05)

    def _produce(self, connection: Connection) -> None:
        part = PartitionProduceData(index=0, records=bytes(make_batch()))
        data = TopicProduceData(name=self._topic, partition_data=[part])
        sent_s = time.monotonic()
        answer = connection.send(
            ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[data]), version=9
        )
        if answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE:
            self.acknowledged_s.append(sent_s)

    def _ask(self, connection: Connection) -> None:
        topic = CreatableTopic(name="never", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=500, validate_only=True)
        connection.send(request)


def wait_for_another_leader(cluster: ClusterProcess, topic: str, former: int) -> None:
    """As one of the others sees it."""
    other = next(number for number in cluster.brokers if number != former)

    def elected() -> bool:
        return cluster.partitions_seen_by(other, topic)[0].leader not in (-1, former)

    cluster.wait_for(elected, f"{topic} has another leader than {former}")


def test_a_leader_whose_link_to_zookeeper_falls_silent(tmp_path: Path) -> None:
    """While requests are sent on that link all the time: they are no signs of life."""
    with proxied_cluster(tmp_path, session_timeout_ms=int(SESSION_S * 1000)) as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        controller = cluster.controller()
        leader = next(each for each in cluster.brokers if each != controller)
        cluster.create_topic("alone", replicas=[[leader, controller]])
        with Load(cluster, TOPIC) as load:
            with InsistentProducer(cluster.brokers[leader].port, "alone") as insistent:
                cluster.wait_for(lambda: len(insistent.acknowledged_s) > 20, "writes flow")
                silent_s = time.monotonic()
                cluster.to_zookeeper[leader].fall_silent()
                wait_for_another_leader(cluster, "alone", leader)
                elected_s = time.monotonic()
                time.sleep(2 * SESSION_S)
            beside = [each for each in insistent.acknowledged_s if each > elected_s]
            assert not beside, f"{len(beside)} records acknowledged beside the next leader"
            last = max(insistent.acknowledged_s)
            assert silent_s + SESSION_S / 2 < last, "it gave up too early"
            assert last < silent_s + SESSION_S, "no longer than its session could live"
            cluster.to_zookeeper[leader].allow()
            cluster.wait_for_full_isr("alone")
            load.wait_for_progress(50)
            load.finish()


def test_a_leader_that_brokers_and_zookeeper_cannot_reach(tmp_path: Path) -> None:
    """Others find its port closed while its link to ZooKeeper is silent; clients reach it. It does not lead beside its successor."""
    with proxied_cluster(tmp_path, session_timeout_ms=int(SESSION_S * 1000)) as cluster:
        controller = cluster.controller()
        leader = next(each for each in cluster.brokers if each != controller)
        others = [each for each in cluster.brokers if each != leader]
        cluster.create_topic(TOPIC, replicas=[[leader, *others]])
        cluster.create_topic("alone", replicas=[[leader, *others]])
        with Load(cluster, TOPIC) as load:
            load.wait_for_progress(20)
            with InsistentProducer(cluster.brokers[leader].port, "alone") as insistent:
                cluster.wait_for(lambda: len(insistent.acknowledged_s) > 20, "writes flow")
                silent_s = time.monotonic()
                cluster.to_zookeeper[leader].fall_silent()
                cluster.to_broker[leader].reset()
                cluster.to_broker[leader].refuse()
                wait_for_another_leader(cluster, TOPIC, leader)
                wait_for_another_leader(cluster, "alone", leader)
                load.wait_for_progress(100)
                time.sleep(max(0.0, silent_s + 2 * SESSION_S - time.monotonic()))
            # With acks=1 it may go on until its lease ends, because it cannot hear of its successor (decision 0010).
            assert max(insistent.acknowledged_s) < silent_s + SESSION_S
            cluster.to_broker[leader].allow()
            cluster.to_zookeeper[leader].allow()
            cluster.wait_for_full_isr(TOPIC)
            load.wait_for_progress(200)
            load.finish()


@pytest.mark.timeout(120 + 30 * ROUNDS)
def test_resets_between_brokers_lose_nothing(tmp_path: Path) -> None:
    """Connections are reset, and refused for a moment, one broker after the other; all of them live."""
    with proxied_cluster(tmp_path) as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        with Load(cluster, TOPIC) as load:
            for proxy in list(cluster.to_broker.values()) * ROUNDS:
                proxy.reset()
                load.wait_for_progress(20)
                proxy.refuse()
                time.sleep(0.8)
                proxy.allow()
                load.wait_for_progress(20)
            load.finish()


@pytest.mark.parametrize("is_controller", [True, False])
def test_a_living_leader_is_not_replaced_uncleanly(tmp_path: Path, *, is_controller: bool) -> None:
    """It alone is in sync, and a proxy refuses connections to it for a moment."""
    properties = {
        "unclean.leader.election.enable": "true",
        "min.insync.replicas": "1",
        "replica.lag.time.max.ms": "1500",
    }
    with proxied_cluster(tmp_path, session_timeout_ms=20_000, properties=properties) as cluster:
        controller = cluster.controller()
        leader = controller if is_controller else next(iter({1, 2, 3} - {controller}))
        others = [each for each in cluster.brokers if each != leader]
        cluster.create_topic(TOPIC, replicas=[[leader, *others]])
        if is_controller:
            for each in others:
                cluster.brokers[each].pause()
        else:  # one of them decides who is in sync, so it cannot stand still
            cluster.to_broker[leader].fall_silent()
        write(cluster, leader, 40)  # acknowledged once the others have left the ISR
        assert cluster.partitions_seen_by(leader, TOPIC)[0].isr == (leader,)
        cluster.to_broker[leader].refuse()
        for each in others:
            cluster.brokers[each].resume()
        time.sleep(0.8)
        cluster.to_broker[leader].allow()
        cluster.wait_for_full_isr(TOPIC)
        consumer = Consumer(
            {"bootstrap.servers": cluster.bootstrap, "group.id": "nobody", "log_level": 0}
        )
        assert watermarks(consumer, TopicPartition(TOPIC, 0)) == (0, 40)
        consumer.close()


def write(cluster: ClusterProcess, leader: int, count: int) -> None:
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    bootstrap = f"127.0.0.1:{cluster.brokers[leader].port}"
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce(TOPIC, b"%d" % number, partition=0, on_delivery=on_delivery)
    assert producer.flush(20) == 0
    assert not failures


def test_a_broker_alone_is_started_again_at_once_after_a_kill(tmp_path: Path) -> None:
    """Nobody removes its registration, and its session is long; it knows that its predecessor is dead."""
    with ClusterProcess(tmp_path, brokers=1, session_timeout_ms=60_000) as cluster:
        cluster.create_topic(TOPIC, replication_factor=1)
        began_s = time.monotonic()
        cluster.brokers[1].kill()
        cluster.brokers[1].start()
        cluster.wait_for_full_isr(TOPIC)
        assert time.monotonic() - began_s < 30
