"""From which replica a consumer should read: one in its own rack, if there is one (KIP-392).

Owns Kafka's rule, which only the leader applies. Candidates are the leader and the followers that are in sync and have the
requested offset. Of several in the consumer's rack the leader is chosen, else the one with the highest log end offset.
"""

from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.replication.partition import Partition

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_ITSELF: Final = -1


class NearestReplica:
    """The choice for one consumer: its rack, and the listener that it reaches brokers by."""

    __slots__ = ("_cluster", "_listener_name", "_rack")

    def __init__(self, cluster: ClusterView, rack: str, listener_name: str) -> None:
        self._cluster = cluster
        self._rack = rack
        self._listener_name = listener_name

    def choose(self, partition: Partition, fetch_offset: int) -> int:
        """The broker to read a partition from; -1 is the leader, or this broker if it does not lead."""
        leader = partition.leader
        if leader is None or self._is_near(self._cluster.broker_id):
            return LEADER_ITSELF
        best = LEADER_ITSELF, LEADER_ITSELF
        for replica in leader.isr:
            progress = leader.progress_of(replica)
            if (
                progress is not None
                and progress.log_start_offset <= fetch_offset <= progress.end_offset
                and self._is_near(replica)
            ):
                best = max(best, (progress.end_offset, replica))
        return best[1]

    def _is_near(self, broker_id: int) -> bool:
        broker = self._cluster.state.brokers.get(broker_id)
        return (
            broker is not None
            and broker.rack == self._rack
            and broker.endpoint(self._listener_name) is not None
        )
