"""Partitions: those hosted here, and the cluster as its controller sees it (pure).

In a cluster every broker has a page, and dashboards add them up. So each fact stands on one page only: what concerns a
partition on its leader's, what concerns the cluster on the controller's, and the size of a replica on its own broker's.
A page is made in pieces between which the broker goes on, so everything iterated over here is a list of our own.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from headrace.broker.pages.exposition import escape, family, labels, single
from headrace.controller.cluster_state import ClusterState
from headrace.controller.values import NO_LEADER, PartitionState
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable

# What Kafka grants the coordinator beyond the longest timeout before a transaction counts as hanging.
_LATE_TRANSACTION_BUFFER_MS: Final = 5 * 60_000


class Hosted(NamedTuple):
    """A replica on this broker, with what the cluster says about its partition."""

    labels: str
    partition: Partition
    replicas: int
    in_sync: int
    needed_in_sync: int
    """min.insync.replicas, as far as there are so many replicas at all."""
    is_reassigning: bool


class PartitionPicture:
    """All partitions that a page speaks about."""

    __slots__ = ("_broker_id", "_cluster", "_table", "assigned", "hosted", "led", "shown")

    def __init__(self, broker_id: int, cluster: ClusterState, table: PartitionTable) -> None:
        self._broker_id = broker_id
        self._cluster = cluster
        self._table = table
        self.hosted: list[Hosted] = []
        self.led: list[Hosted] = []
        # Of the whole cluster: those led here and, on the controller, those that nobody leads.
        self.shown: list[tuple[str, PartitionState]] = []
        self.assigned = 0  # replicas that should be here

    def gather(self) -> Iterator[str]:
        """Fill the picture. Yields empty lines, so that a page may be interrupted here too."""
        for partition in list(self._table):
            self._add_hosted(partition)
            yield ""
        speaks_for = {self._broker_id}
        if self._cluster.controller_id == self._broker_id:
            speaks_for.add(NO_LEADER)
        for topic in list(self._cluster.topics.values()):
            name = escape(topic.name)
            for index, state in enumerate(topic.partitions):
                self.assigned += self._broker_id in state.replicas
                if state.leader in speaks_for:
                    self.shown.append((_labels(name, index), state))
                yield ""

    def _add_hosted(self, partition: Partition) -> None:
        topic, index = partition.topic_partition
        state = self._cluster.partition(topic, index)
        if state is None:
            return
        replicas = len(state.replicas)
        row = Hosted(
            _labels(escape(topic), index),
            partition,
            replicas,
            len(state.isr),
            state.needed_isr,
            state.is_reassigning,
        )
        self.hosted.append(row)
        if partition.is_leader:
            self.led.append(row)


def _labels(escaped_topic: str, index: int) -> str:
    return f'{{topic="{escaped_topic}",partition="{index}"}}'


# ---- replicas on this broker

_LOG_FAMILIES: Final[tuple[tuple[str, str, Callable[[Hosted], int]], ...]] = (
    ("size", "Bytes of a log on disk.", lambda row: row.partition.log.size),
    ("numlogsegments", "Segments of a log.", lambda row: len(row.partition.log.segments)),
    ("logstartoffset", "First offset of a log.", lambda row: row.partition.log.log_start_offset),
    ("logendoffset", "Offset of the next record.", lambda row: row.partition.log.log_end_offset),
)

_LEADER_FAMILIES: Final[tuple[tuple[str, str, Callable[[Hosted], int]], ...]] = (
    ("replicascount", "Replicas of a partition.", lambda row: row.replicas),
    ("insyncreplicascount", "Replicas that are in sync.", lambda row: row.in_sync),
    (
        "underreplicated",
        "1 if not all replicas are in sync.",
        lambda row: int(row.in_sync < row.replicas),
    ),
    (
        "underminisr",
        "1 if fewer replicas are in sync than min.insync.replicas wants.",
        lambda row: int(row.in_sync < row.needed_in_sync),
    ),
    (
        "atminisr",
        "1 if just as many replicas are in sync as min.insync.replicas wants.",
        lambda row: int(row.in_sync == row.needed_in_sync),
    ),
    (
        "laststableoffsetlag",
        "Committed records that wait for a transaction to end.",
        lambda row: row.partition.high_watermark - row.partition.last_stable_offset,
    ),
)


def replica_families(known: PartitionPicture) -> Iterator[str]:
    """Counts over the replicas here, then each replica, then what a leader knows."""
    led, hosted = known.led, known.hosted
    under_replicated = sum(row.in_sync < row.replicas for row in led)
    under_min = sum(row.in_sync < row.needed_in_sync for row in led)
    at_min = sum(row.in_sync == row.needed_in_sync for row in led)
    offline = max(0, known.assigned - len(hosted))
    for name, text, value in (
        ("partitioncount", "Replicas on this broker.", len(hosted)),
        ("leadercount", "Partitions that this broker leads.", len(led)),
        (
            "offlinereplicacount",
            "Replicas that should be here and have no log that can be used.",
            offline,
        ),
        (
            "underreplicatedpartitions",
            "Partitions led here with replicas out of sync.",
            under_replicated,
        ),
        (
            "underminisrpartitioncount",
            "Partitions led here with fewer replicas in sync than min.insync.replicas.",
            under_min,
        ),
        (
            "atminisrpartitioncount",
            "Partitions led here with just min.insync.replicas in sync.",
            at_min,
        ),
        (
            "reassigningpartitions",
            "Partitions led here whose replicas are being moved.",
            sum(row.is_reassigning for row in led),
        ),
    ):
        yield from single(f"kafka_server_replicamanager_{name}", "gauge", text, value)
    for name, text, read in _LOG_FAMILIES:
        samples = ((row.labels, read(row)) for row in hosted)
        yield from family(f"kafka_log_log_{name}", "gauge", text, samples)
    for name, text, read in _LEADER_FAMILIES:
        samples = ((row.labels, read(row)) for row in led)
        yield from family(f"kafka_cluster_partition_{name}", "gauge", text, samples)


def late_transaction_families(
    known: PartitionPicture, now_ms: int, max_timeout_ms: int
) -> Iterator[str]:
    """Partitions whose transaction should have ended: its coordinator aborts what is older than the longest timeout."""
    yield from single(
        "kafka_server_replicamanager_partitionswithlatetransactionscount",
        "gauge",
        "Partitions led here with a transaction whose producer wrote last before transaction.max.timeout.ms and 5 minutes.",
        sum(_has_late_transaction(row.partition, now_ms - max_timeout_ms) for row in known.led),
    )


def _has_late_transaction(partition: Partition, earliest_ms: int) -> bool:
    written_ms = partition.log.producers.oldest_txn_timestamp
    return 0 < written_ms < earliest_ms - _LATE_TRANSACTION_BUFFER_MS


def follower_families(max_lag: int) -> Iterator[str]:
    """How far the replicas here are behind their leaders."""
    text = "Committed records that the replica furthest behind its leader lacks."
    samples = [(labels(clientId="Replica"), max_lag)]
    yield from family("kafka_server_replicafetchermanager_maxlag", "gauge", text, samples)


def unfollowable_families(known: PartitionPicture) -> Iterator[str]:
    """Replicas here that refuse their leader."""
    yield from single(
        "headrace_replicas_refusing_their_leader",
        "gauge",
        "Replicas here that do not follow, because their leader lacks committed records; /healthz names them.",
        sum(row.partition.unfollowable is not None for row in known.hosted),
    )


def log_dir_families(log_dirs: LogDirs) -> Iterator[str]:
    """Directories, and which of them failed."""
    yield from single(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "gauge",
        "Log directories that failed.",
        len(log_dirs.offline),
    )
    states = [(directory.path, 0) for directory in log_dirs.online]
    states += [(path, 1) for path in log_dirs.offline]
    yield from family(
        "kafka_log_logmanager_logdirectoryoffline",
        "gauge",
        "1 if a log directory failed.",
        [(labels(logDirectory=path), is_offline) for path, is_offline in sorted(states)],
    )


def cleaner_families(log_dirs: LogDirs, uncleanable: Collection[PartitionLog]) -> Iterator[str]:
    """Logs whose compaction failed, by the directory that they are in."""
    found = {
        directory.path: [
            log for log in uncleanable if directory.logs.get(log.topic_partition) is log
        ]
        for directory in log_dirs.online
    }
    yield from family(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "gauge",
        "Partitions whose compaction failed; it is tried again.",
        [(labels(logDirectory=path), len(logs)) for path, logs in sorted(found.items())],
    )
    yield from family(
        "kafka_log_logcleanermanager_uncleanable_bytes",
        "gauge",
        "Bytes of the partitions whose compaction failed.",
        [
            (labels(logDirectory=path), sum(log.size for log in logs))
            for path, logs in sorted(found.items())
        ],
    )


# ---- the cluster


def controller_families(broker_id: int, cluster: ClusterState, *, has_store: bool) -> Iterator[str]:
    """The cluster's counts on the controller's page; zeros on the others.

    A controller that does not reach the coordination store can decide nothing, and is not counted as active.
    """
    is_controller = cluster.controller_id == broker_id
    states = (
        [state for topic in cluster.topics.values() for state in topic.partitions]
        if is_controller
        else []
    )
    unpreferred = sum(state.leader != state.replicas[0] for state in states)
    for name, text, value in (
        (
            "activecontrollercount",
            "1 if this broker is the controller and reaches the coordination store.",
            int(is_controller and has_store),
        ),
        ("activebrokercount", "Brokers in the cluster.", len(cluster.brokers) * is_controller),
        ("globaltopiccount", "Topics in the cluster.", len(cluster.topics) * is_controller),
        ("globalpartitioncount", "Partitions in the cluster.", len(states)),
        (
            "offlinepartitionscount",
            "Partitions without a leader.",
            sum(state.leader == NO_LEADER for state in states),
        ),
        (
            "preferredreplicaimbalancecount",
            "Partitions not led by their first replica.",
            unpreferred,
        ),
    ):
        yield from single(f"kafka_controller_kafkacontroller_{name}", "gauge", text, value)


# The families below are those of kafka_exporter, which lag dashboards are made for.

_SHOWN_FAMILIES: Final[tuple[tuple[str, str, Callable[[PartitionState], int]], ...]] = (
    ("leader", "Broker that leads a partition, -1 if none does.", lambda state: state.leader),
    (
        "leader_is_preferred",
        "1 if the first replica leads.",
        lambda state: int(state.leader == state.replicas[0]),
    ),
    ("replicas", "Replicas of a partition.", lambda state: len(state.replicas)),
    ("in_sync_replica", "Replicas that are in sync.", lambda state: len(state.isr)),
    (
        "under_replicated_partition",
        "1 if not all replicas are in sync.",
        lambda state: int(len(state.isr) < len(state.replicas)),
    ),
)


def cluster_families(
    broker_id: int, cluster: ClusterState, known: PartitionPicture
) -> Iterator[str]:
    """Brokers and topics on the controller's page, each partition on its leader's."""
    if cluster.controller_id == broker_id:
        yield from _broker_and_topic_families(cluster)
    yield from family(
        "kafka_topic_partition_current_offset",
        "gauge",
        "High watermark of a partition.",
        ((row.labels, row.partition.high_watermark) for row in known.led),
    )
    yield from family(
        "kafka_topic_partition_oldest_offset",
        "gauge",
        "First offset of a partition.",
        ((row.labels, row.partition.log.log_start_offset) for row in known.led),
    )
    for name, text, read in _SHOWN_FAMILIES:
        samples = ((partition_labels, read(state)) for partition_labels, state in known.shown)
        yield from family(f"kafka_topic_partition_{name}", "gauge", text, samples)


def _broker_and_topic_families(cluster: ClusterState) -> Iterator[str]:
    yield from single("kafka_brokers", "gauge", "Brokers in the cluster.", len(cluster.brokers))
    addresses = [
        (broker.broker_id, f"{endpoint.host}:{endpoint.port}")
        for broker in cluster.brokers.values()
        for endpoint in broker.endpoints[:1]
    ]
    yield from family(
        "kafka_broker_info",
        "gauge",
        "1 for each broker, with its address.",
        [(labels(id=broker_id, address=address), 1) for broker_id, address in addresses],
    )
    yield from family(
        "kafka_topic_partitions",
        "gauge",
        "Partitions of a topic.",
        [(labels(topic=name), len(topic.partitions)) for name, topic in cluster.topics.items()],
    )
