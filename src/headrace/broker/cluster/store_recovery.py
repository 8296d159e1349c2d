"""Rebuilds a lost embedded store from the log directories of a single broker (`headrace storage recover`).

Only reads the directories. Configs of topics and brokers are lost, because logs do not contain them. Every topic gets unlimited
retention, so that no record is deleted or compacted because its topic's configs are missing. Leader epochs and producer ids go on
above all that may have been allocated before, because the logs hold records under those.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from headrace.controller.raise_epochs import PRODUCER_IDS_A_SECOND
from headrace.coordination.membership import cluster_id, prepare
from headrace.coordination.nodes import (
    ConfigNode,
    PartitionStateNode,
    ProducerIdBlockNode,
    TopicNode,
)
from headrace.coordination.store import Create, Operation, Store
from headrace.errors import CorruptBatch
from headrace.ids import TopicPartition, text_of_id
from headrace.log.files.checkpoint import LEADER_EPOCH_FILE, read_epochs, read_topic_id
from headrace.log.files.disk import Disk
from headrace.log.log_dirs import parse_directory_name

# The checkpoint of a log that was not closed lacks its last epochs.
_EPOCHS_ABOVE: Final = 1_000
KEEP_EVERYTHING: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class LogFound(NamedTuple):
    """A partition's log: its topic's id, if it has one, and a leader epoch above all in its checkpoint."""

    path: str
    topic_partition: TopicPartition
    topic_id: UUID | None
    next_epoch: int


class LeftOut(NamedTuple):
    """A log that belongs to no topic of the new store."""

    path: str
    reason: str


class Recovered(NamedTuple):
    """How many partitions each topic has, and the logs that are not among them."""

    topics: dict[str, int]
    left_out: list[LeftOut]


def find_logs(disk: Disk, directories: Iterable[str]) -> list[LogFound]:
    """The logs in these directories."""
    found: list[LogFound] = []
    for directory in directories:
        for name in disk.list_directories(directory):
            topic_partition = parse_directory_name(name)
            if topic_partition is not None:
                path = f"{directory}/{name}"
                topic_id, epoch = _read_topic_id(disk, path), _read_last_epoch(disk, path)
                found.append(LogFound(path, topic_partition, topic_id, epoch + _EPOCHS_ABOVE))
    return found


def _read_topic_id(disk: Disk, path: str) -> UUID | None:
    try:
        return read_topic_id(disk, path)
    except CorruptBatch:
        return None


def _read_last_epoch(disk: Disk, path: str) -> int:
    """0 if the checkpoint is damaged: the broker reads the epochs from the batches, and leads only above them."""
    try:
        epochs = read_epochs(disk, f"{path}/{LEADER_EPOCH_FILE}")
    except CorruptBatch:
        return 0
    return max((epoch for epoch, _ in epochs), default=0)


async def recover(
    store: Store,
    cluster: str,
    broker_id: int,
    logs: Iterable[LogFound],
    now_s: int,
    internal_configs: Mapping[str, dict[str, str]],
) -> Recovered:
    """Make a store out of the logs. `internal_configs` are those of topics whose configs are known without a store."""
    await prepare(store)
    await cluster_id(store, cluster)
    by_name: dict[str, list[LogFound]] = defaultdict(list)
    for log in logs:
        by_name[log.topic_partition.topic].append(log)
    recovered = Recovered({}, [])
    for name, found in by_name.items():
        topic_id = _id_of(found)
        if topic_id is None:
            reason = "nothing there says to which topic it belongs"
            recovered.left_out.extend(LeftOut(log.path, reason) for log in found)
            continue
        epochs: dict[int, int] = {}
        for log in found:
            if log.topic_id in (None, topic_id):
                index = log.topic_partition.partition
                epochs[index] = max(log.next_epoch, epochs.get(index, 0))
            else:
                reason = f"it belongs to an earlier or later topic of the name {name}"
                recovered.left_out.append(LeftOut(log.path, reason))
        configs = internal_configs.get(name, KEEP_EVERYTHING)
        await store.multi(_topic(name, topic_id, epochs, broker_id, configs))
        recovered.topics[name] = 1 + max(epochs)
    block = ProducerIdBlockNode.of(broker_id, now_s * PRODUCER_IDS_A_SECOND, 1)
    await store.create(ProducerIdBlockNode.PATH, block.encode())
    return recovered


def _id_of(logs: list[LogFound]) -> UUID | None:
    """The id of a topic of which these are the logs: that of most of them, and among equals of the newest leader epoch."""
    votes: dict[UUID, tuple[int, int]] = {}
    for log in logs:
        if log.topic_id is not None:
            count, epoch = votes.get(log.topic_id, (0, 0))
            votes[log.topic_id] = (count + 1, max(epoch, log.next_epoch))
    return max(votes, key=lambda topic_id: votes[topic_id], default=None)


def _topic(
    name: str, topic_id: UUID, epochs: Mapping[int, int], broker_id: int, configs: dict[str, str]
) -> list[Operation]:
    """`epochs` are the leader epochs of the partitions that have a log."""
    replicas = (broker_id,)
    count = 1 + max(epochs)
    node = TopicNode(text_of_id(topic_id), dict.fromkeys(range(count), replicas))
    writes: list[Operation] = [
        Create(ConfigNode.path("topics", name), ConfigNode(configs).encode()),
        Create(TopicNode.path(name), node.encode()),
        Create(PartitionStateNode.folder(name)),
    ]
    for index in range(count):
        state = PartitionStateNode(
            controller_epoch=0,
            leader=broker_id,
            leader_epoch=epochs.get(index, _EPOCHS_ABOVE),
            isr=replicas,
        )
        path = PartitionStateNode.path(name, index)
        writes += [Create(path.removesuffix("/state")), Create(path, state.encode())]
    return writes
