"""The partitions hosted here, by topic name and by topic id."""

from collections.abc import Iterator
from uuid import UUID

from headrace.ids import TopicPartition
from headrace.replication.partition import Partition


class PartitionTable:
    """Index of the hosted partitions by name and by topic id."""

    __slots__ = ("_by_id", "_by_name")

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[UUID, str] = {}

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(map(len, self._by_name.values()))

    def get(self, topic: str, index: int) -> Partition | None:
        """A partition by its topic's name."""
        partitions = self._by_name.get(topic)
        return None if partitions is None else partitions.get(index)

    def of_topic(self, topic: str) -> dict[int, Partition] | None:
        """All hosted partitions of a topic."""
        return self._by_name.get(topic)

    def topic_name(self, topic_id: UUID) -> str | None:
        """The topic's name, if partitions of the topic are hosted."""
        return self._by_id.get(topic_id)

    def add(self, partition: Partition) -> None:
        """Add a hosted partition."""
        topic, index = partition.topic_partition
        self._by_name.setdefault(topic, {})[index] = partition
        self._by_id[partition.topic_id] = topic

    def remove(self, topic_partition: TopicPartition) -> Partition | None:
        """Remove a partition."""
        topic, index = topic_partition
        partitions = self._by_name.get(topic, {})
        partition = partitions.pop(index, None)
        if partition is not None and not partitions:
            del self._by_name[topic]
            self._by_id.pop(partition.topic_id, None)
        return partition
