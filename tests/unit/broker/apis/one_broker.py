"""A broker without sockets: the real parts over a store and a disk in memory, and a client's connection to call handlers with.

`on_broker` makes a test of a coroutine that takes a `OneBroker`. `ask` calls an API's handler the way the broker does:
the request is encoded and decoded in its version first, dependencies are bound by name, and so is the answer.
"""

import asyncio
import inspect
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any, TypeVar
from uuid import UUID, uuid4

from headrace.broker.busy_poll import BusyPoll
from headrace.broker.cluster_view import ClusterView
from headrace.broker.config_rules import SettingRules
from headrace.broker.connection import Connection, Dispatch
from headrace.broker.live_settings import LiveSettings
from headrace.broker.long_work import LongWork
from headrace.broker.loop_share import LoopShare
from headrace.broker.memory_budget import MemoryBudget
from headrace.broker.metadata_answers import MetadataAnswers
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.request import RequestContext
from headrace.broker.roles import Roles
from headrace.broker.settings.broker_settings import BrokerSettings
from headrace.broker.spare_memory import SpareMemory
from headrace.broker.topic_creation import TopicCreation
from headrace.broker.traffic import Traffic
from headrace.controller.changes import BrokerRegistered, ChangeBatch
from headrace.controller.driver import ControllerDriver
from headrace.controller.producer_ids import AllocateProducerIds
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import Broker
from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.lease import SessionLease
from headrace.coordination.membership import BrokerRegistration, prepare
from headrace.coordination.nodes import BrokerNode
from headrace.coordinator.group.groups import Groups
from headrace.coordinator.group.settings import GroupSettings
from headrace.log.log_dirs import LogDirs
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.codec import decode, encode
from headrace.wire.message import Request, Response

R = TypeVar("R", bound=Response)

NOW_MS = 1_700_000_000_000
BROKER_ID = 1
CLUSTER_ID = "a-cluster"
LOG_DIR = "/data"


class Listener:
    """What a connection belongs to; nothing is ever sent through it."""

    receive_area = memoryview(bytearray(16))
    busy_poll = BusyPoll(lambda turn: None, 0)
    loop_share = LoopShare(lambda resume: None, lambda: 0.0)
    spares = SpareMemory()
    budget = MemoryBudget(1 << 20)
    max_frame_bytes = 1 << 20
    dispatch: Dispatch

    def __init__(self, name: str) -> None:
        self.listener_name = name

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
        self.controller = ControllerDriver(
            store, BROKER_ID, config_rules=SettingRules(self.live_settings, self.cluster)
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
        self.groups = Groups(
            GroupSettings(initial_rebalance_delay_ms=0),
            partition_count=lambda: settings.offsets_topic_num_partitions,
            wall_clock_ms=lambda: NOW_MS,
            new_uuid=lambda: str(uuid4()),
            spawn=tasks.create_task,
            lease=self.lease,
        )
        self.topic_creation = TopicCreation(self.controller, self.live_settings, self.cluster)
        self.metadata_answers = MetadataAnswers()
        self.long_work = LongWork()
        self.traffic = Traffic()
        self.clock = lambda: NOW_MS
        self.broker_epoch = -1
        self.producer_ids = ProducerIds(
            lambda: self.controller.ask(
                AllocateProducerIds(broker_id=BROKER_ID, broker_epoch=self.broker_epoch)
            )
        )
        self.roles = Roles(
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=self.log_dirs,
            groups=self.groups,
            followers=NobodyToFollow(),
            live_settings=self.live_settings,
            traffic=self.traffic,
            clock=lambda: NOW_MS,
            broker_epoch=lambda: self.broker_epoch,
            on_topics_deleted=lambda topics, paths: None,
            lease=self.lease,
        )
        self.controller.listen(self.roles.apply)

    async def ask(
        self,
        api: ModuleType,
        request: Request[R],
        version: int,
        *,
        connection: Connection | None = None,
    ) -> R:
        context = RequestContext(request.API_KEY, version, "client", connection or connection_to())
        received = decode(type(request), version, bytearray(encode(request, version)))
        needs = inspect.signature(api.handle).parameters
        parts = {name: getattr(self, name) for name in needs if name not in ("request", "context")}
        answer = api.handle(received, context, **parts)
        if inspect.isawaitable(answer):
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
        {"node.id": str(BROKER_ID), "offsets.topic.num.partitions": "3", **named},
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
            broker.groups.stop()
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
