"""Dead letters: records that could not be decoded, kept in a topic with where they came from and why in their headers. Pure.

Key, value and headers of the record stay as they were; ours stand behind them. A letter that is sent back to its topic carries
`headrace.attempt` along, so that a record that fails again says how often it did. Topic, topic id, partition, offset and attempt
are the identity of a letter: two letters that agree in them are copies, and only one of them is sent back.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from headrace.ids import TopicPartition

ERROR: Final = "headrace.error"
TOPIC: Final = "headrace.topic"
TOPIC_ID: Final = "headrace.topic.id"
PARTITION: Final = "headrace.partition"
OFFSET: Final = "headrace.offset"
ATTEMPT: Final = "headrace.attempt"
_OURS: Final = frozenset({ERROR, TOPIC, TOPIC_ID, PARTITION, OFFSET, ATTEMPT})

Headers = tuple[tuple[str, bytes | None], ...]


class Identity(NamedTuple):
    """What two copies of one letter have in common. The topic's id tells a topic from its successor of the same name."""

    partition: TopicPartition
    topic_id: str
    offset: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a dead letter comes from."""

    identity: Identity
    error: str

    @property
    def partition(self) -> TopicPartition:
        return self.identity.partition

    @property
    def offset(self) -> int:
        return self.identity.offset

    @property
    def attempt(self) -> int:
        return self.identity.attempt


def letter_headers(
    headers: Headers,
    *,
    partition: TopicPartition,
    offset: int,
    error: str,
    topic_id: str | None = None,
) -> Headers:
    """The headers of the letter for a record with these headers."""
    attempt = _number(dict(headers).get(ATTEMPT)) + 1
    return (
        *without_ours(headers),
        (ERROR, error.encode()),
        (TOPIC, partition.topic.encode()),
        *(((TOPIC_ID, topic_id.encode()),) if topic_id is not None else ()),
        (PARTITION, b"%d" % partition.partition),
        (OFFSET, b"%d" % offset),
        (ATTEMPT, b"%d" % attempt),
    )


def origin_of(headers: Iterable[tuple[str, bytes | None]]) -> Origin | None:
    """Where a letter came from, or None where it is no letter of ours."""
    found = dict(headers)
    topic = found.get(TOPIC)
    if not topic:
        return None
    name = topic.decode(errors="replace")
    return Origin(
        identity=Identity(
            partition=TopicPartition(name, _number(found.get(PARTITION))),
            topic_id=(found.get(TOPIC_ID) or b"").decode(errors="replace"),
            offset=_number(found.get(OFFSET)),
            attempt=_number(found.get(ATTEMPT)),
        ),
        error=(found.get(ERROR) or b"").decode(errors="replace"),
    )


def redriven_headers(headers: Headers) -> Headers:
    """The headers of a record that is sent back: its own, and how often it was tried."""
    attempt = dict(headers).get(ATTEMPT) or b"1"
    return (*without_ours(headers), (ATTEMPT, attempt))


def without_ours(headers: Headers) -> Headers:
    return tuple(each for each in headers if each[0] not in _OURS)


def _number(text: bytes | None) -> int:
    try:
        return int(text or b"0")
    except ValueError:
        return 0
