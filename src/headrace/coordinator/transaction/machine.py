"""TransactionMachine: the core of one `__transaction_state` partition. Routes events, replays records, checks.

Owns the `ShardState`. Every decision is in the module named after the request; this one only knows who decides what, and how
a record changes the state. All state is what the log says; a coordinator that died after a decision leaves a prepared
transaction, whose markers are owed.
"""

from collections import Counter
from collections.abc import Iterable
from typing import assert_never

from headrace.coordinator.contract import Effect, EffectDone, Loaded, Outcome, TimerFired
from headrace.coordinator.transaction import (
    describe,
    end,
    events,
    expiry,
    invariants,
    partitions,
    producer,
)
from headrace.coordinator.transaction.event_context import EventContext
from headrace.coordinator.transaction.markers import markers_of
from headrace.coordinator.transaction.settings import TransactionSettings
from headrace.coordinator.transaction.state import ShardState, Status
from headrace.coordinator.transaction.stored_records import TransactionRecord


class TransactionMachine:
    """A `contract.Machine` for the transactional ids of one shard."""

    __slots__ = ("_settings", "state")

    def __init__(self, settings: TransactionSettings) -> None:
        self._settings = settings
        self.state = ShardState()

    def handle(
        self, event: events.TransactionRequestEvent | TimerFired | EffectDone | Loaded, now_ms: int
    ) -> Outcome[TransactionRecord]:
        context = EventContext(now_ms, self._settings, self.state)
        match event:
            case TimerFired(key=events.OverdueTimer()):
                end.abort_overdue(context)
            case TimerFired():
                expiry.expire(context)
            case EffectDone():
                end.complete(event, context)
            case Loaded():
                context.set_timer(events.OverdueTimer(), self._settings.abort_check_interval_ms)
                context.set_timer(events.ExpiryTimer(), self._settings.expiry_check_interval_ms)
            case _:
                _decide(event, context)
        return context.outcome()

    def replay(self, record: TransactionRecord) -> None:
        if record.transaction is None:
            self.state.remove(record.transactional_id)
        else:
            self.state.put(record.transactional_id, record.transaction)

    def owed_effects(self) -> Iterable[Effect]:
        return [
            markers_of(transactional_id, transaction)
            for transactional_id, transaction in self.state.prepared_transactions()
        ]

    def check(self) -> None:
        invariants.check(self.state)

    # -- what can be counted ---------------------------------------------------------------------

    @property
    def transactions_by_status(self) -> Counter[Status]:
        return Counter(each.status for each in self.state.transactions.values())


def _decide(event: events.TransactionRequestEvent, context: EventContext) -> None:
    match event:
        case events.ProducerIdAsked():
            producer.initialize(event, context)
        case events.PartitionsAdded():
            partitions.add(event, context)
        case events.PartitionsVerified():
            partitions.verify(event, context)
        case events.EndAsked():
            end.end(event, context)
        case events.TransactionDescribed():
            describe.describe(event, context)
        case events.TransactionsListed():
            describe.list_all(event, context)
        case _:
            assert_never(event)
