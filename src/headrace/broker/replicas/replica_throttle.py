"""Throttle of replication: which replicas it holds for, and whether one of them has to wait now.

Owns Kafka's rule: a rate of this broker (`leader.` or `follower.replication.throttled.rate`) and per topic the replicas that
it holds for (`….replication.throttled.replicas`, as partition:broker, or * for all). Only replicas that are not in sync wait.
Without a rate, no replica is throttled.
"""

from collections.abc import Callable

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.clock import Clock
from headrace.controller.values import ConfigKind
from headrace.ids import TopicPartition
from headrace.replication.throttle import UNLIMITED, RateWindow


class ReplicaThrottle:
    """The throttle of one broker, either for what it sends as leader or for what it fetches as follower."""

    def __init__(
        self, cluster: ClusterView, clock: Clock, rate: Callable[[], int], *, replicas_key: str
    ) -> None:
        """`rate` is the one in force now; `replicas_key` the topic config that lists the replicas."""
        self._cluster = cluster
        self._clock = clock
        self._rate = rate
        self._replicas_key = replicas_key
        self._passed = RateWindow()
        self._listed: dict[str, tuple[str, frozenset[int] | None]] = {}  # None: all partitions

    @property
    def is_on(self) -> bool:
        """Whether there is a rate at all."""
        return self._rate() < UNLIMITED

    def holds_back(self, where: TopicPartition, replica: int) -> bool:
        """Whether this replica has to wait now."""
        if not self.is_on or not self._is_listed(where):
            return False
        state = self._cluster.state.partition(*where)
        if state is None or replica in state.isr:
            return False
        return self._passed.bytes_per_second(self._clock()) > self._rate()

    def passed(self, where: TopicPartition, size: int) -> None:
        """Count bytes that a replica was sent, whether it is in sync or not."""
        if size and self.is_on and self._is_listed(where):
            self._passed.note(size, self._clock())

    def _is_listed(self, where: TopicPartition) -> bool:
        topic, index = where
        text = self._cluster.state.config(ConfigKind.TOPIC, topic).get(self._replicas_key, "")
        known = self._listed.get(topic)
        if known is None or known[0] != text:
            known = self._listed[topic] = text, _partitions(text, self._cluster.broker_id)
        return known[1] is None or index in known[1]


def _partitions(text: str, broker_id: int) -> frozenset[int] | None:
    """The partitions whose replica on this broker is listed; None for all."""
    entries = [entry.strip() for entry in text.split(",")]
    if "*" in entries:
        return None
    pairs = (entry.partition(":") for entry in entries)
    return frozenset(
        int(index) for index, colon, broker in pairs if colon and int(broker) == broker_id
    )
