"""What can happen to a transactional id: requests as values, and timers.

Nothing here knows how a message is encoded or which of its versions was asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from headrace.coordinator.contract import Token
from headrace.coordinator.transaction.state import ProducerIdentity
from headrace.ids import NO_PRODUCER_ID, ProducerId, TopicPartition
from headrace.wire.error_code import ErrorCode


class ProducerIdAsked(NamedTuple):
    """InitProducerId with a transactional id. Answered with `IdentityAnswer` or `NEEDS_PRODUCER_ID`."""

    token: Token
    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None
    """What the producer has now, if it wants to go on after an error (KIP-360)."""
    fresh_producer_id: ProducerId | None = None


class PartitionsAdded(NamedTuple):
    """AddPartitionsToTxn and AddOffsetsToTxn. Answered with an `ErrorCode`."""

    token: Token
    transactional_id: str
    producer: ProducerIdentity
    partitions: frozenset[TopicPartition]
    client_version: int


class PartitionsVerified(NamedTuple):
    """AddPartitionsToTxn that only asks (KIP-890). Answered with an `ErrorCode` for each partition."""

    token: Token
    transactional_id: str
    producer: ProducerIdentity
    partitions: frozenset[TopicPartition]


class EndAsked(NamedTuple):
    """EndTxn. Answered with `IdentityAnswer` or `NEEDS_PRODUCER_ID`."""

    token: Token
    transactional_id: str
    producer: ProducerIdentity
    commit: bool
    client_version: int
    fresh_producer_id: ProducerId | None = None


class TransactionDescribed(NamedTuple):
    """One transactional id of a DescribeTransactions. Answered with its part of the response."""

    token: Token
    transactional_id: str


class TransactionsListed(NamedTuple):
    """ListTransactions, as far as this shard can answer it. Answered with a list, or an `ErrorCode`."""

    token: Token
    states: frozenset[str]
    producer_ids: frozenset[int]
    longer_than_ms: int
    """Negative for all."""
    matches: Callable[[str], bool]


TransactionRequestEvent = (
    ProducerIdAsked
    | PartitionsAdded
    | PartitionsVerified
    | EndAsked
    | TransactionDescribed
    | TransactionsListed
)


class IdentityAnswer(NamedTuple):
    """The producer id and epoch with which the producer goes on, or an error."""

    error: ErrorCode
    producer: ProducerIdentity = ProducerIdentity(NO_PRODUCER_ID, -1)


@dataclass(frozen=True, slots=True)
class NeedsProducerId:
    """Answer: nothing was done, because it takes a producer id that nobody has had."""


NEEDS_PRODUCER_ID: Final = NeedsProducerId()


@dataclass(frozen=True, slots=True)
class OverdueTimer:
    """Timer: look for transactions that are open for longer than their time-outs."""


@dataclass(frozen=True, slots=True)
class ExpiryTimer:
    """Timer: look for transactional ids that nobody has used for long."""
