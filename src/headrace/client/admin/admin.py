"""Finds the broker that can answer, asks it, and asks again where the cluster was only moving.

It owns the connections and the newest metadata. Retried are lost connections and the error codes that say "not now" or
"not here", until `timeout_s` after the call began; everything else is the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from headrace.client.admin.refusal import Refusal, Refused, refusal_of, require
from headrace.client.brokers import Address, Brokers, Link, Unreachable, parse_addresses
from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected, R, VersionRanges, highest_common_version
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.message import Request
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

T = TypeVar("T")

# The same question may be answered in a moment, perhaps by another broker.
MOVING = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


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


class Admin:
    """Asks the brokers of one cluster. Close it, or use it in a `with`."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        timeout_s: float = 30.0,
        retry_after_s: float = 0.1,
        client_id: str = "headrace-admin",
        connect: Callable[[Address], Link] | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        self._retry_after_s = retry_after_s

        def open_connection(address: Address) -> Link:
            return Connection(address.host, address.port, client_id=client_id, timeout_s=timeout_s)

        self._brokers = Brokers(
            parse_addresses(bootstrap_servers), connect=connect or open_connection
        )
        self._cluster: Cluster | None = None

    @property
    def timeout_ms(self) -> int:
        """How long a broker may take over a request."""
        return int(self.timeout_s * 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._brokers.close()

    # Whom to ask.

    def ask_any(self, request: Request[R], *, at_most: int | None = None) -> R:
        """Ask some broker. `at_most` is the highest version wanted."""
        return self.settle(lambda: self._send(self._brokers.any(), request, at_most))

    def ask_broker(self, broker_id: int, request: Request[R], *, at_most: int | None = None) -> R:
        """Ask this broker."""
        self.cluster()
        return self.settle(lambda: self._send(self._brokers.to(broker_id), request, at_most))

    def ask_controller(
        self,
        request: Request[R],
        *,
        errors_of: Callable[[R], Iterable[int]] = lambda _: (),
    ) -> R:
        """Ask the controller; again where `errors_of` finds that it has just moved."""

        def attempt() -> R:
            controller_id = self.cluster().controller_id
            connection = (
                self._brokers.any() if controller_id < 0 else self._brokers.to(controller_id)
            )
            answer = self._send(connection, request, None)
            if ErrorCode.NOT_CONTROLLER in errors_of(answer):
                require(ErrorCode.NOT_CONTROLLER)
            return answer

        return self.settle(attempt)

    def versions_of(self, broker_id: int) -> VersionRanges:
        """The versions this broker offers, by API key."""
        self.cluster()
        return self.settle(lambda: self._brokers.to(broker_id).negotiate())

    # What the cluster looks like.

    def cluster(self) -> Cluster:
        """The brokers and the controller; asked for once, and again after something moved."""
        if self._cluster is None:
            self.metadata([])
        assert self._cluster is not None
        return self._cluster

    def metadata(
        self, topics: Iterable[str] | None, *, create_missing: bool = False
    ) -> MetadataResponse:
        """Metadata of these topics, of all with None. Brokers may create missing ones if they are asked to."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create_missing)
        answer = self.ask_any(request)
        nodes = {
            each.node_id: Node(
                broker_id=each.node_id, address=Address(each.host, each.port), rack=each.rack
            )
            for each in answer.brokers
        }
        self._brokers.learn({node.broker_id: node.address for node in nodes.values()})
        self._cluster = Cluster(
            cluster_id=answer.cluster_id, controller_id=answer.controller_id, nodes=nodes
        )
        return answer

    # Asking again.

    def settle(self, attempt: Callable[[], T]) -> T:
        """The result of `attempt`, repeated while it meets lost connections or codes that say "not now"."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                return attempt()
            except Unreachable:
                raise
            except (Disconnected, Refused) as failed:
                if isinstance(failed, Refused) and failed.code not in MOVING:
                    raise
                if time.monotonic() + self._retry_after_s >= deadline:
                    raise
            time.sleep(self._retry_after_s)
            self._cluster = None

    def ask_leaders(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[int, list[TopicPartition]], Mapping[TopicPartition, T | Refusal]],
    ) -> dict[TopicPartition, T | Refusal]:
        """Ask each partition's leader with `ask`; partitions whose leader moved are asked for again."""
        results: dict[TopicPartition, T | Refusal] = {}
        pending = list(partitions)
        deadline = time.monotonic() + self.timeout_s
        while pending:
            leaders = self._leaders(pending)
            for leader in set(leaders.values()):
                if isinstance(leader, int):
                    mine = [each for each in pending if leaders[each] == leader]
                    results |= ask(leader, mine)
            results |= {each: why for each, why in leaders.items() if isinstance(why, Refusal)}
            pending = [each for each in pending if _is_moving(results.get(each))]
            if time.monotonic() + self._retry_after_s >= deadline:
                break
            if pending:
                time.sleep(self._retry_after_s)
        return results

    def _leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | Refusal]:
        unknown = refusal_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        none_now = refusal_of(ErrorCode.LEADER_NOT_AVAILABLE)
        assert unknown is not None
        assert none_now is not None
        wanted = list(partitions)
        answer = self.metadata({each.topic for each in wanted})
        alive = self.cluster().nodes
        known = {
            TopicPartition(topic.name or "", partition.partition_index): partition.leader_id
            for topic in answer.topics
            for partition in topic.partitions
        }
        leaders: dict[TopicPartition, int | Refusal] = {}
        for each in wanted:
            leader_id = known.get(each)
            if leader_id is None:
                leaders[each] = unknown
            else:
                leaders[each] = leader_id if leader_id in alive else none_now
        return leaders

    def _send(self, connection: Link, request: Request[R], at_most: int | None) -> R:
        try:
            version = highest_common_version(request, connection.negotiate())
            return connection.send(request, version if at_most is None else min(version, at_most))
        except Disconnected:
            self._brokers.drop(connection)
            raise


def _is_moving(result: object) -> bool:
    return isinstance(result, Refusal) and result.code in MOVING
