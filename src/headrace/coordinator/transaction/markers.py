"""The effect of a decided transaction: its markers, one to each partition that takes part.

Owns what the effect says. Finding the leaders of the partitions and repeating what fails is left to the broker.
"""

from typing import NamedTuple

from headrace.coordinator.transaction.state import Status, Transaction
from headrace.ids import ProducerId, TopicPartition


class WriteMarkers(NamedTuple):
    """Write the outcome of a transaction to all its partitions.

    The epoch tells it from the markers of the same id's other transactions: equal effects are the same work.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int
    commit: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


def markers_of(transactional_id: str, transaction: Transaction) -> WriteMarkers:
    """The markers of a prepared transaction."""
    assert transaction.status.is_prepared, transaction
    return WriteMarkers(
        transactional_id=transactional_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        commit=transaction.status is Status.PREPARE_COMMIT,
        transaction_version=transaction.client_version,
        partitions=tuple(sorted(transaction.partitions)),
    )
