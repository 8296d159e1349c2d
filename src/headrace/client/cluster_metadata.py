"""Metadata of a cluster: its brokers, its controller, its topics, and the leaders of their partitions. Blocking.

Owns the connections and the newest answers of the cluster; one thread uses it. What was found is kept until somebody found it
wrong and calls `forget` or `forget_cluster`. It repeats no request: whoever asks knows how long an answer is worth waiting for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NamedTuple

from headrace.client.brokers import Address, Brokers, L
from headrace.client.exchange import Disconnected, R, highest_common_version
from headrace.client.retries import REAL_TIME, BlockingTime
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from headrace.wire.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from headrace.ids import TopicPartition
    from headrace.wire.message import Request

NO_LEADER: Final = -1
_HAS_PARTITIONS: Final = (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
_NO_LEADER_NOW: Final = Refusal(ErrorCode.LEADER_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker, as metadata names it."""

    broker_id: int
    address: Address
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The brokers that are alive, and who leads them."""

    cluster_id: str | None
    controller_id: int
    nodes: Mapping[int, Node]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A topic as metadata shows it: its id, and who leads each of its partitions (NO_LEADER: nobody now)."""

    name: str
    topic_id: UUID
    leaders: dict[int, int]


class _Known(NamedTuple):
    view: TopicView
    asked_s: float


class ClusterMetadata(Generic[L]):
    """The newest metadata of one cluster. Close it."""

    def __init__(self, brokers: Brokers[L], blocking_time: BlockingTime = REAL_TIME) -> None:
        self.brokers = brokers
        self.time = blocking_time
        self._cluster: Cluster | None = None
        self._topics: dict[str, _Known] = {}

    def close(self) -> None:
        self.brokers.close()

    # Requests, each sent once. Raise Disconnected.

    def ask_any(self, request: Request[R], *, at_most: int | None = None) -> R:
        """Ask some broker. `at_most` is the highest version wanted."""
        connection = self.brokers.any()
        try:
            return self._send(connection, request, at_most)
        except Disconnected:
            # An idle connection that its broker has closed says nothing of the others: one more try.
            return self._send(self.brokers.any(), request, at_most)

    def ask(self, broker_id: int, request: Request[R], *, at_most: int | None = None) -> R:
        """Ask this broker."""
        return self._send(self.brokers.to(broker_id), request, at_most)

    def _send(self, connection: L, request: Request[R], at_most: int | None) -> R:
        try:
            version = highest_common_version(request, connection.negotiate())
            return connection.send(request, version if at_most is None else min(version, at_most))
        except Disconnected:
            self.brokers.drop(connection)
            raise

    # What the cluster looks like.

    def refresh(self, names: Iterable[str] | None, *, may_create: bool = False) -> MetadataResponse:
        """Metadata of these topics, of all with None. Brokers may create missing ones if they are asked to."""
        wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        answer = self.ask_any(MetadataRequest(topics=wanted, allow_auto_topic_creation=may_create))
        nodes = {
            each.node_id: Node(
                broker_id=each.node_id, address=Address(each.host, each.port), rack=each.rack
            )
            for each in answer.brokers
        }
        self.brokers.learn({node.broker_id: node.address for node in nodes.values()})
        self._cluster = Cluster(
            cluster_id=answer.cluster_id, controller_id=answer.controller_id, nodes=nodes
        )
        now_s = self.time.now_s()
        # What is not known now stays as it was seen last: a broker that has just started knows few topics.
        self._topics |= {name: _Known(view, now_s) for name, view in _views(answer).items()}
        return answer

    def cluster(self) -> Cluster:
        """The brokers and the controller; asked for once, and again after `forget_cluster`."""
        if self._cluster is None:
            self.refresh([])
        assert self._cluster is not None
        return self._cluster

    def topic(self, name: str, *, max_age_s: float = math.inf) -> TopicView | None:
        """A topic, from memory where it was asked for that lately; None where the cluster knows none of that name."""
        known = self._topics.get(name)
        if known is not None and self.time.now_s() - known.asked_s <= max_age_s:
            return known.view
        return self.topics([name]).get(name)

    def topics(self, names: Iterable[str], *, may_create: bool = False) -> dict[str, TopicView]:
        """These topics as the cluster has them now; missing are those it does not know, or has only begun to create."""
        return _views(self.refresh(names, may_create=may_create))

    def leader_of(self, partition: TopicPartition) -> int:
        """The broker that leads a partition, or NO_LEADER."""
        view = self.topic(partition.topic)
        return NO_LEADER if view is None else view.leaders.get(partition.partition, NO_LEADER)

    def leaders_of(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | Refusal]:
        """The brokers that lead partitions, or why none does. A partition that memory does not know is asked for."""
        wanted = list(partitions)
        missing = {each.topic for each in wanted if not self._knows(each)}
        errors: dict[str, ErrorCode] = {}
        if missing:
            answer = self.refresh(sorted(missing))
            errors = {each.name or "": ErrorCode.of(each.error_code) for each in answer.topics}
        alive = self.cluster().nodes
        found: dict[TopicPartition, int | Refusal] = {}
        for each in wanted:
            error = errors.get(each.topic, ErrorCode.NONE)
            if error not in _HAS_PARTITIONS:
                found[each] = Refusal(error)
            elif not self._knows(each):
                found[each] = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                leader = self._topics[each.topic].view.leaders[each.partition]
                found[each] = leader if leader in alive else _NO_LEADER_NOW
        return found

    def _knows(self, partition: TopicPartition) -> bool:
        known = self._topics.get(partition.topic)
        return known is not None and partition.partition in known.view.leaders

    def forget(self, topic: str) -> None:
        """Ask again next time: what was known of a topic turned out wrong."""
        self._topics.pop(topic, None)

    def forget_cluster(self) -> None:
        """Ask again next time: the controller or a broker has moved."""
        self._cluster = None


def _views(answer: MetadataResponse) -> dict[str, TopicView]:
    return {
        topic.name: TopicView(
            name=topic.name,
            topic_id=topic.topic_id,
            leaders={each.partition_index: each.leader_id for each in topic.partitions},
        )
        for topic in answer.topics
        if topic.name is not None and topic.error_code in _HAS_PARTITIONS
    }
