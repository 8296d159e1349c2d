"""A new embedded store from the log directories of a single broker, whose store was lost.

Only reads the directories. What the logs do not tell is lost: settings of topics and brokers. Leader epochs and producer ids go on
above all that may have been given out before, because the logs hold records under those.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from headrace.controller.raise_epochs import PRODUCER_IDS_A_SECOND
from headrace.coordination.membership import cluster_id, prepare
from headrace.coordination.nodes import (
    PartitionStateNode,
    ProducerIdBlockNode,
    TopicNode,
    text_of_id,
)
from headrace.coordination.store import Create, Operation, Store
from headrace.errors import CorruptBatch
from headrace.ids import TopicPartition
from headrace.log.checkpoint import LEADER_EPOCH_FILE, read_epochs, read_topic_id
from headrace.log.disk import Disk
from headrace.log.log_dirs import parse_directory_name

# The checkpoint of a log that was not closed lacks its last epochs.
_EPOCHS_ABOVE: Final = 1_000


class LogFound(NamedTuple):
    """A partition's log: its topic's id, and an epoch above all of its records'."""

    topic_partition: TopicPartition
    topic_id: UUID
    next_epoch: int


def find_logs(disk: Disk, directories: Iterable[str]) -> tuple[list[LogFound], list[str]]:
    """The logs that say to which topic they belong, and the paths of those that do not."""
    found: list[LogFound] = []
    nameless: list[str] = []
    for directory in directories:
        for name in disk.list_directories(directory):
            topic_partition = parse_directory_name(name)
            if topic_partition is None:
                continue
            path = f"{directory}/{name}"
            try:
                topic_id = read_topic_id(disk, path)
                epochs = read_epochs(disk, f"{path}/{LEADER_EPOCH_FILE}")
            except CorruptBatch:
                topic_id, epochs = None, []
            if topic_id is None:
                nameless.append(path)
            else:
                last = max((epoch for epoch, _ in epochs), default=0)
                found.append(LogFound(topic_partition, topic_id, last + _EPOCHS_ABOVE))
    return found, nameless


async def recover(
    store: Store, cluster: str, broker_id: int, logs: Iterable[LogFound], now_s: int
) -> dict[str, int]:
    """Make a store out of the logs. Returns how many partitions each topic has."""
    await prepare(store)
    await cluster_id(store, cluster)
    topics: dict[tuple[str, UUID], dict[int, LogFound]] = defaultdict(dict)
    for log in logs:
        topics[log.topic_partition.topic, log.topic_id][log.topic_partition.partition] = log
    for (name, topic_id), partitions in topics.items():
        await store.multi(_topic(name, topic_id, partitions, broker_id))
    block = ProducerIdBlockNode.of(broker_id, now_s * PRODUCER_IDS_A_SECOND, 1)
    await store.create(ProducerIdBlockNode.PATH, block.encode())
    return {name: 1 + max(partitions) for (name, _), partitions in topics.items()}


def _topic(
    name: str, topic_id: UUID, partitions: dict[int, LogFound], broker_id: int
) -> list[Operation]:
    replicas = (broker_id,)
    count = 1 + max(partitions)
    node = TopicNode(text_of_id(topic_id), dict.fromkeys(range(count), replicas))
    writes: list[Operation] = [
        Create(TopicNode.path(name), node.encode()),
        Create(PartitionStateNode.folder(name)),
    ]
    for index, log in partitions.items():  # one that has no log begins as an empty one
        state = PartitionStateNode(
            controller_epoch=0, leader=broker_id, leader_epoch=log.next_epoch, isr=replicas
        )
        path = PartitionStateNode.path(name, index)
        writes += [Create(path.removesuffix("/state")), Create(path, state.encode())]
    return writes
