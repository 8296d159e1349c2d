"""One broker with 1,000 topics, 10,000 partitions and 10,000 idle connections: it starts, serves and stops.

BENCH_TOPICS, BENCH_PARTITIONS (of each topic) and BENCH_CONNECTIONS ask for other sizes. The figures in
docs/operating/limits.md come from here. Times of day-to-day work are medians; everything else happens once.
"""

import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Event

from bench.report import Line, Report
from headrace.client.connection import Connection
from headrace.records.batch_builder import build_batch, records_at
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.metadata import MetadataRequest, MetadataResponse
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.broker import FAST_TEST_PROPERTIES, write_properties
from tests.support.process_memory import MIB, resident_bytes
from tests.support.server_process import ServerProcess, free_port

WISHED_OPEN_FILES = 100_000
PATIENCE_S = 600.0
TOPICS_A_REQUEST = 10
TOPICS_A_PRODUCE = 10
ROUND_TRIPS = 200
PRODUCE_VERSION = 9  # the last ones that name topics
FETCH_VERSION = 12
DIALS_AT_ONCE = 200
BYSTANDER, LARGE = "bystander", "large"


def run() -> Report:
    """A few minutes, most of them for creating and recovering the partitions."""
    topics = int(os.environ.get("BENCH_TOPICS", "1000"))
    partitions = int(os.environ.get("BENCH_PARTITIONS", "10"))
    connections = int(os.environ.get("BENCH_CONNECTIONS", "10000"))
    report = Report(
        f"scale: {topics:,} topics, {topics * partitions:,} partitions, {connections:,} connections"
    )
    report.lines += measure(topics=topics, partitions=partitions, connections=connections)
    return report


def measure(*, topics: int, partitions: int, connections: int) -> list[Line]:
    """Run one broker through its life at this size."""
    allow_open_files(WISHED_OPEN_FILES)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        broker = ScaledBroker(Path(directory))
        try:
            return [*_lives(broker, topics, partitions, connections)]
        finally:
            broker.process.kill()


class ScaledBroker:
    """A broker process that is given as long as it needs."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.process = ServerProcess(directory / "headrace.log")
        self._properties = directory / "server.properties"
        own = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(directory / "data"),
        }
        write_properties(self._properties, {**FAST_TEST_PROPERTIES, **own})

    def start(self) -> None:
        command = [sys.executable, "-m", "headrace.cli.main", "server-start", str(self._properties)]
        self.process.start(command, port=self.port, ready_s=PATIENCE_S, env=os.environ)

    def stop(self) -> None:
        self.process.stop(PATIENCE_S)

    def connect(self) -> Connection:
        return Connection("127.0.0.1", self.port, timeout_s=PATIENCE_S)

    @property
    def memory_mib(self) -> float:
        return round(resident_bytes(self.process.pid) / MIB, 1)


def allow_open_files(wished: int) -> int:
    """Raise this process's limit, and so its children's, as far as is allowed. Returns what it is now."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wished:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wished, wished))
        except (ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _lives(broker: ScaledBroker, topics: int, partitions: int, connections: int) -> Iterator[Line]:
    names = [f"scale-{number:05d}" for number in range(topics)]
    count = topics * partitions
    yield _timed("start, empty", broker.start)
    yield _memory("memory, empty", broker)
    with broker.connect() as connection:
        _create(connection, [BYSTANDER], 1)
        with watched(broker) as waits:
            yield _timed(
                f"create {count:,} partitions", lambda: _create(connection, names, partitions)
            )
        yield from waits.lines()
        yield from _serves(connection, names, partitions)
    yield _memory(f"memory, {count:,} partitions", broker)
    with idle_connections(broker.port, connections) as (opened_s, runner):
        yield Line(what=f"open {connections:,} connections", value=round(opened_s, 2), unit="s")
        yield _memory(f"memory, and {connections:,} connections", broker)
        with broker.connect() as connection:
            yield _latency("round trip beside them", connection, names[0])
        yield _timed("stop, with all of them open", broker.stop)
        del runner
    yield _timed("start after a clean stop", broker.start)
    with broker.connect() as connection:
        _check(connection, names, partitions)
        _produce_everywhere(connection, names, partitions)
    broker.process.kill()
    yield _timed("start after a kill", broker.start)
    with broker.connect() as connection:
        _check(connection, names, partitions)
        yield _memory("memory, started again", broker)
        with watched(broker) as waits:
            yield _timed("create a topic of as many", lambda: _create(connection, [LARGE], count))
        yield from waits.lines()
    yield _timed("stop, with twice as many", broker.stop)


def _timed(what: str, work: Callable[[], object]) -> Line:
    began = time.perf_counter()
    work()
    return Line(what=what, value=round(time.perf_counter() - began, 2), unit="s")


def _memory(what: str, broker: ScaledBroker) -> Line:
    return Line(what=what, value=broker.memory_mib, unit="MiB")


def _create(connection: Connection, names: list[str], partitions: int) -> None:
    for start in range(0, len(names), TOPICS_A_REQUEST):
        topics = [
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names[start : start + TOPICS_A_REQUEST]
        ]
        answer = connection.send(CreateTopicsRequest(topics=topics, timeout_ms=600_000))
        refused = [topic for topic in answer.topics if topic.error_code]
        assert not refused, refused[:3]


def _serves(connection: Connection, names: list[str], partitions: int) -> Iterator[Line]:
    began = time.perf_counter()
    _check(connection, names, partitions)
    yield Line(
        what="metadata of everything, first",
        value=round((time.perf_counter() - began) * 1000, 1),
        unit="ms",
    )
    times = []
    for _ in range(5):
        began = time.perf_counter()
        connection.send(MetadataRequest(topics=None), 12)
        times.append(time.perf_counter() - began)
    yield Line(
        what="metadata of everything, again", value=round(median(times) * 1000, 1), unit="ms"
    )
    yield _timed(
        "one record to every partition", lambda: _produce_everywhere(connection, names, partitions)
    )
    yield _latency("round trip, produce and fetch", connection, names[-1])


def _check(connection: Connection, names: list[str], partitions: int) -> None:
    """Every topic is there, with a leader for each partition."""
    answer: MetadataResponse = connection.send(MetadataRequest(topics=None), 12)
    led = {
        topic.name: sum(each.leader_id == 1 for each in topic.partitions) for topic in answer.topics
    }
    missing = [name for name in names if led.get(name) != partitions]
    assert not missing, f"{len(missing)} topics are not whole, {missing[:3]} among them"


def _produce_everywhere(connection: Connection, names: list[str], partitions: int) -> None:
    for start in range(0, len(names), TOPICS_A_PRODUCE):
        errors = _produce(connection, names[start : start + TOPICS_A_PRODUCE], partitions)
        assert not any(errors), errors


def _produce(connection: Connection, names: list[str], partitions: int) -> list[int]:
    """One record to partitions 0 to `partitions` of each topic. Returns the error codes."""
    batch = bytes(build_batch(records_at(0, time.time_ns() // 1_000_000, [(None, b"x" * 100)])))
    data = [
        TopicProduceData(
            name=name,
            partition_data=[
                PartitionProduceData(index=index, records=batch) for index in range(partitions)
            ],
        )
        for name in names
    ]
    answer = connection.send(
        ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=data), PRODUCE_VERSION
    )
    return [each.error_code for topic in answer.responses for each in topic.partition_responses]


def _latency(what: str, connection: Connection, name: str) -> Line:
    """Produce one record and fetch from the beginning."""
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    fetch = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=name, partitions=[asked])]
    )
    times = []
    for _ in range(ROUND_TRIPS):
        began = time.perf_counter()
        assert _produce(connection, [name], 1) == [0]
        found = connection.send(fetch, FETCH_VERSION).responses[0].partitions[0]
        times.append(time.perf_counter() - began)
        assert found.error_code == 0
        assert found.records
    return Line(what=what, value=round(median(times) * 1000, 2), unit="ms")


class Waits:
    """How long a client waited each time, in seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def lines(self) -> Iterator[Line]:
        """The usual wait and the longest."""
        for what, value in (("median", median(self.seconds)), ("slowest", max(self.seconds))):
            yield Line(
                what=f"a bystander's produce, {what}", value=round(value * 1000, 1), unit="ms"
            )


@contextmanager
def watched(broker: ScaledBroker) -> Iterator[Waits]:
    """Produce to one topic all the while, as somebody who has nothing to do with the rest."""
    waits, is_over = Waits(), Event()

    def produce() -> None:
        with broker.connect() as connection:
            while not is_over.wait(0.005):
                began = time.perf_counter()
                assert _produce(connection, [BYSTANDER], 1) == [0]
                waits.seconds.append(time.perf_counter() - began)

    with ThreadPoolExecutor(1) as pool:
        bystander = pool.submit(produce)
        try:
            yield waits
        finally:
            is_over.set()
            bystander.result()


@contextmanager
def idle_connections(port: int, count: int) -> Iterator[tuple[float, asyncio.Runner]]:
    """Open that many, have each answered once, and keep them. Yields how long that took."""
    with asyncio.Runner() as runner:
        began = time.perf_counter()
        writers = runner.run(_dial_all(port, count))
        try:
            yield time.perf_counter() - began, runner
        finally:
            for writer in writers:
                writer.transport.abort()


async def _dial_all(port: int, count: int) -> list[asyncio.StreamWriter]:
    gate = asyncio.Semaphore(DIALS_AT_ONCE)
    # One address has some 28,000 ports; a few of the loopback net are dialled from, to be on the safe side.
    dials = (_dial(port, f"127.0.0.{2 + number % 8}", gate) for number in range(count))
    return list(await asyncio.gather(*dials))


async def _dial(port: int, source: str, gate: asyncio.Semaphore) -> asyncio.StreamWriter:
    async with gate:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(source, 0), limit=4096
        )
        writer.write(bytes.fromhex("0000000a 0012 0000 00000001 ffff".replace(" ", "")))
        await reader.readexactly(8)
        return writer
