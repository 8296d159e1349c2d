"""State of the cluster: brokers, topics, partitions, configs.

Owns the indexes. Changes only by `apply`, on the controller as on every broker that follows it,
so that a copy differs from the original by nothing but its age. Readers may hold on to brokers
and partitions (immutable values), not to the dictionaries and lists, and change none of them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from headrace.controller.changes import (
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnregistered,
    Change,
    ChangeBatch,
    ConfigChanged,
    ControllerElected,
    FeaturesFinalized,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsAllocated,
    ReplicasRemoved,
    TopicCreated,
    TopicDeleted,
)
from headrace.controller.values import ALL_BROKERS, NO_LEADER, Broker, ConfigKind, PartitionState

_NOTHING: Mapping[str, str] = {}
NO_FEATURES_EPOCH: Final = -1


class Topic:
    """A topic; partition n is `partitions[n]`."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: UUID, partitions: list[PartitionState]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class DeletedTopic:
    """A topic that is gone, and the brokers that still hold replicas of it."""

    __slots__ = ("name", "pending")

    def __init__(self, name: str, pending: tuple[int, ...]) -> None:
        self.name = name
        self.pending = pending


class ClusterState:
    """The state of the cluster. `version` grows with every change, for caches of derived values."""

    def __init__(self) -> None:
        self.controller_id = -1
        self.controller_epoch = -1
        self.unreadable_topics: Mapping[str, str] = _NOTHING  # name → what is wrong
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[UUID, Topic] = {}
        self.deleted_topics: dict[UUID, DeletedTopic] = {}
        self.configs: dict[tuple[ConfigKind, str], dict[str, str]] = {}
        self.next_producer_id = 0
        self.features: Mapping[str, int] = {}  # finalized levels
        self.features_epoch = NO_FEATURES_EPOCH
        self.version = 0

    def apply(self, change: Change) -> None:
        """Make a change true."""
        _APPLY[type(change)](self, change)
        self.version += 1

    def partition(self, topic: str, index: int) -> PartitionState | None:
        """A partition by its topic's name."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def eligible(self) -> set[int]:
        """The brokers that may be given something to do."""
        return {id_ for id_, broker in self.brokers.items() if not broker.shutting_down}

    def offline_replicas(self) -> dict[tuple[UUID, int], set[int]]:
        """Topic id and partition → the brokers that are alive but cannot use their replica. Nearly always empty."""
        found: dict[tuple[UUID, int], set[int]] = {}
        for broker_id, broker in self.brokers.items():
            for where in broker.offline:
                found.setdefault(where, set()).add(broker_id)
        return found

    def config(self, kind: ConfigKind, name: str) -> Mapping[str, str]:
        """The configs of one resource itself, without defaults."""
        return self.configs.get((kind, name), _NOTHING)

    def topic_setting(self, topic: str, key: str, default: str) -> str:
        """A topic's setting: its own, else the brokers' common one, else `default`."""
        own = self.config(ConfigKind.TOPIC, topic).get(key)
        if own is not None:
            return own
        return self.config(ConfigKind.BROKER, ALL_BROKERS).get(key, default)

    def snapshot(self) -> list[Change]:
        """The changes that build this state from nothing."""
        changes: list[Change] = [
            ControllerElected(
                self.controller_id, self.controller_epoch, dict(self.unreadable_topics)
            )
        ]
        changes += map(BrokerRegistered, self.brokers.values())
        for (kind, name), values in self.configs.items():
            changes.append(ConfigChanged(kind, name, dict(values)))
        for topic in self.topics.values():
            changes.append(TopicCreated(topic.name, topic.topic_id, tuple(topic.partitions)))
        for topic_id, deleted in self.deleted_topics.items():
            changes.append(TopicDeleted(deleted.name, topic_id, deleted.pending))
        changes.append(ProducerIdsAllocated(self.next_producer_id))
        if self.features_epoch != NO_FEATURES_EPOCH:
            changes.append(FeaturesFinalized(dict(self.features), self.features_epoch))
        return changes

    def check(self) -> None:
        """Assert what must hold at any time."""
        assert {topic.topic_id for topic in self.topics.values()} == set(self.topics_by_id)
        assert not set(self.deleted_topics) & set(self.topics_by_id), "deleted and alive"
        for name, topic in self.topics.items():
            assert topic.name == name
            assert self.topics_by_id[topic.topic_id] is topic
            for index, partition in enumerate(topic.partitions):
                _check_partition(f"{name}-{index}", partition)

    def _elected(self, change: ControllerElected) -> None:
        assert change.controller_epoch >= self.controller_epoch, "controller epoch decreased"
        self.controller_id = change.broker_id
        self.controller_epoch = change.controller_epoch
        self.unreadable_topics = change.unreadable_topics

    def _registered(self, change: BrokerRegistered) -> None:
        before = self.brokers.get(change.broker.broker_id)
        assert before is None or before.epoch <= change.broker.epoch, "broker epoch decreased"
        self.brokers[change.broker.broker_id] = change.broker

    def _shutting_down(self, change: BrokerShuttingDown) -> None:
        broker = self.brokers[change.broker_id]
        self.brokers[change.broker_id] = msgspec.structs.replace(broker, shutting_down=True)

    def _unregistered(self, change: BrokerUnregistered) -> None:
        del self.brokers[change.broker_id]

    def _topic_created(self, change: TopicCreated) -> None:
        assert change.name not in self.topics, f"{change.name} created twice"
        topic = Topic(change.name, change.topic_id, list(change.partitions))
        self.topics[change.name] = self.topics_by_id[change.topic_id] = topic

    def _partitions_added(self, change: PartitionsAdded) -> None:
        partitions = self.topics[change.topic].partitions
        assert change.first == len(partitions), f"{change.topic} grew with a gap"
        partitions.extend(change.partitions)

    def _partition_changed(self, change: PartitionChanged) -> None:
        partitions = self.topics[change.topic].partitions
        before, after = partitions[change.index], change.partition
        assert after.leader_epoch >= before.leader_epoch, "leader epoch decreased"
        assert after.partition_epoch > before.partition_epoch, "partition epoch did not grow"
        assert after.leader in (before.leader, NO_LEADER) or (
            after.leader_epoch > before.leader_epoch
        ), "two leaders in one epoch"
        partitions[change.index] = after

    def _topic_deleted(self, change: TopicDeleted) -> None:
        if change.name in self.topics and self.topics[change.name].topic_id == change.topic_id:
            del self.topics[change.name]
            del self.topics_by_id[change.topic_id]
        if change.pending:
            self.deleted_topics[change.topic_id] = DeletedTopic(change.name, change.pending)

    def _replicas_removed(self, change: ReplicasRemoved) -> None:
        deleted = self.deleted_topics[change.topic_id]
        deleted.pending = tuple(b for b in deleted.pending if b != change.broker_id)
        if not deleted.pending:
            del self.deleted_topics[change.topic_id]

    def _config_changed(self, change: ConfigChanged) -> None:
        if change.values:
            self.configs[change.kind, change.name] = change.values
        else:
            self.configs.pop((change.kind, change.name), None)

    def _producer_ids(self, change: ProducerIdsAllocated) -> None:
        assert change.next_producer_id >= self.next_producer_id, "producer ids given out twice"
        self.next_producer_id = change.next_producer_id

    def _features(self, change: FeaturesFinalized) -> None:
        self.features, self.features_epoch = change.levels, change.epoch


_APPLY: dict[type, Callable[[ClusterState, Any], None]] = {
    ControllerElected: ClusterState._elected,
    BrokerRegistered: ClusterState._registered,
    BrokerShuttingDown: ClusterState._shutting_down,
    BrokerUnregistered: ClusterState._unregistered,
    TopicCreated: ClusterState._topic_created,
    PartitionsAdded: ClusterState._partitions_added,
    PartitionChanged: ClusterState._partition_changed,
    TopicDeleted: ClusterState._topic_deleted,
    ReplicasRemoved: ClusterState._replicas_removed,
    ConfigChanged: ClusterState._config_changed,
    ProducerIdsAllocated: ClusterState._producer_ids,
    FeaturesFinalized: ClusterState._features,
}


def follow(state: ClusterState, batch: ChangeBatch) -> ClusterState:
    """The state after a batch: the same object, or a new one when the batch is a snapshot."""
    if batch.is_snapshot:
        state = ClusterState()
    for change in batch.changes:
        state.apply(change)
    return state


def _check_partition(name: str, partition: PartitionState) -> None:
    replicas = partition.replicas
    assert replicas, f"{name} has no replicas"
    assert len(set(replicas)) == len(replicas), f"{name} has a replica twice"
    assert set(partition.isr) <= set(replicas), f"{name}: ISR outside the replicas"
    assert set(partition.elr) <= set(replicas), f"{name}: ELR outside the replicas"
    assert not set(partition.isr) & set(partition.elr), f"{name}: in ISR and ELR"
    assert set(partition.adding) <= set(replicas), f"{name}: adding outside the replicas"
    assert set(partition.removing) <= set(replicas), f"{name}: removing outside the replicas"
    assert partition.leader == NO_LEADER or partition.leader in partition.isr, (
        f"{name}: leader {partition.leader} not in ISR {partition.isr}"
    )
