"""Transactions coordinated here: how many transactional ids are in which state, and what keeps markers back (pure).

`UnknownDestinationQueueSize` is Kafka's name; the states have no name in Kafka.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from headrace.broker.pages.exposition import family, labels, single
from headrace.coordinator.transaction.state import Status

_MARKERS: Final = "kafka_coordinator_transaction_transactionmarkerchannelmanager"


class TransactionCounts(Protocol):
    """What is counted of the transactional ids that this broker coordinates."""

    @property
    def transactions_by_status(self) -> Mapping[Status, int]:
        """Transactional ids per status."""


class MarkerCounts(Protocol):
    """What is counted of the markers that are to be written."""

    @property
    def without_leader(self) -> int:
        """Markers whose partition has no leader."""


def transaction_families(transactions: TransactionCounts, markers: MarkerCounts) -> Iterator[str]:
    """Transactional ids by state, and markers without a destination."""
    by_status = transactions.transactions_by_status
    yield from family(
        "headrace_transactional_ids",
        "gauge",
        "Transactional ids coordinated here, by the state of their transaction.",
        [(labels(state=status.value), by_status.get(status, 0)) for status in Status],
    )
    yield from single(
        f"{_MARKERS}_unknowndestinationqueuesize",
        "gauge",
        "Transaction markers that wait for their partition to have a leader.",
        markers.without_leader,
    )
