"""The form of a refusal, per request. Pure.

Used when a request cannot be decided at all: not the coordinator, still loading, records not stored.
"""

from typing import assert_never

from headrace.coordinator.transaction import events
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_transactions import TransactionState


def refusal(event: events.TransactionRequestEvent, error: ErrorCode) -> object:
    """The answer to this request that says only: no, because of that."""
    match event:
        case events.ProducerIdAsked() | events.EndAsked():
            return events.IdentityAnswer(error)
        case events.PartitionsVerified(partitions=partitions):
            return dict.fromkeys(sorted(partitions), error)
        case events.TransactionDescribed(transactional_id=transactional_id):
            return TransactionState(transactional_id=transactional_id, error_code=error)
        case events.PartitionsAdded() | events.TransactionsListed():
            return error
    assert_never(event)
