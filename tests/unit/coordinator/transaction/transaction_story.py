"""Drives a TransactionMachine as the runtime does, without loop, clock or log: tests read like stories.

Each record goes through its bytes and back before it is replayed, every invariant is checked after every event, a token that
is answered twice fails at once, and effects are done when the test says so.
"""

from headrace.coordinator.contract import (
    EffectDone,
    Loaded,
    SetTimer,
    StoredRecord,
    TimerFired,
    Token,
)
from headrace.coordinator.timers import Deadlines
from headrace.coordinator.transaction import events
from headrace.coordinator.transaction.events import IdentityAnswer
from headrace.coordinator.transaction.machine import TransactionMachine
from headrace.coordinator.transaction.markers import WriteMarkers
from headrace.coordinator.transaction.refusals import refusal
from headrace.coordinator.transaction.settings import TransactionSettings
from headrace.coordinator.transaction.state import (
    NO_EPOCH,
    ProducerIdentity,
    Status,
    Transaction,
)
from headrace.coordinator.transaction.stored_records import decode_record, encode_record
from headrace.ids import NO_PRODUCER_ID, ProducerId, TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages import describe_transactions, list_transactions

START_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
P0 = TopicPartition("orders", 0)
P1 = TopicPartition("orders", 1)
TV1 = 0
TV2 = 2
NOBODY = ProducerIdentity(NO_PRODUCER_ID, NO_EPOCH)


def producer(producer_id: int, epoch: int) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(producer_id), epoch)


class Story:
    """One shard, told event by event."""

    def __init__(self, settings: TransactionSettings | None = None) -> None:
        self.settings = settings or TransactionSettings()
        self.now_ms = START_MS
        self.log: list[StoredRecord] = []
        self.batches: list[int] = []
        self.answers: dict[Token, object] = {}
        self.refuse_appends = False
        self.next_id = 1_000
        self._asked: dict[Token, events.TransactionRequestEvent] = {}
        self.fail_over()

    # -- the machinery ---------------------------------------------------------------------------

    def fail_over(self) -> None:
        """A new leader: nothing is known but the log."""
        self.machine = TransactionMachine(self.settings)
        self.timers = Deadlines()
        for key, value in self.log:
            record = decode_record(key, value)
            assert record is not None
            self.machine.replay(record)
        self._tell(Loaded())
        self.owed: list[WriteMarkers] = []
        for effect in self.machine.owed_effects():
            assert isinstance(effect, WriteMarkers)
            self.owed.append(effect)

    def ask(self, event: events.TransactionRequestEvent) -> object:
        self._asked[event.token] = event
        self._tell(event)
        return self.answers[event.token]

    def token(self) -> Token:
        return Token(len(self._asked) + 1)

    def _tell(
        self, event: events.TransactionRequestEvent | TimerFired | EffectDone | Loaded
    ) -> bool:
        outcome = self.machine.handle(event, self.now_ms)
        stored = not (self.refuse_appends and outcome.records)
        assert outcome.atomic or not outcome.effects
        if stored:
            if outcome.records:
                self.batches.append(len(outcome.records))
            for record in outcome.records:
                key, value = encode_record(record)
                self.log.append((key, value))
                read = decode_record(key, value)
                assert read is not None
                if record.transaction is not None:
                    # The last epoch is not stored.
                    assert read.transaction == record.transaction._replace(
                        last_producer_epoch=NO_EPOCH
                    )
                self.machine.replay(record)
            for effect in outcome.effects:
                assert isinstance(effect, WriteMarkers)
                assert effect not in self.owed
                self.owed.append(effect)
        for reply in outcome.replies:
            assert reply.token not in self.answers, f"answered twice: {reply}"
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            self.answers[reply.token] = (
                reply.response if stored else refusal(self._asked[reply.token], error)
            )
        for timer in outcome.timers:
            assert isinstance(timer, SetTimer)
            self.timers.set(timer.key, self.now_ms + timer.after_ms)
        self.machine.check()
        return stored

    def sleep(self, ms: int) -> None:
        """Let time pass; timers fire at their moments."""
        end_ms = self.now_ms + ms
        while (next_ms := self.timers.next_ms()) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            key = self.timers.pop_due(self.now_ms)
            assert key is not None
            self._tell(TimerFired(key))
        self.now_ms = end_ms

    def write_markers(self) -> list[WriteMarkers]:
        """All markers that are owed are written. Returns them."""
        written, self.owed = self.owed, []
        for effect in written:
            if not self.tell_done(effect):
                self.owed.append(effect)
        return written

    def tell_done(self, effect: WriteMarkers) -> bool:
        return self._tell(EffectDone(effect, None))

    def transaction(self, transactional_id: str = "t") -> Transaction:
        return self.machine.state.transactions[transactional_id]

    def status(self) -> Status:
        return self.transaction().status

    # -- requests --------------------------------------------------------------------------------

    def initialize(
        self,
        expected: ProducerIdentity | None = None,
        *,
        transactional_id: str = "t",
        timeout_ms: int = TIMEOUT_MS,
    ) -> IdentityAnswer:
        """InitProducerId, with a fresh producer id if it takes one."""
        fresh: ProducerId | None = None
        while True:
            answer = self.ask(
                events.ProducerIdAsked(
                    token=self.token(),
                    transactional_id=transactional_id,
                    timeout_ms=timeout_ms,
                    expected=expected,
                    fresh_producer_id=fresh,
                )
            )
            if isinstance(answer, IdentityAnswer):
                return answer
            fresh = self._fresh()

    def add(
        self,
        given: ProducerIdentity,
        *partitions: TopicPartition,
        transactional_id: str = "t",
        version: int = TV1,
    ) -> ErrorCode:
        answer = self.ask(
            events.PartitionsAdded(
                token=self.token(),
                transactional_id=transactional_id,
                producer=given,
                partitions=frozenset(partitions),
                client_version=version,
            )
        )
        assert isinstance(answer, ErrorCode)
        return answer

    def verify(
        self, given: ProducerIdentity, *partitions: TopicPartition, transactional_id: str = "t"
    ) -> dict[TopicPartition, ErrorCode]:
        answer = self.ask(
            events.PartitionsVerified(
                token=self.token(),
                transactional_id=transactional_id,
                producer=given,
                partitions=frozenset(partitions),
            )
        )
        assert isinstance(answer, dict)
        return answer

    def end(
        self,
        given: ProducerIdentity,
        *,
        commit: bool = True,
        transactional_id: str = "t",
        version: int = TV1,
    ) -> IdentityAnswer:
        """EndTxn, with a fresh producer id if it takes one."""
        fresh: ProducerId | None = None
        while True:
            answer = self.ask(
                events.EndAsked(
                    token=self.token(),
                    transactional_id=transactional_id,
                    producer=given,
                    commit=commit,
                    client_version=version,
                    fresh_producer_id=fresh,
                )
            )
            if isinstance(answer, IdentityAnswer):
                return answer
            fresh = self._fresh()

    def describe(self, transactional_id: str = "t") -> describe_transactions.TransactionState:
        answer = self.ask(
            events.TransactionDescribed(token=self.token(), transactional_id=transactional_id)
        )
        assert isinstance(answer, describe_transactions.TransactionState)
        return answer

    def list_all(
        self,
        *states: str,
        producer_ids: tuple[int, ...] = (),
        longer_than_ms: int = -1,
        containing: str = "",
    ) -> list[list_transactions.TransactionState]:
        answer = self.ask(
            events.TransactionsListed(
                token=self.token(),
                states=frozenset(states),
                producer_ids=frozenset(producer_ids),
                longer_than_ms=longer_than_ms,
                matches=lambda transactional_id: containing in transactional_id,
            )
        )
        assert isinstance(answer, list)
        return answer

    def _fresh(self) -> ProducerId:
        self.next_id += 1
        return ProducerId(self.next_id)

    # -- whole steps -----------------------------------------------------------------------------

    def begin(
        self,
        *partitions: TopicPartition,
        transactional_id: str = "t",
        version: int = TV1,
    ) -> ProducerIdentity:
        """A new producer begins a transaction."""
        given = self.initialize(transactional_id=transactional_id).producer
        added = self.add(
            given, *(partitions or (P0,)), transactional_id=transactional_id, version=version
        )
        assert added is ErrorCode.NONE
        return given

    def set_epoch(self, epoch: int) -> ProducerIdentity:
        """The producer has come to this epoch, as if by many transactions."""
        transaction = self.transaction()._replace(producer_epoch=epoch)
        self.machine.state.put("t", transaction)
        return transaction.identity
