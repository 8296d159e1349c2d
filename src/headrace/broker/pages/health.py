"""Whether the broker serves, and if not, why (pure)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from headrace.broker.cluster.cluster_counts import ClusterCounts
from headrace.broker.lifecycle import BrokerState, Lifecycle
from headrace.controller.cluster_state import ClusterState
from headrace.coordination.store import SessionState
from headrace.errors import DiskFailed
from headrace.log.log_dirs import LogDirs
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable

_MOST_NAMED: Final = 5  # partitions of one directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`status` is `serving`, or what keeps the broker from it; `reasons` also names what is wrong while it serves."""

    status: str
    reasons: tuple[str, ...] = ()

    @property
    def is_serving(self) -> bool:
        """Whether clients should be sent here."""
        return self.status == "serving"


def check_health(lifecycle: Lifecycle, log_dirs: LogDirs, problems: Iterable[str] = ()) -> Health:
    """The broker as it is right now. `problems`: a sentence for each that does not keep the broker from serving."""
    reasons = (
        *(f"log directory {path} is offline: {why}" for path, why in log_dirs.offline.items()),
        *problems,
    )
    if lifecycle.state != BrokerState.RUNNING:
        return Health(status=lifecycle.state.name.lower(), reasons=reasons)
    if not log_dirs.online:
        return Health(status="no_log_directory", reasons=reasons)
    return Health(status="serving", reasons=reasons)


def store_problems(counts: ClusterCounts) -> Iterator[str]:
    """A coordination store that does not answer."""
    since_ms = counts.store_away_since_ms
    if since_ms is None:
        return
    if counts.session_state is SessionState.SUSPENDED:
        writes = "leaders here take writes until the session may have ended"
    else:
        writes = "leaders here take no writes"
    yield (
        f"the coordination store (zookeeper.connect) has not answered since {_utc(since_ms)}: {writes}, reads are served, topics and"
        " configs cannot be changed. Bring ZooKeeper back with its data, and the broker goes on by itself;"
        " docs/operating/README.md, ZooKeeper is lost"
    )


def full_disk_problems(log_dirs: LogDirs, partitions: PartitionTable) -> Iterator[str]:
    """Directories on full disks, and which appends they have refused."""
    refusing: dict[str, list[Partition]] = {}
    for partition in partitions:
        if partition.disk_full_since_ms is not None:
            refusing.setdefault(partition.log.directory.rpartition("/")[0], []).append(partition)
    for directory in log_dirs.online:
        refused = refusing.get(directory.path)
        if not refused:
            continue
        since_ms = min(partition.disk_full_since_ms or 0 for partition in refused)
        named = ", ".join(str(each.topic_partition) for each in refused[:_MOST_NAMED])
        others = f" and {len(refused) - _MOST_NAMED} more" if len(refused) > _MOST_NAMED else ""
        try:
            free = f"{log_dirs.usage(directory).usable_bytes:,} bytes are free now"
        except DiskFailed as error:
            free = f"the free space cannot be told: {error}"
        yield (
            f"log directory {directory.path} is full since {_utc(since_ms)}: appends to {named}{others} were refused, and are"
            f" accepted again when there is room; {free}. Reads are served; docs/operating/README.md, the disk is full"
        )


def _utc(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms // 1000, UTC).isoformat()


def replica_problems(partitions: PartitionTable) -> Iterator[str]:
    """Replicas that do not follow their leader."""
    for partition in partitions:
        if partition.unfollowable is not None:
            yield f"{partition.topic_partition} {partition.unfollowable}"


def topic_problems(state: ClusterState) -> Iterator[str]:
    """Topics whose nodes in the coordination store make no sense."""
    for name, fault in state.unreadable_topics.items():
        yield (
            f"topic {name} has no leaders, because its state in the coordination store cannot be read: {fault};"
            " its logs are left as they are; docs/operating/cluster.md says how to repair it"
        )
