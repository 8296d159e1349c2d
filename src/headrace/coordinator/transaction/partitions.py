"""The partitions of a transaction: adding them, and the question of a partition's leader whether it was added (KIP-890). Pure."""

from headrace.coordinator.transaction.event_context import EventContext
from headrace.coordinator.transaction.events import PartitionsAdded, PartitionsVerified
from headrace.coordinator.transaction.state import (
    MAX_EPOCH,
    ProducerIdentity,
    Status,
    Transaction,
)
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode


def add(event: PartitionsAdded, context: EventContext) -> None:
    """Handle AddPartitionsToTxn: the first partition begins the transaction."""
    transaction = context.find(event.transactional_id)
    error = _fault(event.transactional_id, event.producer, transaction)
    if error is ErrorCode.NONE and transaction is not None:
        is_new = transaction.status is not Status.ONGOING or not (
            event.partitions <= transaction.partitions
        )
        if is_new:
            context.store(
                event.transactional_id,
                transaction.with_partitions(event.partitions, event.client_version, context.now_ms),
            )
    context.reply(event.token, error)


def verify(event: PartitionsVerified, context: EventContext) -> None:
    """Handle AddPartitionsToTxn that only asks."""
    transaction = context.find(event.transactional_id)
    error = _fault(event.transactional_id, event.producer, transaction)
    added = frozenset() if transaction is None else transaction.partitions
    context.reply(
        event.token,
        {each: _verdict(each, added, error) for each in sorted(event.partitions)},
    )


def _verdict(
    partition: TopicPartition, added: frozenset[TopicPartition], error: ErrorCode
) -> ErrorCode:
    if error is not ErrorCode.NONE:
        return error
    return ErrorCode.NONE if partition in added else ErrorCode.TRANSACTION_ABORTABLE


def _fault(
    transactional_id: str, producer: ProducerIdentity, transaction: Transaction | None
) -> ErrorCode:
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    if transaction is None or transaction.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer.epoch != transaction.producer_epoch or producer.epoch == MAX_EPOCH:
        return ErrorCode.PRODUCER_FENCED
    if transaction.status.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE
