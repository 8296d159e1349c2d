"""Table of the coordinators that this broker runs: internal topic → coordinator.

Owns which kind of coordinator answers for the partitions of which internal topic, and for the keys of which key type of
FindCoordinator. When this broker is elected leader of such a partition, the coordinator gets it as the log of a shard; when
the leadership is gone, the shard is closed. What is led is decided by `replicas.replica_hosting`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from headrace.broker.coordinators.shard_log import PartitionShardLog
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.replication.partition import Partition


class KeyType(IntEnum):
    """What the key of a FindCoordinator names."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorEntry:
    """A coordinator, and how it is reached."""

    key_type: KeyType
    runtime: CoordinatorRuntime[Any, Any]
    codec: Callable[[], int]  # of the batches that it appends

    @property
    def topic(self) -> str:
        """The internal topic with the coordinator's records."""
        return self.runtime.topic


class CoordinatorTable:
    """One event loop owns it."""

    def __init__(self, *entries: CoordinatorEntry) -> None:
        self._by_topic = {entry.topic: entry for entry in entries}
        self._by_key_type: dict[int, CoordinatorEntry] = {each.key_type: each for each in entries}

    def for_key_type(self, key_type: int) -> CoordinatorEntry | None:
        """The coordinator that answers for this type of key, or None where it is not offered."""
        return self._by_key_type.get(key_type)

    def elected(self, partition: Partition) -> None:
        """This broker leads a partition. Does nothing unless its topic is a coordinator's."""
        entry = self._by_topic.get(partition.topic_partition.topic)
        if entry is not None:
            shard_log = PartitionShardLog(partition, codec=entry.codec())
            entry.runtime.elected(partition.topic_partition.partition, shard_log)

    def resigned(self, partition: Partition) -> None:
        """This broker no longer leads a partition. Does nothing unless its topic is a coordinator's."""
        entry = self._by_topic.get(partition.topic_partition.topic)
        if entry is not None:
            entry.runtime.resigned(partition.topic_partition.partition)

    def stop(self) -> None:
        """Give up every shard."""
        for entry in self._by_topic.values():
            entry.runtime.stop()

    def faults(self) -> list[str]:
        """A sentence for each partition whose records could not be loaded: its keys are not served."""
        return [
            f"{topic}-{partition} cannot be loaded, its {entry.runtime.keys} are not served: {reason};"
            " docs/operating/README.md says how to repair it"
            for topic, entry in self._by_topic.items()
            for partition, reason in entry.runtime.failed_partitions.items()
        ]
