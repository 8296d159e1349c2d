"""The parts of a broker without a broker, to read metrics from."""

import asyncio
from collections.abc import Coroutine
from itertools import count
from typing import Any
from uuid import UUID

from headrace.broker.cluster.cluster_counts import ClusterCounts
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.fetching.fetch_sessions import FetchSessions
from headrace.broker.lifecycle import Lifecycle
from headrace.broker.net.buffer_pool import BufferPool
from headrace.broker.net.busy_poll import BusyPoll
from headrace.broker.net.connection import Connection, Dispatch
from headrace.broker.net.listener import ConnectionCounts, ConnectionLimits
from headrace.broker.net.memory_budget import MemoryBudget
from headrace.broker.net.read_budget import ReadBudget
from headrace.broker.pages.group_families import GroupProgress
from headrace.broker.pages.metrics_page import MetricsPage, MetricsSources
from headrace.broker.pages.process_stats import ProcessStats
from headrace.broker.requests.request_metrics import RequestMetrics
from headrace.broker.requests.txn_verification import VerificationCounts
from headrace.broker.telemetry.traffic import Traffic
from headrace.controller.changes import (
    BrokerRegistered,
    Change,
    ControllerElected,
    TopicCreated,
)
from headrace.controller.values import Broker, Endpoint, PartitionState
from headrace.coordinator.group.state import GroupState
from headrace.coordinator.group.stored_records import CommittedOffset
from headrace.coordinator.transaction.state import Status
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.records.batch_builder import build_batch
from headrace.records.batch_reader import Record
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.testing.memory_disk import MemoryDisk
from tests.unit.broker.pages.metrics_text import Page

START_MS = 1_000_000
TOPIC_ID = UUID(int=7)


class Owner:
    """What a connection asks of its listener; none of it happens here."""

    receive_area = memoryview(bytearray(16))
    busy_poll = BusyPoll(lambda turn: None, 0, clock=lambda: 0.0, cpu_clock=lambda: 0.0)
    read_budget = ReadBudget(lambda resume: None, lambda: 0.0)
    buffer_pool = BufferPool()
    budget = MemoryBudget(1)
    max_frame_bytes = 1
    dispatch: Dispatch
    is_inter_broker = True

    def __init__(self, listener_name: str) -> None:
        self.listener_name = listener_name

    def next_connection_id(self) -> int:
        return 1

    def opened(self, connection: Connection) -> bool:
        raise AssertionError

    def closed(self, connection: Connection) -> None:
        raise AssertionError

    def start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        raise AssertionError

    def now(self) -> float:
        raise AssertionError


class Groups:
    groups_by_state = {GroupState.STABLE: 2, GroupState.EMPTY: 1}
    offset_count = 3


class TransactionFigures:
    transactions_by_status = {Status.ONGOING: 3}
    without_leader = 2


class World:
    """A broker's parts without a broker: broker 1 of two leads orders-0 and orders-1, and has lost orders-2."""

    def __init__(self, controller_id: int = 1) -> None:
        self.loop_cpu_seconds = 0.0
        self.progress: list[GroupProgress] = []
        self.faults: list[str] = []
        self.verifications = VerificationCounts()
        self.log_dirs = LogDirs(
            MemoryDisk(), ["/data"], config_for=lambda _: LogConfig(), new_id=lambda: TOPIC_ID
        )
        self.log_dirs.open(START_MS)
        self.partitions = PartitionTable()
        self.cluster = ClusterView(1, "cluster", tells_dialled_address=False)
        states = (
            PartitionState(replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0),
            PartitionState(replicas=(2, 1), isr=(1,), leader=1, leader_epoch=1, partition_epoch=1),
            PartitionState(replicas=(1, 2), isr=(2,), leader=-1, leader_epoch=2, partition_epoch=2),
        )
        changes: tuple[Change, ...] = (
            ControllerElected(controller_id, 1),
            BrokerRegistered(Broker(1, 1, (Endpoint("PLAINTEXT", "one", 9092),))),
            BrokerRegistered(Broker(2, 2, (Endpoint("PLAINTEXT", "two", 9092),))),
            TopicCreated("orders", TOPIC_ID, states),
        )
        for change in changes:
            self.cluster.state.apply(change)
        self.host("orders", 0, records=5)
        self.host("orders", 1, records=0)
        self.sources = MetricsSources(
            lifecycle=Lifecycle(),
            live_settings=LiveSettings(BrokerSettings.from_properties({"node.id": "1"})),
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=self.log_dirs,
            traffic=Traffic(),
            requests=RequestMetrics(),
            connections=ConnectionCounts(LIMITS),
            memory=MemoryBudget(1_000),
            fetch_sessions=FetchSessions(10, count(1).__next__),
            counts=ClusterCounts(),
            max_replica_lag=lambda: 17,
            process=self.process,
            coordinator_faults=lambda: self.faults,
            groups=Groups(),
            transactions=TransactionFigures(),
            marker_sending=TransactionFigures(),
            verifications=self.verifications,
            group_progress=lambda: self.progress,
        )
        self.page = MetricsPage(self.sources, START_MS)

    def host(self, topic: str, index: int, *, records: int) -> Partition:
        name = TopicPartition(topic, index)
        log = self.log_dirs.create(name, TOPIC_ID, now_ms=START_MS)
        hosted = Partition(
            name,
            TOPIC_ID,
            log,
            high_watermark=0,
            on_disk_failed=lambda *_: None,
        )
        led = PartitionState(replicas=(1,), isr=(1,), leader=1, leader_epoch=1, partition_epoch=1)
        hosted.become_leader(1, led, now_ms=START_MS)
        if records:
            batch = build_batch(
                [Record(offset, START_MS, None, b"value", ()) for offset in range(records)]
            )
            hosted.append([batch], acks=1, now_ms=START_MS)
        self.partitions.add(hosted)
        return hosted

    def process(self) -> ProcessStats:
        return ProcessStats(
            cpu_seconds=12.5,
            loop_cpu_seconds=self.loop_cpu_seconds,
            gc_generations=(
                {"collections": 3, "collected": 2, "uncollectable": 0},
                {"collections": 1, "collected": 9, "uncollectable": 0},
            ),
            open_fds=17,
        )

    def read(self, now_ms: int = START_MS) -> Page:
        return Page("".join(self.page.pieces(now_ms)))


LIMITS = ConnectionLimits(
    max_connections=10,
    max_connections_per_ip=10,
    connections_max_idle_ms=1,
    max_frame_bytes=1,
    backlog=1,
)


def committed(offset: int) -> CommittedOffset:
    return CommittedOffset(
        offset=offset,
        leader_epoch=0,
        topic_id=TOPIC_ID,
        metadata="",
        commit_timestamp_ms=START_MS,
        expire_timestamp_ms=None,
    )
