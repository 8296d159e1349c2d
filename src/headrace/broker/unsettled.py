"""The partitions that wait for their turn to be given a role (pure).

New ones in the order of their creation. Of those that change hands, the ones that are to be led here come first: nobody
else takes their records meanwhile.
"""

from collections.abc import Iterable
from itertools import chain, islice

from headrace.ids import TopicPartition


class Unsettled:
    """An ordered set; each knows whether it is new."""

    __slots__ = ("_others", "_urgent")

    def __init__(self) -> None:
        self._urgent: dict[TopicPartition, bool] = {}
        self._others: dict[TopicPartition, bool] = {}

    def __len__(self) -> int:
        return len(self._urgent) + len(self._others)

    def add_new(self, topic: str, indexes: Iterable[int]) -> None:
        """Partitions that were not here before."""
        self._others.update((TopicPartition(topic, index), True) for index in indexes)

    def add(self, topic_partition: TopicPartition, *, is_led_here: bool) -> None:
        """One that is here, with another role to come."""
        is_new = self.take(topic_partition)
        (self._urgent if is_led_here else self._others)[topic_partition] = is_new

    def take(self, topic_partition: TopicPartition) -> bool:
        """It waits no longer. Returns whether it was waiting and is new."""
        was_urgent = self._urgent.pop(topic_partition, False)
        return self._others.pop(topic_partition, False) or was_urgent

    def first(self, limit: int | None) -> list[TopicPartition]:
        """Whose turn it is; at most so many."""
        return list(islice(chain(self._urgent, self._others), limit))
