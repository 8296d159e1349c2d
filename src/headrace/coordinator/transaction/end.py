"""The end of transactions: EndTxn, the abort of overdue ones, and the completion once all markers are written. Pure.

Under version 1 a repeated EndTxn can be told from the next one only by the status. Under version 2 its epoch tells: it is one
less than the stored one, or the last epoch of the producer id before the present one.
"""

from typing import Final

from headrace.coordinator.contract import EffectDone
from headrace.coordinator.transaction.event_context import EventContext
from headrace.coordinator.transaction.events import (
    NEEDS_PRODUCER_ID,
    EndAsked,
    IdentityAnswer,
    OverdueTimer,
)
from headrace.coordinator.transaction.markers import WriteMarkers, markers_of
from headrace.coordinator.transaction.state import (
    BUMPS_AT_END,
    LAST_USABLE_EPOCH,
    MAX_EPOCH,
    Status,
    Transaction,
)
from headrace.ids import NO_PRODUCER_ID
from headrace.wire.error_code import ErrorCode

_PARTITIONS_PER_ROUND: Final = 1_000
_NEXT_ROUND_MS: Final = 250
"""Overdue transactions share a batch of the log, so one round must not take them all."""


def end(event: EndAsked, context: EventContext) -> None:
    """Handle EndTxn."""
    transaction = context.find(event.transactional_id)
    if not event.transactional_id:
        context.reply(event.token, IdentityAnswer(ErrorCode.INVALID_REQUEST))
    elif transaction is None:
        context.reply(event.token, IdentityAnswer(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
    elif event.client_version >= BUMPS_AT_END:
        _end_raising_epoch(event, transaction, context)
    else:
        _end_keeping_epoch(event, transaction, context)


# -- version 1 -----------------------------------------------------------------------------------


def _end_keeping_epoch(event: EndAsked, transaction: Transaction, context: EventContext) -> None:
    error = _fault_keeping_epoch(event, transaction)
    if error is not ErrorCode.NONE:
        context.reply(event.token, IdentityAnswer(error))
        return
    if transaction.status is Status.ONGOING:
        _prepare(event, transaction, context)
    context.reply(event.token, IdentityAnswer(ErrorCode.NONE, transaction.identity))


def _fault_keeping_epoch(event: EndAsked, transaction: Transaction) -> ErrorCode:
    if transaction.producer_id != event.producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if _is_fenced(event, transaction):
        return ErrorCode.PRODUCER_FENCED
    if transaction.status is Status.ONGOING:
        return ErrorCode.NONE
    return _answer_to_repetition(event, transaction)


# -- version 2 -----------------------------------------------------------------------------------


def _end_raising_epoch(event: EndAsked, transaction: Transaction, context: EventContext) -> None:
    is_repeated = _is_repeated(event, transaction)
    error = _fault_raising_epoch(event, transaction, is_repeated=is_repeated)
    if error is not ErrorCode.NONE:
        context.reply(event.token, IdentityAnswer(error))
    elif is_repeated:
        context.reply(event.token, IdentityAnswer(ErrorCode.NONE, transaction.identity))
    elif transaction.is_exhausted and event.fresh_producer_id is None:
        context.reply(event.token, NEEDS_PRODUCER_ID)
    else:
        completed = _prepare(event, transaction, context)
        context.reply(event.token, IdentityAnswer(ErrorCode.NONE, completed.identity))


def _is_repeated(event: EndAsked, transaction: Transaction) -> bool:
    given = event.producer
    if given.producer_id == transaction.producer_id:
        return given.epoch + 1 == transaction.producer_epoch
    return _is_before_change_of_ids(event, transaction)


def _is_before_change_of_ids(event: EndAsked, transaction: Transaction) -> bool:
    return (
        event.producer.producer_id == transaction.previous_producer_id
        and event.producer.epoch == LAST_USABLE_EPOCH
        and transaction.producer_epoch == 0
    )


def _fault_raising_epoch(
    event: EndAsked, transaction: Transaction, *, is_repeated: bool
) -> ErrorCode:
    status = transaction.status
    if transaction.producer_id != event.producer.producer_id and not is_repeated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if status.is_prepared:
        return (
            _answer_to_repetition(event, transaction) if is_repeated else ErrorCode.PRODUCER_FENCED
        )
    if is_repeated and status in (Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT):
        return _answer_to_repetition(event, transaction)
    if is_repeated or _is_fenced(event, transaction):
        return ErrorCode.PRODUCER_FENCED
    if status is Status.ONGOING or not event.commit:
        # Without a transaction, an abort is how a producer fences requests of which it does not know whether they arrived.
        return ErrorCode.NONE
    return ErrorCode.INVALID_TXN_STATE


# -- both ----------------------------------------------------------------------------------------


def _is_fenced(event: EndAsked, transaction: Transaction) -> bool:
    epoch = event.producer.epoch
    return epoch != transaction.producer_epoch or epoch == MAX_EPOCH


def _answer_to_repetition(event: EndAsked, transaction: Transaction) -> ErrorCode:
    """The transaction has its outcome: done, under way, or not what is asked for."""
    status = transaction.status
    if status is (Status.COMPLETE_COMMIT if event.commit else Status.COMPLETE_ABORT):
        return ErrorCode.NONE
    if status is (Status.PREPARE_COMMIT if event.commit else Status.PREPARE_ABORT):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE


def _prepare(event: EndAsked, transaction: Transaction, context: EventContext) -> Transaction:
    changes_id = event.client_version >= BUMPS_AT_END and transaction.is_exhausted
    next_producer_id = event.fresh_producer_id if changes_id else NO_PRODUCER_ID
    assert next_producer_id is not None, event
    return context.store_prepared(
        event.transactional_id,
        transaction.prepared(
            commit=event.commit,
            client_version=event.client_version,
            next_producer_id=next_producer_id,
            now_ms=context.now_ms,
        ),
    )


def abort_overdue(context: EventContext) -> None:
    """The timer fired: abort transactions that are open for too long, and set the timer again."""
    context.set_timer(OverdueTimer(), context.settings.abort_check_interval_ms)
    partition_count = 0
    for transactional_id in context.state.ongoing:
        transaction = context.state.transactions[transactional_id]
        if not transaction.is_overdue(context.now_ms):
            continue
        partition_count += len(transaction.partitions)
        if context.records and partition_count > _PARTITIONS_PER_ROUND:
            context.set_timer(OverdueTimer(), _NEXT_ROUND_MS)
            break
        context.store_prepared(transactional_id, transaction.fenced(context.now_ms))


def complete(event: EffectDone, context: EventContext) -> None:
    """Every marker is written. Says nothing of a transaction that has gone on since."""
    effect = event.effect
    assert isinstance(effect, WriteMarkers), effect
    transaction = context.find(effect.transactional_id)
    if transaction is None or not transaction.status.is_prepared:
        return
    if markers_of(effect.transactional_id, transaction) == effect:
        context.store(effect.transactional_id, transaction.completed(context.now_ms))
