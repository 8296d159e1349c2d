"""Three brokers with 1,000 partitions, three replicas each: creation, a leader killed, controlled restarts, with times.

ZooKeeper's session time-out is the default of 18 s. BENCH_TOPICS and BENCH_PARTITIONS (of each topic) ask for other sizes.
The figures in docs/operating/cluster.md come from here. While things happen two idempotent producers write to a
topic of nine more partitions with acks=all; interruptions are the longest times in which one of these took nothing.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

from confluent_kafka import KafkaError, Message, Producer

from bench.report import Line, Report
from bench.scale import WISHED_OPEN_FILES, allow_open_files
from headrace.client.connection import Connection
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.cluster.load import Load
from tests.support.cluster_process import ClusterBroker, ClusterProcess
from tests.support.process_memory import MIB, resident_bytes

SESSION_TIMEOUT_MS = 18_000
PATIENCE_S = 300.0
TOPICS_A_REQUEST = 10
LOOKS_ON_S = 5
WATCHED = "watched"  # the producer's own topic, of which every record is accounted for at the end


def run() -> Report:
    """A few minutes."""
    topics = int(os.environ.get("BENCH_TOPICS", "100"))
    partitions = int(os.environ.get("BENCH_PARTITIONS", "10"))
    report = Report(f"cluster: 3 brokers, {topics * partitions:,} partitions, 3 replicas each")
    report.lines += measure(topics=topics, partitions=partitions)
    return report


def measure(*, topics: int, partitions: int) -> list[Line]:
    """Take one cluster through its life at this size."""
    allow_open_files(WISHED_OPEN_FILES)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        cluster = ClusterProcess(Path(directory), session_timeout_ms=SESSION_TIMEOUT_MS)
        try:
            return [
                *_lives(cluster, [f"scale-{number:05d}" for number in range(topics)], partitions)
            ]
        finally:
            cluster.close()


def _lives(cluster: ClusterProcess, names: list[str], partitions: int) -> Iterator[Line]:
    count = len(names) * partitions

    def all_in_sync() -> None:
        cluster.wait_for_full_isr(None, PATIENCE_S)

    yield _timed("start of all, ZooKeeper included", cluster.start)

    def create() -> None:
        _create(cluster, names, partitions)
        all_in_sync()

    yield _timed(f"create {count:,} partitions, all in sync", create)
    yield _timed(
        "one record to every partition", lambda: _write_everywhere(cluster, names, partitions)
    )
    yield _memory(cluster)
    cluster.create_topic(WATCHED, partitions=9)
    with Load(cluster, WATCHED) as load:
        yield from _latencies(load)
        controller = cluster.controller()
        follower = next(number for number in cluster.brokers if number != controller)
        yield from _killed(cluster, load, follower, names, partitions, what="a broker")
        yield from _killed(cluster, load, controller, names, partitions, what="the controller")
        yield from _restarted(cluster, load)
        load.finish()


def _latencies(load: Load) -> Iterator[Line]:
    """Of acks=all while nothing happens, at the rate of the load; the idle partitions must not be felt."""
    began_ns = time.monotonic_ns()
    time.sleep(LOOKS_ON_S)
    spent_ms = sorted(
        (send.completed_ns - send.invoked_ns) / 1e6
        for send in load.history.acknowledged()
        if send.invoked_ns >= began_ns
    )
    for percentile in (50, 99):
        value = spent_ms[len(spent_ms) * percentile // 100]
        detail = f"{len(spent_ms) / LOOKS_ON_S:.0f} records a second"
        yield Line(
            what=f"acks=all, p{percentile}, the others idle",
            value=round(value, 1),
            unit="ms",
            detail=detail,
        )


def _killed(
    cluster: ClusterProcess,
    load: Load,
    victim: int,
    names: list[str],
    partitions: int,
    *,
    what: str,
) -> Iterator[Line]:
    led = [index for index, view in cluster.partitions(WATCHED).items() if view.leader == victim]
    killed_ns = time.monotonic_ns()
    cluster.brokers[victim].kill()
    written = _timed("", lambda: _write_everywhere(cluster, names, partitions))
    load.wait_for_progress(50, PATIENCE_S)
    silences = [load.history.first_acknowledged_ms(index, killed_ns) or 0.0 for index in led]
    limit_s = SESSION_TIMEOUT_MS / 1000 + 2
    yield Line(
        what=f"kill -9 of {what}: writes flow again after",
        value=round(max(silences, default=0.0) / 1000, 2),
        unit="s",
        at_most=limit_s,
        detail="session time-out and 2 s",
    )
    yield Line(what="... to every partition", value=written.value, unit="s")

    def come_back() -> None:
        cluster.brokers[victim].start()
        cluster.wait_for_full_isr(None, PATIENCE_S)

    yield _timed("... it is started again, all in sync", come_back)


def _restarted(cluster: ClusterProcess, load: Load) -> Iterator[Line]:
    silences, stops, returns = [], [], []
    for broker in cluster.brokers.values():
        began_ns = time.monotonic_ns()
        stops.append(_timed("", broker.stop).value)
        returns.append(_timed("", partial(_back, cluster, broker)).value)
        load.wait_for_progress(50, PATIENCE_S)
        ended_ns = time.monotonic_ns()
        silence_ms = max(
            load.history.longest_silence_ms(index, began_ns, ended_ns) for index in load.partitions
        )
        silences.append(round(silence_ms / 1000, 2))
    yield Line(
        what="controlled restart: writes stop for",
        value=max(silences),
        unit="s",
        at_most=1.0,
        detail=f"the longest of {silences}",
    )
    yield Line(what="... it stops in", value=median(stops), unit="s", detail=f"{stops}")
    yield Line(
        what="... it is started again, all in sync",
        value=median(returns),
        unit="s",
        detail=f"{returns}",
    )


def _back(cluster: ClusterProcess, broker: ClusterBroker) -> None:
    broker.start()
    cluster.wait_for_full_isr(None, PATIENCE_S)


def _timed(what: str, work: Callable[[], object]) -> Line:
    began = time.perf_counter()
    work()
    return Line(what=what, value=round(time.perf_counter() - began, 2), unit="s")


def _memory(cluster: ClusterProcess) -> Line:
    resident = [resident_bytes(broker.pid) / MIB for broker in cluster.brokers.values()]
    return Line(what="memory, of the largest broker", value=round(max(resident), 1), unit="MiB")


def _create(cluster: ClusterProcess, names: list[str], partitions: int) -> None:
    port = cluster.brokers[1].port
    with Connection("127.0.0.1", port, timeout_s=PATIENCE_S) as connection:
        for start in range(0, len(names), TOPICS_A_REQUEST):
            topics = [
                CreatableTopic(name=name, num_partitions=partitions, replication_factor=3)
                for name in names[start : start + TOPICS_A_REQUEST]
            ]
            answer = connection.send(CreateTopicsRequest(topics=topics, timeout_ms=600_000))
            refused = [topic for topic in answer.topics if topic.error_code]
            assert not refused, refused[:3]


def _write_everywhere(cluster: ClusterProcess, names: list[str], partitions: int) -> None:
    """One record to every partition, acknowledged by all in sync."""
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error)

    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "topic.metadata.refresh.interval.ms": 2000,
            "retry.backoff.max.ms": 300,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )
    for name in names:
        for index in range(partitions):
            producer.produce(name, b"x" * 100, partition=index, on_delivery=delivered)
    left = producer.flush(PATIENCE_S)
    assert not left, f"{left} records were never answered"
    assert not refused, refused[:3]
