"""Random admin operations on a cluster: create, delete, recreate, grow, move, cancel, configs, elections.

Which operations come in which order follows from a seed; which of them the cluster refuses does not matter here.
"""

import threading
from collections.abc import Callable
from random import Random
from typing import Any

from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected
from headrace.wire.message import Request
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.elect_leaders import ElectLeadersRequest
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.cluster_process import ClusterProcess

TOPICS = tuple(f"topic-{number}" for number in range(10))
MOST_PARTITIONS = 6
_TOPIC, _BROKER = 2, 4
_SET, _DELETE = 0, 1
_TOPIC_CONFIGS = {
    "cleanup.policy": ("delete", "compact", "compact,delete"),
    "max.message.bytes": ("200000", "300000"),
    "min.insync.replicas": ("1", "2", "3"),
    "retention.ms": ("3600000", "7200000"),
}
_BROKER_CONFIGS = {
    "log.cleaner.dedupe.buffer.size": ("52428800", "134217728"),
    "log.cleaner.threads": ("1", "2", "100"),
    "max.connections.per.ip": ("0", "1000"),
    "max.connections.per.ip.overrides": ("127.0.0.1:1000", ""),
    "message.max.bytes": ("1000000", "2000000"),
}
_TIMEOUT_MS = 20_000

AnyRequest = Request[Any]


class AdminOperations:
    """One client that does one operation after the other, at whichever broker runs; `run` in a thread."""

    def __init__(self, cluster: ClusterProcess, seed: str, is_over: threading.Event) -> None:
        self._cluster = cluster
        self._chance = Random(seed)
        self._is_over = is_over
        self._answered = 0

    def run(self) -> int:
        """Returns how many requests were answered."""
        operations: tuple[tuple[Callable[[], list[AnyRequest]], int], ...] = (
            (self._create, 4),
            (self._delete, 2),
            (self._recreate, 3),
            (self._grow, 2),
            (self._move, 4),
            (self._cancel, 2),
            (self._configure_topics, 2),
            (self._configure_brokers, 2),
            (self._elect, 2),
        )
        kinds, weights = zip(*operations, strict=True)
        while not self._is_over.is_set():
            (operation,) = self._chance.choices(kinds, weights)
            self._send(operation())
        return self._answered

    def _send(self, requests: list[AnyRequest]) -> None:
        brokers = [broker for broker in self._cluster.brokers.values() if broker.is_awake]
        broker = self._chance.choice(brokers)
        try:
            with Connection("127.0.0.1", broker.port, timeout_s=40) as connection:
                for request in requests:
                    connection.send(request)
                    self._answered += 1
        except Disconnected:
            pass  # it was killed, or is paused

    # ---- the operations

    def _some_topics(self) -> list[str]:
        return self._chance.sample(TOPICS, self._chance.randint(1, 4))

    def _create(self) -> list[AnyRequest]:
        return [self._creation(self._some_topics())]

    def _creation(self, names: list[str]) -> AnyRequest:
        topics = [
            CreatableTopic(
                name=name,
                num_partitions=self._chance.randint(1, MOST_PARTITIONS),
                replication_factor=self._chance.choice((2, 3, 3)),
                configs=[
                    CreatableTopicConfig(name=key, value=self._chance.choice(values))
                    for key, values in _TOPIC_CONFIGS.items()
                    if self._chance.random() < 0.2
                ],
            )
            for name in names
        ]
        return CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)

    def _delete(self) -> list[AnyRequest]:
        return [_deletion(self._some_topics())]

    def _recreate(self) -> list[AnyRequest]:
        names = self._some_topics()
        return [_deletion(names), self._creation(names)]

    def _grow(self) -> list[AnyRequest]:
        topics = [
            CreatePartitionsTopic(
                name=name, count=self._chance.randint(2, MOST_PARTITIONS), assignments=None
            )
            for name in self._some_topics()
        ]
        return [CreatePartitionsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)]

    def _move(self) -> list[AnyRequest]:
        brokers = sorted(self._cluster.brokers)
        return [
            self._reassignment(
                lambda: self._chance.sample(brokers, self._chance.randint(1, len(brokers)))
            )
        ]

    def _cancel(self) -> list[AnyRequest]:
        return [self._reassignment(lambda: None)]

    def _reassignment(self, replicas: Callable[[], list[int] | None]) -> AnyRequest:
        topics = [
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=replicas())
                    for index in range(MOST_PARTITIONS)
                    if self._chance.random() < 0.5
                ],
            )
            for name in self._some_topics()
        ]
        return AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)

    def _configure_topics(self) -> list[AnyRequest]:
        resources = [
            AlterConfigsResource(
                resource_type=_TOPIC, resource_name=name, configs=self._configs(_TOPIC_CONFIGS)
            )
            for name in self._some_topics()
        ]
        return [IncrementalAlterConfigsRequest(resources=resources)]

    def _configure_brokers(self) -> list[AnyRequest]:
        """The cluster's defaults; one broker's own configs only where that broker is asked, as Kafka wants it."""
        resource = AlterConfigsResource(
            resource_type=_BROKER, resource_name="", configs=self._configs(_BROKER_CONFIGS)
        )
        return [IncrementalAlterConfigsRequest(resources=[resource])]

    def _configs(self, values: dict[str, tuple[str, ...]]) -> list[AlterableConfig]:
        key = self._chance.choice(sorted(values))
        if self._chance.random() < 0.3:
            return [AlterableConfig(name=key, config_operation=_DELETE, value=None)]
        value = self._chance.choice(values[key])
        return [AlterableConfig(name=key, config_operation=_SET, value=value)]

    def _elect(self) -> list[AnyRequest]:
        return [ElectLeadersRequest(topic_partitions=None, timeout_ms=_TIMEOUT_MS)]


def _deletion(names: list[str]) -> AnyRequest:
    topics = [DeleteTopicState(name=name) for name in names]
    return DeleteTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)


def configure_one_broker(cluster: ClusterProcess, chance: Random) -> None:
    """Change a config of one broker of its own, at that broker."""
    broker = chance.choice([broker for broker in cluster.brokers.values() if broker.is_awake])
    key = chance.choice(sorted(_BROKER_CONFIGS))
    config = AlterableConfig(
        name=key, config_operation=_SET, value=chance.choice(_BROKER_CONFIGS[key])
    )
    resource = AlterConfigsResource(
        resource_type=_BROKER, resource_name=str(broker.broker_id), configs=[config]
    )
    try:
        with Connection("127.0.0.1", broker.port, timeout_s=40) as connection:
            connection.send(IncrementalAlterConfigsRequest(resources=[resource]))
    except Disconnected:
        pass  # it was killed, or is paused
