"""Dead letters: records that could not be decoded, kept in a topic with where they came from and why in their headers. Pure.

Key, value and headers of the record stay as they were; ours stand behind them. A letter that is sent back to its topic carries
`headrace.attempt` along, so that a record that fails again says how often it did.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headrace.ids import TopicPartition

ERROR: Final = "headrace.error"
TOPIC: Final = "headrace.topic"
PARTITION: Final = "headrace.partition"
OFFSET: Final = "headrace.offset"
ATTEMPT: Final = "headrace.attempt"
_OURS: Final = frozenset({ERROR, TOPIC, PARTITION, OFFSET, ATTEMPT})

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a dead letter comes from."""

    partition: TopicPartition
    offset: int
    attempt: int
    error: str


def letter_headers(
    headers: Headers, *, partition: TopicPartition, offset: int, error: str
) -> Headers:
    """The headers of the letter for a record with these headers."""
    attempt = _number(dict(headers).get(ATTEMPT)) + 1
    return (
        *without_ours(headers),
        (ERROR, error.encode()),
        (TOPIC, partition.topic.encode()),
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
    return Origin(
        partition=TopicPartition(topic.decode(errors="replace"), _number(found.get(PARTITION))),
        offset=_number(found.get(OFFSET)),
        attempt=_number(found.get(ATTEMPT)),
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
