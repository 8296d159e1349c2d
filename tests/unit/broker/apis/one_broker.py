"""A broker without sockets: the real parts over a store and a disk in memory, and a client's connection to call handlers with.

`on_broker` makes a test of a coroutine that takes a `OneBroker`. `ask` calls an API's handler the way the broker does:
the request is encoded and decoded in its version first, dependencies are bound by name, and so is the answer.
"""

import asyncio
import inspect
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from time import perf_counter
from types import ModuleType
from typing import Any, TypeVar
from uuid import UUID, uuid4

from headrace.broker.cluster.cluster_feed import ClusterFeed, FeedListener
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.config_rules import SettingRules
from headrace.broker.cluster.dynamic_settings import DynamicSettings
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.producer_ids import ProducerIds
from headrace.broker.cluster.topic_creation import TopicCreation
from headrace.broker.coordinators.coordinator_table import (
    CoordinatorEntry,
    CoordinatorTable,
    KeyType,
)
from headrace.broker.coordinators.marker_senders import MarkerSenders
from headrace.broker.net.buffer_pool import BufferPool
from headrace.broker.net.busy_poll import BusyPoll
from headrace.broker.net.connection import Connection, Dispatch
from headrace.broker.net.memory_budget import MemoryBudget
from headrace.broker.net.read_budget import ReadBudget
from headrace.broker.replicas.replica_hosting import ReplicaHosting
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.telemetry.traffic import Traffic
from headrace.broker.workers import Threads
from headrace.controller.changes import BrokerRegistered, ChangeBatch
from headrace.controller.producer_ids import AllocateProducerIds
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import Broker
from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.lease import SessionLease
from headrace.coordination.membership import BrokerRegistration, prepare
from headrace.coordination.nodes import BrokerNode
from headrace.coordinator.contract import Effect
from headrace.coordinator.coordinator_type import CoordinatorHost, ShardId
from headrace.coordinator.group.groups import Groups, group_coordinator
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.transaction.settings import TransactionSettings
from headrace.coordinator.transaction.transactions import Transactions, transaction_coordinator
from headrace.ids import ProducerId
from headrace.log.log_dirs import LogDirs
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.codec import decode, encode
from headrace.wire.message import Request, Response
from tests.support.controllers import make_driver
from tests.support.scripted_verification import ScriptedVerification

R = TypeVar("R", bound=Response)

NOW_MS = 1_700_000_000_000
BROKER_ID = 1
CLUSTER_ID = "a-cluster"
LOG_DIR = "/data"


class Listener:
    """What a connection belongs to; nothing is ever sent through it."""

    receive_area = memoryview(bytearray(16))
    busy_poll = BusyPoll(lambda turn: None, 0, clock=lambda: 0.0, cpu_clock=lambda: 0.0)
    read_budget = ReadBudget(lambda resume: None, lambda: 0.0)
    buffer_pool = BufferPool()
    budget = MemoryBudget(1 << 20)
    max_frame_bytes = 1 << 20
    dispatch: Dispatch

    def __init__(self, name: str, *, is_inter_broker: bool = True) -> None:
        self.listener_name = name
        self.is_inter_broker = is_inter_broker
        self._ids = count(1)

    def next_connection_id(self) -> int:
        return next(self._ids)

    def opened(self, connection: Connection) -> bool:
        return True

    def closed(self, connection: Connection) -> None:
        pass

    def start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        raise NotImplementedError

    def now(self) -> float:
        return 0.0


def connection_to(listener: str = "PLAINTEXT") -> Connection:
    connection = Connection(Listener(listener))
    connection.peer_host = "10.0.0.9"
    connection.local_address = ("dialled", 9092)
    return connection


class NobodyToFollow:
    """A broker alone leads everything itself."""

    def follow(self, partition: Partition, leader_id: int, on_disk_failed: object) -> None:
        raise AssertionError(f"{partition.topic_partition} is to be followed at {leader_id}")

    def leave(self, partition: Partition) -> None:
        """It was not followed."""


class OneBroker:
    """The parts; `cluster.state` is what the controller published."""

    def __init__(
        self, settings: BrokerSettings, store: EmbeddedStore, tasks: asyncio.TaskGroup
    ) -> None:
        self.store = store
        self.live_settings = LiveSettings(settings)
        self.cluster = ClusterView(
            BROKER_ID, CLUSTER_ID, tells_dialled_address=settings.advertised_listeners is None
        )
        self.controller = make_driver(
            store, BROKER_ID, SettingRules(self.live_settings, self.cluster)
        )
        self.disk = MemoryDisk(capacity_bytes=1 << 30)
        self.log_dirs = LogDirs(
            self.disk,
            [LOG_DIR],
            config_for=lambda _: settings.topic_defaults.to_log_config(producer_id_expiration_ms=1),
            new_id=uuid4,
        )
        self.log_dirs.open(NOW_MS)
        self.partitions = PartitionTable()
        self.lease_clock_s = 0.0
        self.lease = SessionLease(lambda: self.lease_clock_s, until=math.inf)
        self.group_runtime = CoordinatorRuntime(
            group_coordinator(GroupSettings(initial_rebalance_delay_ms=0)),
            CoordinatorHost(
                wall_clock_ms=lambda: NOW_MS, spawn=tasks.create_task, lease=self.lease
            ),
            partition_count=lambda: settings.offsets_topic_num_partitions,
        )
        self.groups = Groups(self.group_runtime, new_uuid=lambda: str(uuid4()))
        self.markers_written: list[Effect] = []
        self.may_write_markers = asyncio.Event()
        self.may_write_markers.set()
        self.transaction_runtime = CoordinatorRuntime(
            transaction_coordinator(
                TransactionSettings(),
                write_markers=self._write_markers,
                transaction_version=lambda: 2,
            ),
            CoordinatorHost(
                wall_clock_ms=lambda: NOW_MS, spawn=tasks.create_task, lease=self.lease
            ),
            partition_count=lambda: settings.transaction_state_log_num_partitions,
        )
        self.transactions = Transactions(
            self.transaction_runtime, next_producer_id=self._next_producer_id
        )
        self.coordinators = CoordinatorTable(
            CoordinatorEntry(key_type=KeyType.GROUP, runtime=self.group_runtime, codec=lambda: 0),
            CoordinatorEntry(
                key_type=KeyType.TRANSACTION, runtime=self.transaction_runtime, codec=lambda: 0
            ),
        )
        self.topic_creation = TopicCreation(self.controller, self.live_settings, self.cluster)
        self.metadata_cache = MetadataCache()
        self.marker_senders = MarkerSenders(lambda broker_id: broker_id == BROKER_ID)
        self.long_work = LongWork(Threads(perf_counter), perf_counter)
        self.traffic = Traffic()
        self.txn_verification = ScriptedVerification()
        self.clock = lambda: NOW_MS
        self.broker_epoch = -1
        self.producer_ids = ProducerIds(
            lambda: self.controller.ask(
                AllocateProducerIds(broker_id=BROKER_ID, broker_epoch=self.broker_epoch)
            )
        )
        self.replica_hosting = ReplicaHosting(
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=self.log_dirs,
            coordinators=self.coordinators,
            fetchers=NobodyToFollow(),
            live_settings=self.live_settings,
            traffic=self.traffic,
            clock=lambda: NOW_MS,
            broker_epoch=lambda: self.broker_epoch,
            on_topics_deleted=lambda topics, paths: None,
            lease=self.lease,
        )
        self.feed = ClusterFeed(
            self.cluster,
            after=(
                FeedListener(
                    "dynamic configs", DynamicSettings(self.cluster, self.live_settings).hear
                ),
                FeedListener("roles", self.replica_hosting.apply),
            ),
        )
        self.controller.listen(self.feed.apply)

    async def _write_markers(self, _: ShardId, effect: Effect) -> object:
        await self.may_write_markers.wait()
        self.markers_written.append(effect)
        return None

    async def _next_producer_id(self) -> ProducerId | None:
        producer_id = await self.producer_ids.next_id()
        return None if producer_id is None else ProducerId(producer_id)

    async def ask(
        self,
        api: ModuleType,
        request: Request[R],
        version: int,
        *,
        connection: Connection | None = None,
        client_id: str = "client",
    ) -> R:
        context = RequestContext(request.API_KEY, version, client_id, connection or connection_to())
        received = decode(type(request), version, bytearray(encode(request, version)))
        needs = inspect.signature(api.handle).parameters
        parts = {name: getattr(self, name) for name in needs if name not in ("request", "context")}
        answer = api.handle(received, context, **parts)
        while inspect.isawaitable(answer):
            answer = await answer
        body = b"".join(answer) if isinstance(answer, list) else encode(answer, version)
        return decode(request.RESPONSE, version, bytearray(body))

    async def topic(self, name: str, partitions: int = 1, **configs: str) -> UUID:
        wanted = NewTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        (answer,) = await self.controller.ask(CreateTopics(topics=(wanted,)))
        assert not answer.error, answer
        return answer.topic_id

    async def join(self, broker_id: int) -> None:
        """Another broker registers, and never does anything."""
        node = BrokerNode(
            listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
            endpoints=(f"PLAINTEXT://other-{broker_id}:9092",),
            host=f"other-{broker_id}",
            port=9092,
            timestamp="0",
            rack=f"rack-{broker_id}",
        )
        heard_of = asyncio.Event()
        self.controller.listen(
            lambda _: heard_of.set() if broker_id in self.cluster.state.brokers else None
        )
        await BrokerRegistration(self.store, broker_id, node).register()
        await heard_of.wait()

    def hear_of(self, broker: Broker) -> None:
        """Another broker, as far as this one knows; the controller has never heard of it."""
        self.cluster.apply(ChangeBatch(1, 0, (BrokerRegistered(broker),)))


@asynccontextmanager
async def one_broker(**properties: str) -> AsyncIterator[OneBroker]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    settings = BrokerSettings.from_properties(
        {
            "node.id": str(BROKER_ID),
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            **named,
        },
        default_log_dir=LOG_DIR,
    )
    store = EmbeddedStore(None)
    await store.open()
    try:
        async with asyncio.TaskGroup() as tasks:
            await prepare(store)
            node = BrokerNode(
                listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
                endpoints=("PLAINTEXT://advertised:19092",),
                host="advertised",
                port=19092,
                timestamp="0",
                rack="here",
            )
            broker = OneBroker(settings, store, tasks)
            broker.broker_epoch = await BrokerRegistration(store, BROKER_ID, node).register()
            running = tasks.create_task(broker.controller.run())
            await broker.controller.ready()
            yield broker
            broker.coordinators.stop()
            running.cancel()
    finally:
        await store.close()


Scenario = Callable[[OneBroker], Awaitable[None]]


def on_broker(**properties: str) -> Callable[[Scenario], Callable[[], None]]:
    """Properties are Kafka's, with underscores."""

    def decorate(scenario: Scenario) -> Callable[[], None]:
        async def run() -> None:
            async with one_broker(**properties) as broker:
                await scenario(broker)

        def test() -> None:
            asyncio.run(run())

        test.__doc__ = scenario.__doc__
        return test

    return decorate
