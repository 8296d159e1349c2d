"""Constructs every part of a broker once, and gives each its dependencies. Starting and stopping is `main`'s."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import randrange
from uuid import UUID, uuid4

from headrace.broker import api_table
from headrace.broker.busy_poll import BusyPoll
from headrace.broker.cleaner import Cleaner
from headrace.broker.clock import Clock
from headrace.broker.cluster_counts import ClusterCounts
from headrace.broker.cluster_view import ClusterView
from headrace.broker.config_rules import SettingRules
from headrace.broker.controller_link import ControllerLink
from headrace.broker.dead_brokers import DeadBrokers
from headrace.broker.dispatch import Dispatcher
from headrace.broker.fetch_sessions import FetchSessions
from headrace.broker.followers import Followers
from headrace.broker.health import Lifecycle
from headrace.broker.housekeeping import Housekeeping
from headrace.broker.http_endpoint import HttpEndpoint
from headrace.broker.http_pages import http_pages
from headrace.broker.isr_updates import IsrUpdates
from headrace.broker.leader_balance import LeaderBalance
from headrace.broker.listener import ConnectionCounts, ConnectionLimits, OpenListener
from headrace.broker.live_settings import LiveSettings
from headrace.broker.long_work import LongWork
from headrace.broker.memory_budget import MemoryBudget
from headrace.broker.metadata_answers import MetadataAnswers
from headrace.broker.metrics.process_stats import read_process_stats
from headrace.broker.metrics_page import MetricsSources
from headrace.broker.newer_logs import NewerLogs
from headrace.broker.offline_replicas import OfflineReplicas
from headrace.broker.open_files import current_shares
from headrace.broker.produce_repeats import ProduceRepeats
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.replica_moves import ReplicaMoves
from headrace.broker.replica_throttle import ReplicaThrottle
from headrace.broker.request_metrics import RequestMetrics
from headrace.broker.role_turns import PARTITIONS_PER_TURN, RoleTurns
from headrace.broker.roles import Roles
from headrace.broker.settings.broker_settings import BrokerSettings
from headrace.broker.topic_creation import TopicCreation
from headrace.broker.traffic import Traffic
from headrace.controller.core import ControllerSettings
from headrace.controller.driver import ControllerDriver
from headrace.controller.producer_ids import AllocateProducerIds, ProducerIdBlock
from headrace.coordination.store import Store
from headrace.coordinator.group.groups import Groups
from headrace.coordinator.group.settings import GroupSettings
from headrace.errors import DiskFailed
from headrace.log.disk import Disk
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition_table import PartitionTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a broker starts from."""

    settings: BrokerSettings
    store: Store
    disk: Disk
    log_dirs: LogDirs
    cluster_id: str
    clock: Clock
    tasks: asyncio.TaskGroup
    broker_epoch: Callable[[], int]
    on_topics_deleted: Callable[[list[tuple[str, UUID]], list[str]], None]


class Parts:
    """The parts of one broker, wired but not started; each step uses those before it."""

    def __init__(self, given: Given) -> None:
        self._make_state(given)
        self._make_coordinators(given)
        self._make_doors(given)
        self._make_background(given)

    def _make_state(self, given: Given) -> None:
        settings = given.settings
        self.log_dirs = given.log_dirs
        self.live_settings = LiveSettings(settings)
        self.lifecycle = Lifecycle()
        self.partitions = PartitionTable()
        self.traffic = Traffic()
        self.request_metrics = RequestMetrics()
        self.counts = ClusterCounts()
        self.sessions = FetchSessions(
            settings.max_incremental_fetch_session_cache_slots,
            new_id=lambda: randrange(1, 2**31),
        )
        self.budget = MemoryBudget(settings.request_memory_bytes)
        self.connections = ConnectionCounts(connection_limits(settings))
        self.live_settings.listen(self._limit_connections)
        self.cluster = ClusterView(
            settings.node_id,
            given.cluster_id,
            tells_dialled_address=settings.advertised_listeners is None,
        )
        self.dead_brokers = DeadBrokers(
            self.cluster,
            given.store,
            settings.inter_broker_listener.name,
            is_on=settings.zookeeper_connect is not None
            and settings.headrace_failover_on_refused_connection,
        )
        self.leader_throttle = ReplicaThrottle(
            self.cluster,
            given.clock,
            lambda: self.live_settings.current.leader_replication_throttled_rate,
            replicas_key="leader.replication.throttled.replicas",
        )
        self.follower_throttle = ReplicaThrottle(
            self.cluster,
            given.clock,
            lambda: self.live_settings.current.follower_replication_throttled_rate,
            replicas_key="follower.replication.throttled.replicas",
        )

    def _make_coordinators(self, given: Given) -> None:
        settings = given.settings
        self.driver = ControllerDriver(
            given.store,
            settings.node_id,
            config_rules=SettingRules(self.live_settings, self.cluster),
            settings=controller_settings(settings),
        )
        self.controller = ControllerLink(
            self.driver,
            given.store,
            settings.node_id,
            settings.inter_broker_listener.name,
            self.dead_brokers.connection_broke,
        )
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self._broker_epoch = given.broker_epoch
        self.groups = Groups(
            group_settings(settings),
            partition_count=self._offsets_partitions,
            wall_clock_ms=given.clock,
            new_uuid=lambda: str(uuid4()),
            spawn=given.tasks.create_task,
            lease=given.store.lease,
        )
        self.topic_creation = TopicCreation(self.controller, self.live_settings, self.cluster)
        self.followers = Followers(
            self.cluster,
            settings,
            given.broker_epoch,
            self.follower_throttle,
            given.clock,
            given.tasks,
            self.dead_brokers.connection_broke,
        )
        self.isr_updates = IsrUpdates(
            self.cluster,
            self.partitions,
            self.controller,
            self.live_settings,
            given.broker_epoch,
            given.clock,
        )
        self.roles = Roles(
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=given.log_dirs,
            groups=self.groups,
            followers=self.followers,
            live_settings=self.live_settings,
            traffic=self.traffic,
            clock=given.clock,
            broker_epoch=given.broker_epoch,
            on_topics_deleted=given.on_topics_deleted,
            new_at_once=PARTITIONS_PER_TURN,
            lease=given.store.lease,
        )
        self.role_turns = RoleTurns(self.roles)
        self.controller.after_creation = self.role_turns.settled
        self.replica_moves = ReplicaMoves(
            disk=given.disk,
            log_dirs=given.log_dirs,
            partitions=self.partitions,
            live_settings=self.live_settings,
            clock=given.clock,
            new_id=uuid4,
            on_disk_failed=self.roles.take_offline,
        )

    def _make_doors(self, given: Given) -> None:
        dependencies = {
            "clock": given.clock,
            "cluster": self.cluster,
            "controller": self.controller,
            "dead_brokers": self.dead_brokers,
            "driver": self.driver,
            "fetch_max_bytes": given.settings.fetch_max_bytes,
            "groups": self.groups,
            "leader_throttle": self.leader_throttle,
            "live_settings": self.live_settings,
            "log_dirs": given.log_dirs,
            "long_work": LongWork(),
            "metadata_answers": MetadataAnswers(),
            "offered": api_table.advertised(),
            "partitions": self.partitions,
            "producer_ids": self.producer_ids,
            "replica_moves": self.replica_moves,
            "sessions": self.sessions,
            "topic_creation": self.topic_creation,
            "traffic": self.traffic,
        }
        repeats = ProduceRepeats(self.partitions, self.traffic, given.clock)
        self.dispatch = Dispatcher(api_table.bind(dependencies), self.request_metrics, repeats)
        longest_s = given.settings.headrace_busy_poll_us / 1_000_000
        busy_poll = BusyPoll(asyncio.get_running_loop().call_soon, longest_s)
        self.listeners = [
            OpenListener(
                listener, self.dispatch, self.budget, self.connections, given.tasks, busy_poll
            )
            for listener in given.settings.listeners
        ]
        sources = MetricsSources(
            lifecycle=self.lifecycle,
            live_settings=self.live_settings,
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=given.log_dirs,
            traffic=self.traffic,
            requests=self.request_metrics,
            connections=self.connections,
            memory=self.budget,
            fetch_sessions=self.sessions,
            counts=self.counts,
            max_replica_lag=lambda: self.followers.max_lag,
            process=read_process_stats,
            groups=self.groups,
            group_progress=self.groups.progress,
            uncleanable_logs=lambda: self.cleaner.uncleanable,
        )
        pages = http_pages(sources, given.clock)
        self.http = HttpEndpoint(given.settings.headrace_http_listeners, pages)

    def _make_background(self, given: Given) -> None:
        self.leader_balance = LeaderBalance(self.driver, self.live_settings)
        self.newer_logs = NewerLogs(
            self.cluster, self.roles, self.controller, given.broker_epoch, given.clock
        )
        self.offline_replicas = OfflineReplicas(
            self.cluster,
            self.partitions,
            given.log_dirs,
            self.controller,
            given.broker_epoch,
            is_settled=lambda: not self.roles.has_unsettled,
        )
        self.cleaner = Cleaner(
            self.partitions,
            given.log_dirs,
            self.live_settings,
            given.clock,
            on_disk_failed=self._on_disk_failed,
        )
        self.housekeeping = Housekeeping(
            disk=given.disk,
            log_dirs=given.log_dirs,
            partitions=self.partitions,
            live_settings=self.live_settings,
            clock=given.clock,
            on_disk_failed=self._on_disk_failed,
            close_idle_connections=self._close_idle_connections,
            settle_again=self.roles.settle_again,
        )

    async def _allocate_producer_ids(self) -> ProducerIdBlock:
        return await self.controller.ask(
            AllocateProducerIds(broker_id=self.cluster.broker_id, broker_epoch=self._broker_epoch())
        )

    def _offsets_partitions(self) -> int:
        topic = self.cluster.state.topics.get("__consumer_offsets")
        if topic is None:
            return self.live_settings.current.offsets_topic_num_partitions
        return len(topic.partitions)

    def _on_disk_failed(self, log: PartitionLog, error: DiskFailed) -> None:
        self.roles.take_offline(log.topic_partition, error)

    def _limit_connections(self, settings: BrokerSettings) -> None:
        self.connections.limits = connection_limits(settings)

    def _close_idle_connections(self) -> None:
        for listener in self.listeners:
            listener.close_idle()


def connection_limits(settings: BrokerSettings) -> ConnectionLimits:
    """The settings that bound connections."""
    return ConnectionLimits(
        # A connection past that share would take the descriptor that a log needs for its next write.
        max_connections=min(settings.max_connections, current_shares().connections),
        max_connections_per_ip=settings.max_connections_per_ip,
        max_connections_per_ip_overrides=dict(settings.max_connections_per_ip_overrides),
        connections_max_idle_ms=settings.connections_max_idle_ms,
        max_connection_creation_rate=settings.max_connection_creation_rate,
        max_frame_bytes=settings.socket_request_max_bytes,
        backlog=settings.socket_listen_backlog_size,
        send_buffer_bytes=_if_set(
            settings, "socket.send.buffer.bytes", settings.socket_send_buffer_bytes
        ),
        receive_buffer_bytes=_if_set(
            settings, "socket.receive.buffer.bytes", settings.socket_receive_buffer_bytes
        ),
    )


def _if_set(settings: BrokerSettings, name: str, value: int) -> int:
    """A buffer's size, or -1: Kafka's defaults are smaller than what the operating system finds out by itself."""
    return value if settings.is_set(name) else -1


def controller_settings(settings: BrokerSettings) -> ControllerSettings:
    """The settings that a controller on this broker goes by."""
    defaults = settings.topic_defaults
    return ControllerSettings(
        num_partitions=settings.num_partitions,
        default_replication_factor=settings.default_replication_factor,
        min_insync_replicas=defaults.min_insync_replicas,
        unclean_leader_election_enable=defaults.unclean_leader_election_enable,
    )


def group_settings(settings: BrokerSettings) -> GroupSettings:
    """The settings that the group coordinator goes by."""
    return GroupSettings(
        min_session_timeout_ms=settings.group_min_session_timeout_ms,
        max_session_timeout_ms=settings.group_max_session_timeout_ms,
        max_size=settings.group_max_size,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=settings.offsets_retention_check_interval_ms,
        offsets_commit_timeout_ms=settings.offsets_commit_timeout_ms,
    )
