"""Small types that every part shares: what a number or a string identifies, and ids as text."""

from base64 import b64decode, urlsafe_b64encode
from typing import NamedTuple, NewType
from uuid import UUID

BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)

NO_PRODUCER_ID = ProducerId(-1)
NO_LEADER_EPOCH = -1
NO_TOPIC_ID = UUID(int=0)


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


def text_of_id(identifier: UUID) -> str:
    """An id of a topic, a directory or a cluster as Kafka writes it: URL-safe base 64 without padding, 22 characters."""
    return urlsafe_b64encode(identifier.bytes).decode().rstrip("=")


def id_of_text(text: str) -> UUID:
    """The id that `text_of_id` wrote. Raises ValueError for any other text."""
    try:
        # The decoder still takes what "-" and "_" stand for.
        plain = text.replace("+", " ").replace("/", " ")
        return UUID(bytes=b64decode(plain + "==", b"-_", validate=True))
    except ValueError as error:
        raise ValueError(f"{text!r} is not an id of 22 characters in URL-safe base 64") from error
