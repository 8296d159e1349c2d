"""The replica that each partition is read from when its leader named a nearer one (KIP-392). Pure: callers give the time.

It owns what leaders said, for as long as Kafka's consumers keep it. Connections and requests are the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headrace.ids import TopicPartition

MAX_AGE_S: Final = 300.0  # metadata.max.age.ms of Kafka's clients


class ReadReplicas:
    """Remembers, per partition, the preferred read replica, or that the leader itself has to serve."""

    def __init__(self) -> None:
        self._chosen: dict[TopicPartition, tuple[int | None, float]] = {}

    def replica_for(self, partition: TopicPartition, now_s: float) -> int | None:
        """The broker to fetch from instead of the leader, or None."""
        broker_id, until_s = self._chosen.get(partition, (None, 0.0))
        return broker_id if now_s < until_s else None

    def must_leader_serve(self, partition: TopicPartition, now_s: float) -> bool:
        """Whether the leader is asked without a rack, because the replica that it named could not serve."""
        broker_id, until_s = self._chosen.get(partition, (None, 0.0))
        return broker_id is None and now_s < until_s

    def prefer(self, partition: TopicPartition, broker_id: int, now_s: float) -> None:
        """The leader named a replica."""
        self._chosen[partition] = (broker_id, now_s + MAX_AGE_S)

    def refuse(self, partition: TopicPartition, now_s: float) -> None:
        """The replica could not serve. The leader would name it again, so it is asked without a rack for a while."""
        self._chosen[partition] = (None, now_s + MAX_AGE_S)
