"""InitProducerId with a transactional id: gives a producer its id and epoch, and fences the one before it. Pure."""

from headrace.coordinator.transaction.event_context import EventContext
from headrace.coordinator.transaction.events import (
    NEEDS_PRODUCER_ID,
    IdentityAnswer,
    NeedsProducerId,
    ProducerIdAsked,
)
from headrace.coordinator.transaction.state import (
    LAST_USABLE_EPOCH,
    MAX_EPOCH,
    NO_EPOCH,
    ProducerIdentity,
    Status,
    Transaction,
)
from headrace.wire.error_code import ErrorCode


def initialize(event: ProducerIdAsked, context: EventContext) -> None:
    """Handle InitProducerId."""
    transaction = context.find(event.transactional_id)
    error = _fault(event, transaction, context)
    if error is not ErrorCode.NONE:
        context.reply(event.token, IdentityAnswer(error))
    elif transaction is not None and transaction.status is Status.ONGOING:
        # The epoch in `expected` is not compared here, as in Kafka: the producer hears that it is fenced when it comes back.
        context.store_prepared(event.transactional_id, transaction.fenced(context.now_ms))
        context.reply(event.token, IdentityAnswer(ErrorCode.CONCURRENT_TRANSACTIONS))
    else:
        _give_identity(event, transaction, context)


def _fault(
    event: ProducerIdAsked, transaction: Transaction | None, context: EventContext
) -> ErrorCode:
    if not event.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < event.timeout_ms <= context.settings.max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    if transaction is None:
        return ErrorCode.NONE
    if event.expected is not None and not _may_have_been(event.expected, transaction):
        return ErrorCode.PRODUCER_FENCED
    if transaction.status.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE


def _may_have_been(expected: ProducerIdentity, transaction: Transaction) -> bool:
    """Whether the producer id is the present one, or the one before it and was used up."""
    return expected.producer_id == transaction.producer_id or (
        expected.producer_id == transaction.previous_producer_id
        and expected.epoch >= LAST_USABLE_EPOCH
    )


def _give_identity(
    event: ProducerIdAsked, transaction: Transaction | None, context: EventContext
) -> None:
    given = _first(event, context) if transaction is None else _next(event, transaction, context)
    if isinstance(given, NeedsProducerId):
        context.reply(event.token, given)
    elif isinstance(given, ErrorCode):
        context.reply(event.token, IdentityAnswer(given))
    else:
        context.store(event.transactional_id, given)
        context.reply(event.token, IdentityAnswer(ErrorCode.NONE, given.identity))


def _first(event: ProducerIdAsked, context: EventContext) -> Transaction | NeedsProducerId:
    if event.fresh_producer_id is None:
        return NEEDS_PRODUCER_ID
    return Transaction(
        producer_id=event.fresh_producer_id,
        producer_epoch=0,
        timeout_ms=event.timeout_ms,
        status=Status.EMPTY,
        last_update_ms=context.now_ms,
        previous_producer_id=event.fresh_producer_id,  # as Kafka stores it
    )


def _next(
    event: ProducerIdAsked, transaction: Transaction, context: EventContext
) -> Transaction | NeedsProducerId | ErrorCode:
    """The same producer goes on, or another takes its place: in both cases with an epoch that nobody has had."""
    expected, now_ms = event.expected, context.now_ms
    if expected is not None and expected.epoch != transaction.producer_epoch:
        if expected.epoch != transaction.last_producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        if transaction.producer_epoch != MAX_EPOCH:
            # The answer was lost, or the coordinator aborted. Nobody else can be harmed: for another producer the last epoch
            # would have been forgotten.
            return transaction.with_timeout(event.timeout_ms, now_ms)
    last_epoch = NO_EPOCH if expected is None else transaction.producer_epoch
    if not transaction.is_exhausted:
        return transaction.with_epoch(
            transaction.producer_epoch + 1, last_epoch, event.timeout_ms, now_ms
        )
    if event.fresh_producer_id is None:
        return NEEDS_PRODUCER_ID
    return transaction.with_producer_id(
        event.fresh_producer_id, last_epoch, event.timeout_ms, now_ms
    )
