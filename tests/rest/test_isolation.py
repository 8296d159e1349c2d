"""What is slow, away or killed costs whoever needs it, and nobody else; what was acknowledged is there.

`HEADRACE_REST_KILLS=20` kills brokers twenty times under load instead of twice.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rest.test_v3_records import Stream, stored, text
from tests.support.cluster_process import ClusterProcess
from tests.support.rest_process import RestConsumer, RestProcess

Json = Any
KILLS = int(os.environ.get("HEADRACE_REST_KILLS", "2"))
SOON_S = 10.0  # an answer that waits for nobody, on a busy machine


class InBackground(threading.Thread):
    """A call whose result or failure is looked at later."""

    def __init__(self, work: Any) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.result: Any = None
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as failure:  # noqa: BLE001 - raised by `wait`
            self.failure = failure

    def wait(self, timeout_s: float = 120) -> Any:
        self.join(timeout_s)
        assert not self.is_alive()
        if self.failure is not None:
            raise self.failure
        return self.result


def test_long_reads_hold_up_nobody(proxy: RestProcess, topic: str, group: str) -> None:
    empty = f"empty-{uuid.uuid4()}"
    proxy.create_topic(empty)
    waiting: list[tuple[RestConsumer, InBackground]] = []
    for _ in range(30):
        consumer = proxy.consumer(group)
        consumer.assign((empty, 0))
        waiting.append((consumer, InBackground(lambda each=consumer: each.read(timeout_ms=10_000))))
    started = time.monotonic()
    assert proxy.produce(topic, text("x"))[0]["error_code"] == 200
    assert proxy.v3("GET", "/topics")[0] == 200
    reader = proxy.consumer(group)
    reader.assign((topic, 0))
    assert len(reader.records(1)) == 1
    reader.delete()
    assert time.monotonic() - started < SOON_S
    proxy.produce(empty, text("at last"))
    for consumer, read in waiting:
        status, records = read.wait()
        assert (status, len(records)) == (200, 1)
        consumer.delete()


def test_records_of_a_read_whose_client_went_away_come_again(
    proxy: RestProcess, topic: str, group: str
) -> None:
    consumer = proxy.consumer(group, fetch_min_bytes=1_000_000)
    consumer.assign((topic, 0))
    proxy.produce(topic, text("a"), text("b"))
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        connection.sendall(
            f"GET {consumer.path}/records HTTP/1.1\r\nHost: x\r\n"
            "Accept: application/vnd.kafka.binary.v2+json\r\n\r\n".encode()
        )
        time.sleep(0.5)  # the proxy has read both, and waits for more
    assert len(consumer.read(timeout_ms=2000)[1]) == 2
    consumer.delete()


def test_a_slow_member_does_not_hold_up_its_group(proxy: RestProcess) -> None:
    name, group = f"group-{uuid.uuid4()}", f"g-{uuid.uuid4()}"
    proxy.create_topic(name, 2)
    slow = proxy.consumer(group)
    slow.subscribe(name)
    slow.read(timeout_ms=500)
    proxy.produce(name, *({"partition_id": n, **text(f"p{n}")} for n in (0, 1)))
    # `slow` reads no more. Others still get their share, and all of it when it is gone.
    quick = proxy.consumer(group)
    quick.subscribe(name)
    assert len(quick.records(1)) == 1
    slow.delete()
    assert len(quick.records(1)) == 1
    quick.delete()


def test_many_topics_that_are_not_there(proxy: RestProcess, topic: str) -> None:
    names = [f"missing-{number}-{uuid.uuid4()}" for number in range(100)]
    asking = [InBackground(lambda each=name: proxy.produce(each, text("x"))) for name in names]
    started = time.monotonic()
    assert proxy.produce(topic, text("x"))[0]["error_code"] == 200
    assert time.monotonic() - started < SOON_S
    assert {each.wait()[0]["error_code"] for each in asking} == {40403}


# ---- a cluster whose brokers are killed


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("rest-cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def beside(
    cluster: ClusterProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestProcess]:
    """A proxy of the cluster."""
    properties = {"producer.delivery.timeout.ms": "20000", "headrace.admin.timeout.ms": "9000"}
    directory = tmp_path_factory.mktemp("rest-beside")
    with RestProcess(directory, cluster.bootstrap, properties=properties) as proxy:
        assert proxy.cluster  # asked for while there are brokers
        yield proxy


class Writer(threading.Thread):
    """Streams records, and notes which were acknowledged, at which offset."""

    def __init__(self, proxy: RestProcess, topic: str) -> None:
        super().__init__(daemon=True)
        self._proxy = proxy
        self._topic = topic
        self.acknowledged: dict[int, str] = {}
        self.refused: list[Json] = []
        self.is_ending = False
        self.start()

    def run(self) -> None:
        number = 0
        stream = Stream(self._proxy, self._topic)
        answers = stream.answers()
        while not self.is_ending:
            batch = [f"{number + n}" for n in range(20)]
            number += 20
            stream.send(b"".join(json.dumps(text(each)).encode() for each in batch))
            for value, answer in zip(batch, answers, strict=False):
                if answer["error_code"] == 200:
                    self.acknowledged[answer["offset"]] = value
                else:
                    self.refused.append(answer)
        stream.end()
        assert list(answers) == []
        stream.close()


def test_brokers_killed_under_load(
    cluster: ClusterProcess, beside: RestProcess, tmp_path: Path
) -> None:
    name = f"safe-{uuid.uuid4()}"
    cluster.create_topic(name, replication_factor=3)
    writer = Writer(beside, name)
    for _ in range(KILLS):
        leader = cluster.leader(name)
        before = len(writer.acknowledged)
        cluster.brokers[leader].kill()
        deadline = time.monotonic() + 60
        while len(writer.acknowledged) < before + 200:
            assert time.monotonic() < deadline, writer.refused[-3:]
            assert writer.is_alive()
            time.sleep(0.05)
        cluster.brokers[leader].start()
        cluster.wait_for_full_isr(name)
    writer.is_ending = True
    writer.join(60)
    assert not writer.is_alive()
    last = max(writer.acknowledged)
    found = {
        each.offset(): each.value().decode() for each in stored(cluster.bootstrap, name, last + 1)
    }
    assert writer.acknowledged.items() <= found.items()
    values = list(found.values())
    assert len(values) == len(set(values))  # a retry wrote nothing twice


def test_a_dead_broker_holds_up_its_partitions_only(
    cluster: ClusterProcess, beside: RestProcess
) -> None:
    lonely, safe = f"lonely-{uuid.uuid4()}", f"safe-{uuid.uuid4()}"
    cluster.create_topic(safe, replication_factor=3)
    coordinator_free = next(number for number in cluster.brokers if number != cluster.controller())
    cluster.create_topic(lonely, replicas=[[coordinator_free]], config={"min.insync.replicas": "1"})
    assert beside.produce(lonely, text("x"))[0]["error_code"] == 200
    cluster.brokers[coordinator_free].kill()
    try:
        stuck = [
            InBackground(lambda: beside.produce(lonely, *[text("y" * 1000)] * 50))
            for _ in range(20)
        ]
        deadline = time.monotonic() + 60
        while beside.produce(safe, text("x"))[0]["error_code"] != 200:
            assert time.monotonic() < deadline
        started = time.monotonic()
        for _ in range(5):
            assert beside.produce(safe, text("x"))[0]["error_code"] == 200
        assert time.monotonic() - started < SOON_S
        for each in stuck:
            codes = {answer["error_code"] for answer in each.wait(120)}
            assert codes == {50003}
    finally:
        cluster.brokers[coordinator_free].start()
        cluster.wait_for_all_brokers()
    deadline = time.monotonic() + 60
    while beside.produce(lonely, text("again"))[0]["error_code"] != 200:
        assert time.monotonic() < deadline


def test_a_broker_that_hangs_does_not_stop_the_others(
    cluster: ClusterProcess, beside: RestProcess
) -> None:
    name = f"safe-{uuid.uuid4()}"
    cluster.create_topic(name, replication_factor=3)
    hanging = next(number for number in cluster.brokers if number != cluster.controller())
    cluster.brokers[hanging].pause()
    try:
        deadline = time.monotonic() + 90
        while True:
            status, answer = beside.v3("GET", f"/topics/{name}")
            if status == 200 and beside.produce(name, text("x"))[0]["error_code"] == 200:
                break
            assert time.monotonic() < deadline, answer
        started = time.monotonic()
        assert beside.produce(name, text("x"))[0]["error_code"] == 200
        assert time.monotonic() - started < SOON_S
    finally:
        cluster.brokers[hanging].resume()
        cluster.wait_for_full_isr(name, 90)


def test_without_any_broker_it_says_so_and_comes_back(
    cluster: ClusterProcess, beside: RestProcess
) -> None:
    for broker in cluster.brokers.values():
        broker.kill()
    try:
        deadline = time.monotonic() + 60
        while beside.ask("GET", "/healthz")[0] != 503:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        status, answer = beside.v3("GET", "/topics")
        assert (status, answer["error_code"]) == (500, 50003)
    finally:
        for broker in cluster.brokers.values():
            broker.launch()
        for broker in cluster.brokers.values():
            broker.wait_until_ready()
        cluster.wait_for_all_brokers()
    deadline = time.monotonic() + 60
    while beside.ask("GET", "/healthz")[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert beside.v3("GET", "/topics")[0] == 200
