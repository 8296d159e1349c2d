"""What must hold after every event and its replay. Pure; called by `TransactionMachine.check`."""

from headrace.coordinator.transaction.state import (
    MAX_EPOCH,
    NO_START,
    ShardState,
    Status,
    Transaction,
)
from headrace.ids import NO_PRODUCER_ID


def check(state: ShardState) -> None:
    """Assert every invariant of a loaded shard."""
    transactions = state.transactions
    assert state.ongoing.keys() == {
        each for each, transaction in transactions.items() if transaction.status is Status.ONGOING
    }, state
    assert state.prepared.keys() == {
        each for each, transaction in transactions.items() if transaction.status.is_prepared
    }, state
    for transaction in transactions.values():
        _check_transaction(transaction)


def _check_transaction(transaction: Transaction) -> None:
    assert transaction.producer_id >= 0, transaction
    assert 0 <= transaction.producer_epoch <= MAX_EPOCH, transaction
    if transaction.status.is_idle:
        assert not transaction.partitions, transaction
    if transaction.status is not Status.EMPTY:
        assert transaction.start_ms != NO_START, transaction
    if not transaction.status.is_prepared:
        assert transaction.next_producer_id == NO_PRODUCER_ID, transaction
