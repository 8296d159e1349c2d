"""Context of one event that a transaction machine handles: time, settings, state, and the outcome collected so far."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from headrace.coordinator.contract import CancelTimer, Effect, Outcome, Reply, SetTimer, Token
from headrace.coordinator.transaction.markers import markers_of
from headrace.coordinator.transaction.settings import TransactionSettings
from headrace.coordinator.transaction.state import ShardState, Transaction
from headrace.coordinator.transaction.stored_records import TransactionRecord


@dataclass(slots=True)
class EventContext:
    """Collects the outcome of one event."""

    now_ms: int
    settings: TransactionSettings
    state: ShardState
    records: list[TransactionRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    timers: list[SetTimer | CancelTimer] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    atomic: bool = True

    def find(self, transactional_id: str) -> Transaction | None:
        return self.state.transactions.get(transactional_id)

    def reply(self, token: Token, response: object) -> None:
        self.replies.append(Reply(token, response))

    def set_timer(self, key: Hashable, after_ms: int) -> None:
        self.timers.append(SetTimer(key, after_ms))

    def store(self, transactional_id: str, transaction: Transaction | None) -> None:
        self.records.append(TransactionRecord(transactional_id, transaction))

    def store_prepared(self, transactional_id: str, prepared: Transaction) -> Transaction:
        """Store a decided transaction and call for its markers; without partitions it is complete at once.

        Returns what the transactional id becomes with the completion.
        """
        self.store(transactional_id, prepared)
        completed = prepared.completed(self.now_ms)
        if prepared.partitions:
            self.effects.append(markers_of(transactional_id, prepared))
        else:
            self.store(transactional_id, completed)
        return completed

    def outcome(self) -> Outcome[TransactionRecord]:
        return Outcome(self.records, self.replies, self.timers, self.atomic, self.effects)
