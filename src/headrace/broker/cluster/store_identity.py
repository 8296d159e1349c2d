"""Whether the coordination store belongs to the cluster that the log directories name. Only reads.

A broker that takes part in a cluster which does not know its topics puts every log aside. So a broker whose directories belong to
a cluster starts only against the store of that cluster, and says what to check before it has changed anything.
"""

from pathlib import Path
from typing import Final

from headrace.coordination.membership import known_cluster_id
from headrace.coordination.store import Store
from headrace.errors import DiskFailed, HeadraceError
from headrace.log.clean_run import CLEAN_SHUTDOWN_FILE, CleanRun
from headrace.log.files.disk import Disk
from headrace.log.files.meta_properties import META_PROPERTIES_FILE, check_node_id, read_cluster_id
from headrace.log.log_dirs import parse_directory_name
from headrace.settings.broker_settings import BrokerSettings

STORE_FILE: Final = "coordination.sqlite"


class WrongStore(HeadraceError):
    """The store is not that of the cluster to which the log directories belong."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}. {hint}")
        self.what = what
        self.hint = hint


def cluster_of_directories(disk: Disk, settings: BrokerSettings) -> str | None:
    """The cluster that the log directories name; None if all of them are new. Raises WrongStore, SettingError.

    A directory that cannot be read says nothing here; it goes offline when it is opened.
    """
    named: dict[str, str] = {}
    for directory in settings.log_dirs:
        try:
            check_node_id(disk, directory, settings.node_id)
            cluster = read_cluster_id(disk, directory)
            if cluster is None:
                marker = disk.read_bytes(f"{directory}/{CLEAN_SHUTDOWN_FILE}")
                cluster = CleanRun.decode(marker).cluster_id or None
        except DiskFailed:
            continue
        if cluster is not None:
            named[cluster] = directory
    if len(named) > 1:
        raise WrongStore(
            "the log directories belong to different clusters: "
            + ", ".join(f"{path} to {cluster}" for cluster, path in named.items()),
            "Leave only those of one cluster in log.dirs. Nothing has been changed",
        )
    return next(iter(named), None)


def refuse_missing_file(settings: BrokerSettings, cluster: str | None) -> None:
    """Called before the embedded store creates a new file. Raises WrongStore."""
    if cluster is None or settings.zookeeper_connect is not None:
        return
    path = Path(settings.log_dirs[0], STORE_FILE)
    if not path.exists() or path.stat().st_size == 0:
        raise _without_cluster(settings, cluster)


async def refuse_wrong_store(
    store: Store, disk: Disk, settings: BrokerSettings, cluster: str | None
) -> None:
    """Called before anything is written to the store or to the disk. Raises WrongStore."""
    found = await known_cluster_id(store)
    if cluster is None:
        if found is None:
            _refuse_nameless_logs(disk, settings)
    elif found is None:
        raise _without_cluster(settings, cluster)
    elif found != cluster:
        raise WrongStore(
            f"the log directories belong to the cluster {cluster}, but {_where(settings)} holds the cluster {found}",
            _what_to_check(settings),
        )


def _without_cluster(settings: BrokerSettings, cluster: str) -> WrongStore:
    return WrongStore(
        f"the log directories belong to the cluster {cluster}, but {_where(settings)} holds no cluster",
        _what_to_check(settings),
    )


def _refuse_nameless_logs(disk: Disk, settings: BrokerSettings) -> None:
    """Logs without `meta.properties` in a new cluster: that cluster would put them aside."""
    for directory in settings.log_dirs:
        try:
            names = disk.list_directories(directory) if disk.exists(directory) else []
        except DiskFailed:
            continue
        log = next((name for name in names if parse_directory_name(name) is not None), None)
        if log is not None:
            raise WrongStore(
                f"{directory} holds logs ({log}), but no {META_PROPERTIES_FILE} names their cluster,"
                f" and {_where(settings)} holds no cluster that could know them",
                _what_to_check(settings),
            )


def _where(settings: BrokerSettings) -> str:
    if settings.zookeeper_connect is None:
        return str(Path(settings.log_dirs[0], STORE_FILE))
    return f"the ZooKeeper at {settings.zookeeper_connect}"


def _what_to_check(settings: BrokerSettings) -> str:
    if settings.zookeeper_connect is not None:
        return (
            "Nothing has been changed. Check zookeeper.connect with its path (the chroot), and that ZooKeeper has its data."
            " If that is lost, restore it from a backup (docs/operating/cluster.md, a lost store)"
        )
    return (
        f"Nothing has been changed. If the cluster has a ZooKeeper, set zookeeper.connect. If not, check that {STORE_FILE} is where"
        " it was: in the first of log.dirs."
        " If it is lost for good, 'headrace storage recover --without-zookeeper' makes one from the log directories"
        " (docs/operating/cluster.md, a lost store)"
    )
