"""Small types that every part shares: what a number or a string identifies."""

from typing import Final, NamedTuple, NewType
from uuid import UUID

BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)

NO_PRODUCER_ID = ProducerId(-1)
NO_LEADER_EPOCH = -1
NO_TOPIC_ID = UUID(int=0)
# Topics of the coordinators. A key's hash modulo the number of partitions says which one holds it.
INTERNAL_TOPICS: Final = frozenset(
    ("__consumer_offsets", "__transaction_state", "__share_group_state")
)


class TopicPartition(NamedTuple):
    """A partition, by the name of its topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A partition, by the id of its topic: unlike a name, an id is never used again."""

    topic_id: UUID
    partition: int
