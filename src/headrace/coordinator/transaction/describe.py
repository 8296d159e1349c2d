"""Looking at transactions: DescribeTransactions and ListTransactions. Pure, changes nothing."""

from itertools import groupby
from operator import attrgetter

from headrace.coordinator.transaction.event_context import EventContext
from headrace.coordinator.transaction.events import TransactionDescribed, TransactionsListed
from headrace.coordinator.transaction.state import Transaction
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages import describe_transactions, list_transactions


def describe(event: TransactionDescribed, context: EventContext) -> None:
    """Handle one transactional id of a DescribeTransactions."""
    transactional_id = event.transactional_id
    transaction = context.find(transactional_id)
    if not transactional_id:
        described = describe_transactions.TransactionState(error_code=ErrorCode.INVALID_REQUEST)
    elif transaction is None:
        described = describe_transactions.TransactionState(
            transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        )
    else:
        described = _described(transactional_id, transaction)
    context.reply(event.token, described)


def _described(
    transactional_id: str, transaction: Transaction
) -> describe_transactions.TransactionState:
    return describe_transactions.TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.status.value,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            describe_transactions.TopicData(
                topic=topic, partitions=[each.partition for each in partitions]
            )
            for topic, partitions in groupby(sorted(transaction.partitions), attrgetter("topic"))
        ],
    )


def list_all(event: TransactionsListed, context: EventContext) -> None:
    """Handle this shard's part of a ListTransactions."""
    context.reply(
        event.token,
        [
            list_transactions.TransactionState(
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.status.value,
            )
            for transactional_id, transaction in context.state.transactions.items()
            if _is_asked_for(transaction, event, context.now_ms) and event.matches(transactional_id)
        ],
    )


def _is_asked_for(transaction: Transaction, event: TransactionsListed, now_ms: int) -> bool:
    return (
        (not event.producer_ids or transaction.producer_id in event.producer_ids)
        and (not event.states or transaction.status.value in event.states)
        and (event.longer_than_ms < 0 or now_ms - transaction.start_ms > event.longer_than_ms)
    )
