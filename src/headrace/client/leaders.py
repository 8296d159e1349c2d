"""Who leads which partition, and connections to them, blocking: what reading and writing records needs of the cluster.

It owns its connections and the newest metadata it asked for, and is used by one thread. What was found is kept until somebody
found it wrong and calls `forget`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.client.brokers import Address, Brokers, parse_addresses
from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected, R
from headrace.client.read_replica import ReadReplicas
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.ids import TopicPartition
    from headrace.wire.message import Request

NO_LEADER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A topic as metadata shows it: its id, and who leads each of its partitions (NO_LEADER: nobody now)."""

    name: str
    topic_id: UUID
    leaders: dict[int, int]


class Leaders:
    """Finds the leader of a partition. Close it."""

    def __init__(
        self, bootstrap_servers: str, *, client_id: str = "headrace", timeout_s: float = 30.0
    ) -> None:
        def connect(address: Address) -> Connection:
            return Connection(address.host, address.port, client_id=client_id, timeout_s=timeout_s)

        self.brokers = Brokers(parse_addresses(bootstrap_servers), connect=connect)
        self.read_replicas = ReadReplicas()
        self._topics: dict[str, tuple[TopicView, float]] = {}  # and when it was asked for

    def close(self) -> None:
        self.brokers.close()

    def topic(self, name: str, *, max_age_s: float = math.inf) -> TopicView | None:
        """A topic, from memory where it was asked for that lately; None where the cluster knows none of that name."""
        view, asked_s = self._topics.get(name, (None, 0.0))
        if view is not None and time.monotonic() - asked_s <= max_age_s:
            return view
        return self.topics([name]).get(name)

    def topics(self, names: Iterable[str], *, may_create: bool = False) -> dict[str, TopicView]:
        """These topics as the cluster has them now; missing are those it does not know, or has only begun to create."""
        wanted = [MetadataRequestTopic(name=name) for name in names]
        answer = self._ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=may_create))
        self.brokers.learn({each.node_id: Address(each.host, each.port) for each in answer.brokers})
        found = {
            topic.name: TopicView(
                name=topic.name,
                topic_id=topic.topic_id,
                leaders={each.partition_index: each.leader_id for each in topic.partitions},
            )
            for topic in answer.topics
            if topic.name is not None
            and topic.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
        }
        now_s = time.monotonic()
        self._topics |= {name: (view, now_s) for name, view in found.items()}
        return found

    def leader_of(self, partition: TopicPartition) -> int:
        """The broker that leads a partition, or NO_LEADER."""
        view = self.topic(partition.topic)
        return NO_LEADER if view is None else view.leaders.get(partition.partition, NO_LEADER)

    def ask(self, broker_id: int, request: Request[R]) -> R:
        """Ask a broker, once. Raises Disconnected."""
        connection = self.brokers.to(broker_id)
        try:
            return connection.send(request)
        except Disconnected:
            self.brokers.drop(connection)
            raise

    def forget(self, topic: str) -> None:
        """Ask again next time: what was known turned out wrong."""
        self._topics.pop(topic, None)

    def _ask(self, request: MetadataRequest) -> MetadataResponse:
        connection = self.brokers.any()
        try:
            return connection.send(request)
        except Disconnected:
            # An idle connection that its broker has closed says nothing of the others: one more try.
            self.brokers.drop(connection)
        return self.brokers.any().send(request)
