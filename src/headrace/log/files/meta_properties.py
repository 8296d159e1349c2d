"""`meta.properties`: to which cluster and broker a log directory belongs, and what the directory itself is called."""

from typing import Final, NamedTuple
from uuid import UUID

from headrace.errors import SettingError
from headrace.ids import text_of_id
from headrace.log.files.disk import Disk

META_PROPERTIES_FILE: Final = "meta.properties"


class MetaProperties(NamedTuple):
    """Identity of one log directory."""

    cluster_id: str
    node_id: int
    directory_id: str


def claim_directory(
    disk: Disk, directory: str, *, cluster_id: str, node_id: int, new_directory_id: UUID
) -> MetaProperties:
    """Read the directory's identity, or give it one; also an id, if an old file has none. SettingError if it belongs to another broker or cluster."""
    path = f"{directory}/{META_PROPERTIES_FILE}"
    content = disk.read_bytes(path)
    if content is None:
        identity = MetaProperties(cluster_id, node_id, text_of_id(new_directory_id))
        disk.replace(path, _encode(identity))
        return identity
    identity = _decode(path, content, new_directory_id)
    _compare(path, "cluster.id", identity.cluster_id, cluster_id)
    _compare(path, "node.id", identity.node_id, node_id)
    if identity.directory_id == text_of_id(new_directory_id):
        disk.replace(path, _encode(identity))
    return identity


def read_cluster_id(disk: Disk, directory: str) -> str | None:
    """The cluster a directory says it belongs to; None for a new directory."""
    path = f"{directory}/{META_PROPERTIES_FILE}"
    content = disk.read_bytes(path)
    return None if content is None else _decode(path, content, UUID(int=0)).cluster_id


def check_node_id(disk: Disk, directory: str, node_id: int) -> None:
    """SettingError if the directory belongs to another broker."""
    path = f"{directory}/{META_PROPERTIES_FILE}"
    content = disk.read_bytes(path)
    if content is not None:
        _compare(path, "node.id", _decode(path, content, UUID(int=0)).node_id, node_id)


def _compare(path: str, name: str, theirs: object, ours: object) -> None:
    if theirs != ours:
        raise SettingError(
            f"{path}: {name} is {theirs}, this broker has {ours}. Use another log directory"
        )


def _encode(identity: MetaProperties) -> bytes:
    return (
        f"version=1\ncluster.id={identity.cluster_id}\nnode.id={identity.node_id}\n"
        f"directory.id={identity.directory_id}\n"
    ).encode()


def _decode(path: str, content: bytes, new_directory_id: UUID) -> MetaProperties:
    pairs = (
        line.split("=", 1) for line in content.decode().splitlines() if not line.startswith("#")
    )
    fields = {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}
    try:
        # Version 0, from the days of ZooKeeper, says broker.id and has no directory.id.
        node_id = int(fields.get("node.id") or fields["broker.id"])
        directory_id = fields.get("directory.id") or text_of_id(new_directory_id)
        return MetaProperties(fields["cluster.id"], node_id, directory_id)
    except (KeyError, ValueError) as error:
        raise SettingError(f"{path}: not a meta.properties file ({error})") from error
