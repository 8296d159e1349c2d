"""Queue of partitions whose role (leader or follower) has been published by the controller but not applied here yet (pure).

Partitions that are hosted here and will be led here come first, because no broker accepts their records until then. The
others follow in the order in which they were added. A partition is named by its topic's id, because a topic that is
deleted and created again under the same name is another topic.
"""

from itertools import chain, islice

from headrace.ids import TopicIdPartition


class RoleQueue:
    """An ordered set; each partition knows whether it was created while this broker was running."""

    __slots__ = ("_others", "_urgent")

    def __init__(self) -> None:
        self._urgent: dict[TopicIdPartition, bool] = {}
        self._others: dict[TopicIdPartition, bool] = {}

    def __len__(self) -> int:
        return len(self._urgent) + len(self._others)

    def __contains__(self, partition: TopicIdPartition) -> bool:
        return partition in self._urgent or partition in self._others

    def add_new(self, partition: TopicIdPartition) -> None:
        """Add a partition that has just been created: no log directory can hold a log of it yet."""
        self._others[partition] = True

    def add(self, partition: TopicIdPartition, *, is_urgent: bool) -> None:
        """Add a partition, or change whether a partition in the queue is urgent."""
        is_new = self.remove(partition)
        (self._urgent if is_urgent else self._others)[partition] = is_new

    def remove(self, partition: TopicIdPartition) -> bool:
        """Remove a partition if it is in the queue. Returns whether it was there and is new."""
        was_urgent = self._urgent.pop(partition, False)
        return self._others.pop(partition, False) or was_urgent

    def first(self, limit: int | None) -> list[TopicIdPartition]:
        """The partitions whose roles are applied next, at most `limit`."""
        return list(islice(chain(self._urgent, self._others), limit))
