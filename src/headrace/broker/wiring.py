"""Constructs every part of a broker once, and gives each its dependencies. Starting and stopping is `main`'s."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from headrace.broker import api_table
from headrace.broker.cluster.cluster_counts import ClusterCounts
from headrace.broker.cluster.cluster_feed import ClusterFeed, FeedListener
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.config_rules import SettingRules
from headrace.broker.cluster.controller_call import ask_controller
from headrace.broker.cluster.controller_link import ControllerLink
from headrace.broker.cluster.dead_broker_removal import DeadBrokerRemoval
from headrace.broker.cluster.dynamic_settings import DynamicSettings
from headrace.broker.cluster.leader_balance import LeaderBalance
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.partition_leaders import PartitionLeaders
from headrace.broker.cluster.producer_ids import ProducerIds
from headrace.broker.cluster.topic_creation import TopicCreation
from headrace.broker.coordinators.coordinator_table import (
    CoordinatorEntry,
    CoordinatorTable,
    KeyType,
)
from headrace.broker.coordinators.marker_senders import MarkerSenders, marker_sender_client_id
from headrace.broker.coordinators.marker_sending import MarkerSending
from headrace.broker.environment import Environment
from headrace.broker.fetching.fetch_sessions import FetchSessions
from headrace.broker.lifecycle import Lifecycle
from headrace.broker.net.busy_poll import BusyPoll
from headrace.broker.net.listener import (
    ConnectionCounts,
    ConnectionLimits,
    ListenerContext,
    OpenListener,
)
from headrace.broker.net.memory_budget import MemoryBudget
from headrace.broker.pages.http_pages import http_pages
from headrace.broker.pages.metrics_page import MetricsSources
from headrace.broker.replicas.epoch_raising import EpochRaising
from headrace.broker.replicas.fetch_loops import FetchLoops
from headrace.broker.replicas.isr_updates import IsrUpdates
from headrace.broker.replicas.log_start_sync import LogStartSync
from headrace.broker.replicas.offline_replica_reports import OfflineReplicaReports
from headrace.broker.replicas.replica_hosting import ReplicaHosting
from headrace.broker.replicas.replica_moves import ReplicaMoves
from headrace.broker.replicas.replica_throttle import ReplicaThrottle
from headrace.broker.replicas.role_application import PARTITIONS_PER_SLICE, RoleApplication
from headrace.broker.requests.dispatch import Dispatcher
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_metrics import RequestMetrics
from headrace.broker.requests.request_steps import RequestSteps
from headrace.broker.requests.txn_verification import TxnVerification
from headrace.broker.telemetry.http_endpoint import HttpEndpoint
from headrace.broker.telemetry.traffic import Traffic
from headrace.broker.upkeep.cleaner import Cleaner
from headrace.broker.upkeep.housekeeping import Housekeeping
from headrace.controller.changes import ChangeBatch
from headrace.controller.core import ControllerSettings
from headrace.controller.driver import ControllerDriver
from headrace.controller.features import TRANSACTION_VERSION
from headrace.controller.producer_ids import AllocateProducerIds, ProducerIdBlock
from headrace.coordination.store import Store
from headrace.coordinator.coordinator_type import CoordinatorHost
from headrace.coordinator.group.groups import Groups, group_coordinator
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.transaction.settings import TransactionSettings
from headrace.coordinator.transaction.transactions import (
    TransactionRuntime,
    Transactions,
    transaction_coordinator,
)
from headrace.errors import DiskFailed
from headrace.ids import ProducerId
from headrace.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.wire.refusal import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerInputs:
    """What a broker starts from."""

    settings: BrokerSettings
    environment: Environment
    store: Store
    log_dirs: LogDirs
    cluster_id: str
    tasks: asyncio.TaskGroup
    broker_epoch: Callable[[], int]
    on_topics_deleted: Callable[[list[tuple[str, UUID]], list[str]], None]


class BrokerComponents:
    """The components of one broker, wired but not started. Each step uses the components of the steps before it."""

    def __init__(self, inputs: BrokerInputs) -> None:
        self._make_state(inputs)
        self._make_controller(inputs)
        self._make_coordinators(inputs)
        self._make_replicas(inputs)
        self._make_listeners(inputs)
        self._make_pages(inputs)
        self._make_background(inputs)

    def _make_state(self, inputs: BrokerInputs) -> None:
        settings, environment = inputs.settings, inputs.environment
        self._max_connections = environment.max_connections
        self.log_dirs = inputs.log_dirs
        self.live_settings = LiveSettings(settings)
        self.lifecycle = Lifecycle()
        self.partitions = PartitionTable()
        self.traffic = Traffic()
        self.request_metrics = RequestMetrics()
        self.counts = ClusterCounts()
        self.sessions = FetchSessions(
            settings.max_incremental_fetch_session_cache_slots,
            new_id=partial(environment.chance.randrange, 1, 2**31),
        )
        self.budget = MemoryBudget(settings.request_memory_bytes)
        self.connections = ConnectionCounts(connection_limits(settings, self._max_connections))
        self.live_settings.listen(self._limit_connections)
        self.cluster = ClusterView(
            settings.node_id,
            inputs.cluster_id,
            tells_dialled_address=settings.advertised_listeners is None,
        )
        self.dead_broker_removal = DeadBrokerRemoval(
            self.cluster,
            inputs.store,
            settings.inter_broker_listener.name,
            environment.network.refuses_connections,
            is_on=settings.zookeeper_connect is not None
            and settings.headrace_failover_on_refused_connection,
        )
        self.leader_throttle = ReplicaThrottle(
            self.cluster,
            environment.clock,
            lambda: self.live_settings.current.leader_replication_throttled_rate,
            replicas_key="leader.replication.throttled.replicas",
        )
        self.follower_throttle = ReplicaThrottle(
            self.cluster,
            environment.clock,
            lambda: self.live_settings.current.follower_replication_throttled_rate,
            replicas_key="follower.replication.throttled.replicas",
        )

    def _make_controller(self, inputs: BrokerInputs) -> None:
        settings, environment = inputs.settings, inputs.environment
        self.driver = ControllerDriver(
            inputs.store,
            settings.node_id,
            cluster=inputs.cluster_id,
            config_rules=SettingRules(self.live_settings, self.cluster),
            settings=controller_settings(settings),
            clock=environment.clock,
            new_topic_id=environment.new_topic_id,
            random_below=environment.chance.randrange,
        )
        self.controller = ControllerLink(
            self.driver,
            inputs.store,
            settings.node_id,
            settings.inter_broker_listener.name,
            environment.network.connect,
            self.dead_broker_removal.connection_broke,
        )
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.broker_epoch = inputs.broker_epoch
        self.topic_creation = TopicCreation(self.controller, self.live_settings, self.cluster)

    def _make_coordinators(self, inputs: BrokerInputs) -> None:
        environment = inputs.environment
        host = CoordinatorHost(
            wall_clock_ms=environment.clock,
            spawn=inputs.tasks.create_task,
            lease=inputs.store.lease,
        )
        group_runtime = CoordinatorRuntime(
            group_coordinator(group_settings(inputs.settings)),
            host,
            partition_count=self._offsets_partitions,
        )
        self.groups = Groups(group_runtime, new_uuid=lambda: str(environment.new_uuid()))
        transaction_runtime = self._make_transactions(inputs, host)
        self.coordinators = CoordinatorTable(
            CoordinatorEntry(
                key_type=KeyType.GROUP,
                runtime=group_runtime,
                codec=lambda: self.live_settings.current.offsets_topic_compression_codec,
            ),
            CoordinatorEntry(
                key_type=KeyType.TRANSACTION, runtime=transaction_runtime, codec=lambda: 0
            ),
        )

    def _make_transactions(self, inputs: BrokerInputs, host: CoordinatorHost) -> TransactionRuntime:
        settings = inputs.settings
        leaders = PartitionLeaders(
            self.cluster,
            settings.inter_broker_listener.name,
            inputs.environment.network.connect,
            client_id=marker_sender_client_id(settings.node_id),
        )
        self.marker_sending = MarkerSending(
            leaders, inputs.tasks.create_task, timeout_s=settings.request_timeout_ms / 1_000
        )
        runtime = CoordinatorRuntime(
            transaction_coordinator(
                transaction_settings(settings),
                write_markers=self.marker_sending.write,
                transaction_version=lambda: self.cluster.state.features.get(TRANSACTION_VERSION, 0),
            ),
            host,
            partition_count=self._transaction_partitions,
        )
        self.transactions = Transactions(runtime, next_producer_id=self._next_producer_id)
        return runtime

    def _make_replicas(self, inputs: BrokerInputs) -> None:
        environment = inputs.environment
        self.fetch_loops = FetchLoops(
            self.cluster,
            inputs.settings,
            inputs.broker_epoch,
            self.follower_throttle,
            environment.clock,
            inputs.tasks,
            environment.network.connect,
            self.dead_broker_removal.connection_broke,
        )
        self.log_start_sync = LogStartSync(self._write_checkpoints)
        self.log_start_sync.written.add(self.fetch_loops.tell_log_starts)
        self.fetch_loops.on_log_start_moved = self.log_start_sync.request
        self.isr_updates = IsrUpdates(
            self.cluster,
            self.partitions,
            self.controller,
            self.live_settings,
            inputs.broker_epoch,
            environment.clock,
        )
        self.replica_hosting = ReplicaHosting(
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=inputs.log_dirs,
            coordinators=self.coordinators,
            fetchers=self.fetch_loops,
            live_settings=self.live_settings,
            traffic=self.traffic,
            clock=environment.clock,
            broker_epoch=inputs.broker_epoch,
            on_topics_deleted=inputs.on_topics_deleted,
            new_at_once=PARTITIONS_PER_SLICE,
            lease=inputs.store.lease,
        )
        self.role_application = RoleApplication(self.replica_hosting)
        self.controller.after_creation = self.role_application.all_applied
        self._make_feed()
        self.replica_moves = ReplicaMoves(
            log_dirs=inputs.log_dirs,
            partitions=self.partitions,
            live_settings=self.live_settings,
            clock=environment.clock,
            workers=environment.workers,
            new_id=environment.new_uuid,
            on_disk_failed=self.replica_hosting.take_offline,
            write_checkpoints=self._write_checkpoints,
        )

    def _make_feed(self) -> None:
        """Who hears of the controller's changes, and in which order."""
        self.is_in_cluster_state = asyncio.Event()
        self.feed = ClusterFeed(
            self.cluster,
            before=(FeedListener("count changes of ISR and leaders", self._count_changes),),
            after=(
                # Before the roles, because a new log is created under the settings that are in force.
                FeedListener(
                    "apply dynamic configs of brokers",
                    DynamicSettings(self.cluster, self.live_settings).hear,
                ),
                FeedListener("host replicas and give them roles", self.role_application.apply),
                # Last: clients are served only after the roles of the first cluster state are applied.
                FeedListener("note that the state has this broker", self._note_registration),
            ),
        )

    def _count_changes(self, batch: ChangeBatch) -> None:
        self.counts.note_changes(self.cluster.broker_id, self.cluster.state, batch)

    def _note_registration(self, _: ChangeBatch) -> None:
        if self.replica_hosting.is_registered:
            self.is_in_cluster_state.set()

    def _make_listeners(self, inputs: BrokerInputs) -> None:
        environment = inputs.environment
        self.txn_verification = TxnVerification(
            self.cluster,
            self.live_settings,
            environment.network.connect,
            environment.monotonic,
            inputs.tasks.create_task,
        )
        dependencies = {
            "clock": environment.clock,
            "cluster": self.cluster,
            "controller": self.controller,
            "coordinators": self.coordinators,
            "dead_broker_removal": self.dead_broker_removal,
            "driver": self.driver,
            "fetch_max_bytes": inputs.settings.fetch_max_bytes,
            "groups": self.groups,
            "leader_throttle": self.leader_throttle,
            "live_settings": self.live_settings,
            "log_dirs": inputs.log_dirs,
            "log_start_sync": self.log_start_sync,
            "long_work": LongWork(environment.workers, environment.monotonic),
            "marker_senders": MarkerSenders(
                lambda broker_id: broker_id in self.cluster.state.brokers
            ),
            "metadata_cache": MetadataCache(),
            "advertised_apis": api_table.advertised(),
            "partitions": self.partitions,
            "producer_ids": self.producer_ids,
            "replica_moves": self.replica_moves,
            "sessions": self.sessions,
            "topic_creation": self.topic_creation,
            "transactions": self.transactions,
            "traffic": self.traffic,
            "txn_verification": self.txn_verification,
        }
        self.dispatch = Dispatcher(
            api_table.bind(dependencies),
            self.request_metrics,
            environment.monotonic,
            RequestSteps(),
        )
        longest_s = inputs.settings.headrace_busy_poll_us / 1_000_000
        busy_poll = BusyPoll(
            asyncio.get_running_loop().call_soon,
            longest_s,
            clock=environment.monotonic,
            cpu_clock=environment.cpu_clock,
        )
        context = ListenerContext(
            network=environment.network,
            dispatch=self.dispatch,
            budget=self.budget,
            counts=self.connections,
            busy_poll=busy_poll,
            monotonic=environment.monotonic,
            tasks=inputs.tasks,
        )
        among_brokers = inputs.settings.inter_broker_listener.name
        self.listeners = [
            OpenListener(listener, context, is_inter_broker=listener.name == among_brokers)
            for listener in inputs.settings.listeners
        ]

    def _make_pages(self, inputs: BrokerInputs) -> None:
        environment = inputs.environment
        sources = MetricsSources(
            lifecycle=self.lifecycle,
            live_settings=self.live_settings,
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=inputs.log_dirs,
            traffic=self.traffic,
            requests=self.request_metrics,
            connections=self.connections,
            memory=self.budget,
            fetch_sessions=self.sessions,
            counts=self.counts,
            max_replica_lag=lambda: self.fetch_loops.max_lag,
            process=environment.process_stats,
            coordinator_faults=self.coordinators.faults,
            groups=self.groups,
            transactions=self.transactions,
            marker_sending=self.marker_sending,
            verifications=self.txn_verification.counts,
            group_progress=self.groups.progress,
            uncleanable_logs=lambda: self.cleaner.uncleanable,
        )
        pages = http_pages(sources, environment.clock)
        self.http = HttpEndpoint(
            inputs.settings.headrace_http_listeners, pages, environment.network.listen_for_streams
        )

    def _make_background(self, inputs: BrokerInputs) -> None:
        environment = inputs.environment
        self.leader_balance = LeaderBalance(self.driver, self.live_settings)
        self.epoch_raising = EpochRaising(
            self.cluster,
            self.replica_hosting,
            self.controller,
            inputs.broker_epoch,
            environment.clock,
        )
        self.offline_replica_reports = OfflineReplicaReports(
            self.cluster,
            self.partitions,
            inputs.log_dirs,
            self.controller,
            inputs.broker_epoch,
            all_roles_applied=lambda: not self.replica_hosting.has_queued_roles,
        )
        self.cleaner = Cleaner(
            self.partitions,
            inputs.log_dirs,
            self.live_settings,
            environment.clock,
            on_disk_failed=self._on_disk_failed,
            run_job=environment.run_compaction,
        )
        self.housekeeping = Housekeeping(
            log_dirs=inputs.log_dirs,
            partitions=self.partitions,
            live_settings=self.live_settings,
            clock=environment.clock,
            workers=environment.workers,
            on_disk_failed=self._on_disk_failed,
            close_idle_connections=self._close_idle_connections,
            retry_after_full_disk=self.replica_hosting.retry_after_full_disk,
        )

    async def _allocate_producer_ids(self) -> ProducerIdBlock:
        return await self.controller.ask(
            AllocateProducerIds(broker_id=self.cluster.broker_id, broker_epoch=self.broker_epoch())
        )

    async def _write_checkpoints(self) -> None:
        await self.housekeeping.checkpoint()

    async def _next_producer_id(self) -> ProducerId | None:
        producer_id = await ask_controller(self.producer_ids.next_id())
        if producer_id is None or isinstance(producer_id, Refusal):
            return None
        return ProducerId(producer_id)

    def _transaction_partitions(self) -> int:
        topic = self.cluster.state.topics.get(TRANSACTION_STATE)
        if topic is None:
            return self.live_settings.current.transaction_state_log_num_partitions
        return len(topic.partitions)

    def _offsets_partitions(self) -> int:
        topic = self.cluster.state.topics.get(CONSUMER_OFFSETS)
        if topic is None:
            return self.live_settings.current.offsets_topic_num_partitions
        return len(topic.partitions)

    def _on_disk_failed(self, log: PartitionLog, error: DiskFailed) -> None:
        self.replica_hosting.take_offline(log.topic_partition, error)

    def _limit_connections(self, settings: BrokerSettings) -> None:
        self.connections.limits = connection_limits(settings, self._max_connections)

    def _close_idle_connections(self) -> None:
        for listener in self.listeners:
            listener.close_idle()


def connection_limits(settings: BrokerSettings, max_connections: int) -> ConnectionLimits:
    """The settings that bound connections, of which the operating system allows `max_connections`."""
    return ConnectionLimits(
        # A connection past that share would take the descriptor that a log needs for its next write.
        max_connections=min(settings.max_connections, max_connections),
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


def transaction_settings(settings: BrokerSettings) -> TransactionSettings:
    """The settings that the transaction coordinator goes by."""
    return TransactionSettings(
        max_timeout_ms=settings.transaction_max_timeout_ms,
        abort_check_interval_ms=settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        id_expiration_ms=settings.transactional_id_expiration_ms,
        expiry_check_interval_ms=settings.transaction_remove_expired_transaction_cleanup_interval_ms,
        commit_timeout_ms=settings.request_timeout_ms,
    )
