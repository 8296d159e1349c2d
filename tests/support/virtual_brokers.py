"""Whole brokers in virtual time, in one thread, without sockets: everything that they take from outside is replaced."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from random import Random
from typing import Any, TypeVar

from headrace.broker.environment import Environment
from headrace.broker.main import Broker
from headrace.broker.net.network import Network, SocketNetwork
from headrace.broker.pages.process_stats import ProcessStats
from headrace.broker.upkeep.cleaner_process import CleanerOrder, CleanerReport, do_job
from headrace.client.async_connection import AsyncConnection
from headrace.coordination.store import Store
from headrace.records.batch_builder import build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.settings.broker_settings import BrokerSettings
from headrace.testing.memory_disk import MemoryDisk
from headrace.testing.memory_store import MemoryStore, MemoryTree
from headrace.testing.virtual.world import VirtualWorld
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_place import InPlace

T = TypeVar("T")

HOST = "virtual"
START_MS = 1_700_000_000_000


def run_in_virtual_time(story: Coroutine[Any, Any, T]) -> T:
    """Play a story to its end."""
    with VirtualWorld(1) as world:
        return world.run(HOST, story)


class VirtualHost(SocketNetwork):
    """A broker's own network code, on the virtual event loop's connections."""

    def host_name(self) -> str:
        return HOST


def now_ms() -> int:
    return START_MS + int(asyncio.get_running_loop().time() * 1000)


def environment(seed: int, disk: MemoryDisk, tree: MemoryTree, network: Network) -> Environment:
    def make_store(settings: BrokerSettings, cluster: str | None) -> Store:
        return MemoryStore(tree)

    async def run_compaction(order: CleanerOrder) -> AsyncGenerator[CleanerReport]:
        for report in do_job(disk, order):
            yield report

    return Environment(
        clock=now_ms,
        monotonic=lambda: asyncio.get_running_loop().time(),
        cpu_clock=lambda: 0.0,
        chance=Random(seed),
        workers=InPlace(),
        network=network,
        disk=disk,
        max_connections=100,
        make_store=make_store,
        run_compaction=run_compaction,
        process_stats=lambda: ProcessStats(
            cpu_seconds=0.0, loop_cpu_seconds=0.0, gc_generations=()
        ),
    )


class Machine:
    """A broker with its disk, which may be started again."""

    def __init__(self, node_id: int, seed: int, tree: MemoryTree, network: Network) -> None:
        properties = {"node.id": str(node_id), "listeners": "PLAINTEXT://:0"}
        properties["headrace.busy.poll.us"] = "0"
        self._settings = BrokerSettings.from_properties(properties, default_log_dir="/data")
        self._network = network
        self.disk = MemoryDisk()
        self._environment = environment(seed, self.disk, tree, network)

    async def start(self) -> None:
        self._broker, ready = Broker(self._settings, self._environment), asyncio.Event()
        self._running = asyncio.create_task(self._broker.run(ready.set))
        waiting = asyncio.ensure_future(ready.wait())
        await asyncio.wait((self._running, waiting), return_when=asyncio.FIRST_COMPLETED)
        assert not self._running.done(), self._running

    async def connect(self) -> AsyncConnection:
        return await self._network.connect(
            HOST, self._broker.ports["PLAINTEXT"], client_id="client"
        )

    async def stop(self) -> None:
        self._broker.stop()
        await self._running

    def files(self) -> dict[str, bytes | None]:
        return {
            f"{name}/{file.name}": self.disk.read_bytes(f"/data/{name}/{file.name}")
            for name in self.disk.list_directories("/data")
            for file in self.disk.list_files(f"/data/{name}")
        }


async def leader_of(machines: dict[Machine, AsyncConnection], value: bytes) -> Machine:
    """Whoever takes a record."""
    while True:
        for machine, connection in machines.items():
            if not await produce(connection, value):
                return machine
        await asyncio.sleep(0.1)


async def create_topic(connection: AsyncConnection, *, replicas: int) -> object:
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=replicas)
    answer = await connection.send(CreateTopicsRequest(topics=[topic]), 7)
    assert not answer.topics[0].error_code, answer
    return answer.topics[0].topic_id


async def produce(connection: AsyncConnection, value: bytes) -> int:
    """Returns the error code."""
    batch = build_batch([Record(0, now_ms(), None, value)])
    data = PartitionProduceData(index=0, records=bytes(batch))
    topics = [TopicProduceData(name="orders", partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    answer = await connection.send(request, 9)
    return answer.responses[0].partition_responses[0].error_code


async def fetch(connection: AsyncConnection) -> list[bytes | None]:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="orders", partitions=[partition])]
    request = FetchRequest(max_wait_ms=1000, max_bytes=1 << 20, session_epoch=-1, topics=topics)
    answer = await connection.send(request, 12)
    records = bytes(answer.responses[0].partitions[0].records or b"")
    values = []
    while records:
        size = int.from_bytes(records[8:12]) + 12
        values += [record.value for record in read_batch(bytearray(records[:size]))]
        records = records[size:]
    return values
