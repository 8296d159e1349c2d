"""The journeys of docs/architecture.md are played, and every hop is passed in the order of the page."""

import asyncio
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType

from confluent_kafka import Producer

import headrace
from headrace.client.async_connection import AsyncConnection
from headrace.testing.embedded_broker import EmbeddedBroker
from headrace.testing.memory_store import MemoryTree
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.virtual_brokers import (
    Machine,
    VirtualHost,
    fetch,
    produce,
    run_in_virtual_time,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = f"{Path(headrace.__file__).parent}/"
HOP = re.compile(r"^\d+\. `([^`]+\.py)` `([^`]+)`", re.MULTILINE)

CONTRIBUTING_STEP = re.compile(
    r"^\d\. `([^`]+\.(?:md|py))`, (?:\"[^\"]+\"|`([^`]+)`)", re.MULTILINE
)

Hop = tuple[str, str]


def hops_of(journey: str) -> list[Hop]:
    """Module and function of each hop on the page."""
    (section,) = re.findall(
        rf"^### {journey}\n(.*?)^##", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    hops = [(module, function) for module, function in HOP.findall(section)]
    assert len(hops) == len(re.findall(r"^\d+\. ", section, re.MULTILINE)), "a hop without function"
    return hops


@contextmanager
def calls_into(calls: list[Hop]) -> Iterator[None]:
    """Note which functions of Headrace this thread calls."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            calls.append((frame.f_code.co_filename[len(SOURCE) :], frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def first_missed(hops: Iterable[Hop], calls: Iterable[Hop]) -> Hop | None:
    """The first hop that the calls do not contain behind those before it."""
    passed = iter(calls)
    return next((hop for hop in hops if hop not in passed), None)


class TwoBrokers:
    """Broker 1 is the controller; broker 2 leads partition 0 of the topic, and broker 1 follows."""

    async def start(self) -> None:
        self.tree, network = MemoryTree(), VirtualHost()
        self.first, self.second = (Machine(number, number, self.tree, network) for number in (1, 2))
        await self.first.start()
        await self.second.start()
        self.connections = {1: await self.first.connect(), 2: await self.second.connect()}
        place = CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 1])
        topic = CreatableTopic(
            name="orders", num_partitions=-1, replication_factor=-1, assignments=[place]
        )
        answer = await self.connections[1].send(CreateTopicsRequest(topics=[topic]), 7)
        assert not answer.topics[0].error_code, answer
        await self.until_taken(2)

    async def until_taken(self, broker: int) -> None:
        while True:
            if not await produce(self.connections[broker], b"value"):
                return
            await asyncio.sleep(0.1)

    async def stop(self) -> None:
        await self.second.stop()
        await self.first.stop()


def test_produce() -> None:
    async def story() -> list[Hop]:
        brokers, calls = TwoBrokers(), list[Hop]()
        await brokers.start()
        connection = await brokers.second.connect()
        with calls_into(calls):
            assert not await produce(connection, b"value")
        await brokers.stop()
        return calls

    assert first_missed(hops_of("Produce"), run_in_virtual_time(story())) is None


def test_a_hop_that_is_not_passed_is_found() -> None:
    first, second, third = ("a.py", "f"), ("b.py", "g"), ("c.py", "h")
    calls = [first, second, first, third]
    assert first_missed([first, second, third], calls) is None
    assert first_missed([first, third, second], calls) == second
    assert first_missed([("a.py", "renamed")], calls) == ("a.py", "renamed")


def test_fetch() -> None:
    async def story() -> list[Hop]:
        brokers, calls = TwoBrokers(), list[Hop]()
        await brokers.start()
        with calls_into(calls):
            assert await fetch(brokers.connections[2])
        await brokers.stop()
        return calls

    assert first_missed(hops_of("Fetch"), run_in_virtual_time(story())) is None


def test_rebalance() -> None:
    async def story() -> list[Hop]:
        brokers, calls = TwoBrokers(), list[Hop]()
        await brokers.start()
        coordinator = await coordinator_of("readers", brokers.connections)
        member = await member_id_from(coordinator)
        with calls_into(calls):
            joined = await coordinator.send(joining(member), 5)
            mine = SyncGroupRequestAssignment(member_id=member, assignment=b"all")
            request = SyncGroupRequest(
                group_id="readers",
                generation_id=joined.generation_id,
                member_id=member,
                assignments=[mine],
            )
            synced = await coordinator.send(request, 3)
        assert synced.assignment == b"all"
        await brokers.stop()
        return calls

    assert first_missed(hops_of("Rebalance"), run_in_virtual_time(story())) is None


async def coordinator_of(group: str, connections: dict[int, AsyncConnection]) -> AsyncConnection:
    while True:
        found = await connections[1].send(FindCoordinatorRequest(key=group), 3)
        if not found.error_code:
            return connections[found.node_id]
        await asyncio.sleep(0.1)


async def member_id_from(coordinator: AsyncConnection) -> str:
    """A coordinator gives a new member its id first (KIP-394)."""
    while True:
        answer = await coordinator.send(joining(""), 5)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return str(answer.member_id)
        await asyncio.sleep(0.1)


def joining(member_id: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="readers",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"orders")],
    )


def test_a_brokers_death() -> None:
    async def story() -> list[Hop]:
        brokers, calls = TwoBrokers(), list[Hop]()
        await brokers.start()
        with calls_into(calls):
            brokers.tree.end_session(2)
            await brokers.until_taken(1)
        await brokers.stop()
        return calls

    assert first_missed(hops_of("A broker's death"), run_in_virtual_time(story())) is None


def test_a_micro_batch() -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable
    from pyspark.sql.types import BinaryType, LongType, StructType

    from headrace.pipelines.source import HeadraceDataSource

    calls = list[Hop]()
    with EmbeddedBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"one")
        producer.produce("orders", b"two")
        assert not producer.flush(30)
        options = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "subscribe": "orders",
            "startingOffsets": "earliest",
        }
        columns = StructType().add("offset", LongType()).add("value", BinaryType())
        reader = HeadraceDataSource(options).streamReader(columns)
        start = reader.initialOffset()
        assert reader.latestOffset(start, ReadAllAvailable()) == start, "the first batch is empty"
        with calls_into(calls):
            end = reader.latestOffset(start, ReadAllAvailable())
            tasks = reader.partitions(start, end)
            rows = [batch for task in tasks for batch in reader.read(task)]
        reader.stop()
    assert sum(batch.num_rows for batch in rows) == 2
    assert first_missed(hops_of("A micro-batch of Spark"), calls) is None


def test_the_path_of_contributing_leads_to_the_line_that_appends() -> None:
    """Each file names the next one, or calls the function in it."""
    path = CONTRIBUTING_STEP.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    texts = {file: (ROOT / file).read_text("utf-8") for file, _ in path}
    assert [file for file, _ in path] == list(texts), "no file twice"
    assert 1 < len(path) <= 5
    for (file, _), (following, function) in pairwise(path):
        names_it = following.removeprefix("src/headrace/") in texts[file]
        calls_it = f".{function.rpartition('.')[2]}(" in texts[file]
        assert names_it or calls_it, f"{file} does not lead to {following}"
    assert "        segment.append(batches, headers)\n" in texts[path[-1][0]]
