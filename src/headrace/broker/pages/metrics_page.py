"""The page of metrics: every family, in order, as text in Prometheus' format. Pure but for `MetricsSources.process`.

Owns nothing that is counted: it reads the counters of others when asked. Names are those of Kafka's JMX metrics as the
public rules of the JMX exporter write them, and those of kafka_exporter; `docs/metrics.md` lists them.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import headrace
from headrace.broker.cluster.cluster_counts import ClusterCounts
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.fetching.fetch_sessions import FetchSessions
from headrace.broker.lifecycle import Lifecycle
from headrace.broker.net.listener import ConnectionCounts
from headrace.broker.net.memory_budget import MemoryBudget
from headrace.broker.pages import partition_families as partitions
from headrace.broker.pages import traffic_families as traffic
from headrace.broker.pages.cluster_families import cluster_count_families
from headrace.broker.pages.exposition import family, in_pieces, labels, single
from headrace.broker.pages.group_families import (
    GroupCounts,
    ReadProgress,
    group_count_families,
    progress_families,
)
from headrace.broker.pages.process_families import process_families
from headrace.broker.pages.process_stats import ProcessStats
from headrace.broker.pages.recent_window import RecentWindow
from headrace.broker.pages.transaction_families import (
    MarkerCounts,
    TransactionCounts,
    transaction_families,
    verification_families,
)
from headrace.broker.requests.request_metrics import RequestMetrics
from headrace.broker.requests.txn_verification import VerificationCounts
from headrace.broker.telemetry.traffic import Traffic
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition_table import PartitionTable
from headrace.settings.live_settings import LiveSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSources:
    """Where the figures come from. Without groups, transactions or progress their families are left out."""

    lifecycle: Lifecycle
    live_settings: LiveSettings
    cluster: ClusterView
    partitions: PartitionTable
    log_dirs: LogDirs
    traffic: Traffic
    requests: RequestMetrics
    connections: ConnectionCounts
    memory: MemoryBudget
    fetch_sessions: FetchSessions
    counts: ClusterCounts
    max_replica_lag: Callable[[], int]
    process: Callable[[], ProcessStats]
    coordinator_faults: Callable[[], Collection[str]] = tuple
    groups: GroupCounts | None = None
    group_progress: ReadProgress | None = None
    transactions: TransactionCounts | None = None
    marker_sending: MarkerCounts | None = None
    verifications: VerificationCounts | None = None
    uncleanable_logs: Callable[[], Collection[PartitionLog]] = tuple


class _Totals(NamedTuple):
    """What is compared with its value of a minute ago."""

    times: traffic.TimesByPhase
    loop_cpu_seconds: float
    verifications: tuple[int, ...]


class MetricsPage:
    """Remembers a little of the past, so that it can say how things are lately."""

    def __init__(self, sources: MetricsSources, now_ms: int) -> None:
        self._sources = sources
        self._window = RecentWindow(self._totals, now_ms)

    def pieces(self, now_ms: int) -> Iterator[str]:
        """The page, piece by piece, some of them empty: other work may be done between two of them."""
        return in_pieces(self._lines(now_ms))

    def _totals(self) -> _Totals:
        times = traffic.times_by_phase(self._sources.requests)
        verifications = self._sources.verifications
        buckets = () if verifications is None else tuple(verifications.times.buckets)
        return _Totals(times, self._sources.process().loop_cpu_seconds, buckets)

    def _lines(self, now_ms: int) -> Iterator[str]:
        sources = self._sources
        process = sources.process()
        since_ms, earlier = self._window.beginning(now_ms)
        cpu_seconds = process.loop_cpu_seconds - earlier.loop_cpu_seconds
        yield from _broker_families(sources, _idle_share(cpu_seconds, now_ms - since_ms))
        yield from traffic.topic_families(sources.traffic)
        yield from traffic.request_families(sources.requests, earlier.times)
        yield from traffic.connection_families(sources.connections, sources.memory)
        yield from traffic.fetch_session_families(sources.fetch_sessions)
        yield from partitions.log_dir_families(sources.log_dirs)
        yield from partitions.cleaner_families(sources.log_dirs, sources.uncleanable_logs())
        broker_id, cluster = sources.cluster.broker_id, sources.cluster.state
        has_store = sources.counts.store_away_since_ms is None
        yield from partitions.controller_families(broker_id, cluster, has_store=has_store)
        yield from cluster_count_families(sources.counts)
        known = partitions.PartitionPicture(broker_id, cluster, sources.partitions)
        yield from known.gather()
        yield from partitions.replica_families(known)
        max_timeout_ms = sources.live_settings.current.transaction_max_timeout_ms
        yield from partitions.late_transaction_families(known, now_ms, max_timeout_ms)
        yield from partitions.follower_families(sources.max_replica_lag())
        yield from partitions.unfollowable_families(known)
        yield from partitions.cluster_families(broker_id, cluster, known)
        if sources.groups is not None:
            yield from group_count_families(sources.groups)
        if sources.transactions is not None and sources.marker_sending is not None:
            yield from transaction_families(sources.transactions, sources.marker_sending)
        if sources.verifications is not None:
            yield from verification_families(sources.verifications, earlier.verifications)
        if sources.group_progress is not None:
            yield from progress_families(sources.group_progress, sources.partitions)
        yield from process_families(process)


def _idle_share(cpu_seconds: float, elapsed_ms: int) -> float:
    """How much of the time the event loop had nothing to do, from 0 to 1."""
    if elapsed_ms <= 0:
        return 1.0
    return round(min(1.0, max(0.0, 1.0 - cpu_seconds * 1_000 / elapsed_ms)), 4)


def _broker_families(sources: MetricsSources, idle_share: float) -> Iterator[str]:
    cluster = sources.cluster
    yield from family(
        "headrace_info",
        "gauge",
        "1, with the version and the broker's identity.",
        [
            (
                labels(
                    version=headrace.__version__,
                    broker_id=cluster.broker_id,
                    cluster_id=cluster.cluster_id,
                ),
                1,
            )
        ],
    )
    yield from single(
        "kafka_server_kafkaserver_brokerstate",
        "gauge",
        "1 starting, 2 recovering logs, 3 running, 6 handing over, 7 shutting down.",
        int(sources.lifecycle.state),
    )
    yield from single(
        "headrace_rejected_settings",
        "gauge",
        "Dynamic configs that break a rule on this broker and are not in force; /healthz names them.",
        len(sources.live_settings.rejected),
    )
    # One event loop does what Kafka's two pools of threads do: the same figure under both names.
    for name in (
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    ):
        text = "Share of the last minute or two that the event loop was idle, 0 to 1."
        yield from single(name, "gauge", text, idle_share)
