"""Which coordinator gets which partition, and answers for which type of key."""

from typing import Any, cast

from headrace.broker.coordinators.coordinator_table import (
    CoordinatorEntry,
    CoordinatorTable,
    KeyType,
)
from headrace.broker.coordinators.shard_log import PartitionShardLog
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.ids import TopicPartition
from headrace.replication.partition import Partition


class NotedRuntime:
    """A runtime that notes what it is told."""

    def __init__(self, topic: str, keys: str) -> None:
        self.topic = topic
        self.keys = keys
        self.events: list[str] = []
        self.failed_partitions: dict[int, str] = {}

    def elected(self, partition: int, shard_log: PartitionShardLog) -> None:
        self.events.append(f"elected {partition} in leader epoch {shard_log.leader_epoch}")

    def resigned(self, partition: int) -> None:
        self.events.append(f"resigned {partition}")

    def stop(self) -> None:
        self.events.append("stopped")


class LedPartition:
    """What the table needs of a partition."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic_partition = TopicPartition(topic, partition)
        self.leader_epoch = 7


def led(topic: str, partition: int) -> Partition:
    return cast(Partition, LedPartition(topic, partition))


def entry(key_type: KeyType, runtime: NotedRuntime) -> CoordinatorEntry:
    return CoordinatorEntry(
        key_type=key_type, runtime=cast(CoordinatorRuntime[Any, Any], runtime), codec=lambda: 0
    )


def test_each_topic_has_its_coordinator() -> None:
    groups = NotedRuntime("__consumer_offsets", "groups")
    transactions = NotedRuntime("__transaction_state", "transactional ids")
    table = CoordinatorTable(entry(KeyType.GROUP, groups), entry(KeyType.TRANSACTION, transactions))
    table.elected(led("__consumer_offsets", 3))
    table.elected(led("__transaction_state", 4))
    table.elected(led("orders", 5))
    table.resigned(led("__consumer_offsets", 3))
    table.resigned(led("orders", 5))
    table.stop()
    assert groups.events == ["elected 3 in leader epoch 7", "resigned 3", "stopped"]
    assert transactions.events == ["elected 4 in leader epoch 7", "stopped"]


def test_a_type_of_key_that_is_not_offered_has_no_coordinator() -> None:
    groups = NotedRuntime("__consumer_offsets", "groups")
    table = CoordinatorTable(entry(KeyType.GROUP, groups))
    found = table.for_key_type(0)
    assert found is not None
    assert found.topic == "__consumer_offsets"
    assert table.for_key_type(KeyType.TRANSACTION) is None
    assert table.for_key_type(99) is None


def test_a_shard_that_cannot_be_loaded_is_named() -> None:
    groups = NotedRuntime("__consumer_offsets", "groups")
    table = CoordinatorTable(entry(KeyType.GROUP, groups))
    assert table.faults() == []
    groups.failed_partitions = {3: "offset 7 is damaged"}
    [fault] = table.faults()
    assert fault.startswith(
        "__consumer_offsets-3 cannot be loaded, its groups are not served: offset 7 is damaged;"
    )
