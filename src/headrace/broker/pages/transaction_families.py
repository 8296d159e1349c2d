"""Transactions: the transactional ids coordinated here by state, the markers held back, the verifications of produces (pure).

The names are Kafka's, but for the states, which have no name in Kafka.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import sub
from typing import Final, Protocol

from headrace.broker.pages.exposition import QUANTILES, family, labels, single, suffixed
from headrace.broker.requests.request_metrics import ApiTimes, quantile_s
from headrace.broker.requests.txn_verification import VerificationCounts
from headrace.coordinator.transaction.state import Status

_VERIFICATION: Final = "kafka_server_addpartitionstotxnmanager"
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


def verification_families(counts: VerificationCounts, earlier: Sequence[int]) -> Iterator[str]:
    """Questions to coordinators before a transaction writes to a partition. Quantiles are over those since `earlier`."""
    yield from single(
        f"{_VERIFICATION}_verificationfailurerate_count",
        "counter",
        "Partitions that a transactional produce could not write to, because the coordinator did not know them.",
        counts.failures,
    )
    yield from suffixed(
        f"{_VERIFICATION}_verificationtimems",
        "summary",
        "Milliseconds until the coordinator had answered; quantiles over the last minute or two.",
        _time_summary(counts.times, earlier),
    )


def _time_summary(times: ApiTimes, earlier: Sequence[int]) -> Iterator[tuple[str, str, float]]:
    recent = list(map(sub, times.buckets, earlier))
    if any(recent):
        for quantile, share in QUANTILES:
            yield "", labels(quantile=quantile), round(quantile_s(recent, share) * 1_000, 6)
    yield "_sum", "", round(times.seconds * 1_000, 6)
    yield "_count", "", times.calls
