"""What a partition remembers of its producers (pure): idempotence, and transactions that are still open.

Per producer the last six batches are kept: a retry of one of them is answered with the offset it got the first time. A client
may have five in flight, and librdkafka may have sent one more to a former leader before them. The last stable offset follows from the transactions that are open, or ended
but not yet replicated.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple, Self

from headrace.log.segments.txn_index import AbortedTxn
from headrace.records.batch_view import NO_SEQUENCE, NO_TIMESTAMP, BatchHeader, sequence_after
from headrace.records.control_batch import ControlType
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

BATCHES_KEPT: Final = 6
NO_EPOCH: Final = -1
_HALF_OF_SEQUENCES: Final = 2**30


class KnownBatch(NamedTuple):
    """A batch that a producer has written, as far as a retry of it must be recognised."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int

    @classmethod
    def of(cls, batch: BatchHeader) -> Self:
        """What is kept of a batch."""
        return cls(
            batch.base_sequence,
            batch.last_sequence,
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
        )


class ProducerEntry:
    """One producer, as this partition knows it."""

    __slots__ = (
        "appended_ms",
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_EPOCH
        self.batches: deque[KnownBatch] = deque(maxlen=BATCHES_KEPT)
        self.coordinator_epoch = -1
        self.last_timestamp = NO_TIMESTAMP  # of its records
        self.appended_ms = NO_TIMESTAMP  # by this broker's clock; unknown after a start
        self.txn_first_offset: int | None = None

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; -1 if nothing was written in this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Offset of the last record; -1 if nothing was written in this epoch."""
        return self.batches[-1].last_offset if self.batches else -1

    def enter_epoch(self, epoch: int) -> None:
        """A new epoch starts its sequences anew."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class Verification:
    """A batch of a transaction that is not open here is being verified with the transaction coordinator (KIP-890).

    The object itself is the guard: it is forgotten when the producer's first batch or a marker is written, so that an answer of
    the coordinator that is older than the marker proves nothing.
    """

    __slots__ = ("epoch", "is_implicit", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, sequence: int, now_ms: int, *, is_implicit: bool) -> None:
        """`is_implicit`: the coordinator adds the partition by itself (transaction version 2)."""
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.is_implicit = is_implicit
        self.since_ms = now_ms

    def note(self, epoch: int, sequence: int) -> None:
        """One more batch waits. A higher sequence may not be written before the lowest one that was seen."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class EndedTxn(NamedTuple):
    """A transaction whose marker has just been written."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


NOT_VERIFIED: Final = Verification(0, 0, 0, is_implicit=False)
"""Where verification is switched off: every transactional batch is taken."""


class ProducerState:
    """All producers of one partition."""

    __slots__ = ("_entries", "_open", "_unreplicated", "_verifications")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        self._verifications: dict[int, Verification] = {}  # by producer id
        self._open: dict[int, int] = {}  # first offset → producer id, in ascending order of offset
        self._unreplicated: dict[int, int] = {}  # first offset → marker's offset

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    @property
    def highest_id(self) -> int:
        """The highest producer id; -1 if there is no producer."""
        return max(self._entries, default=-1)

    def entry(self, producer_id: int) -> ProducerEntry | None:
        """What is known of a producer."""
        return self._entries.get(producer_id)

    # ---- deciding

    def has_open_txn(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of this producer, in this epoch, has written here and was not ended."""
        entry = self._entries.get(producer_id)
        return (
            entry is not None
            and entry.txn_first_offset is not None
            and entry.epoch == producer_epoch
        )

    def verification(
        self,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        now_ms: int,
        *,
        is_implicit: bool,
    ) -> Verification | None:
        """The verification that a transactional batch needs before it is appended; None if its transaction is open here."""
        if self.has_open_txn(producer_id, producer_epoch):
            return None
        known = self._verifications.get(producer_id)
        if known is None:
            known = Verification(producer_epoch, sequence, now_ms, is_implicit=is_implicit)
            self._verifications[producer_id] = known
        known.note(producer_epoch, sequence)
        return known

    def check(
        self, batch: BatchHeader, verified: Verification | None = None, *, from_client: bool = True
    ) -> KnownBatch | Refusal | None:
        """For a producer's batch: the batch it repeats, a refusal, or None if it may be appended.

        Batches of coordinators (`from_client` is False) have no sequence numbers. `verified` is what the coordinator has said
        yes to; a client's transaction that is not open here needs it.
        """
        entry = self._entries.get(batch.producer_id)
        known: KnownBatch | Refusal | None = None
        if entry is not None:
            check = self._check_known if from_client else self._check_epoch
            known = check(batch, entry)
        if known is None and batch.is_transactional:
            return self._check_verified(batch, entry, verified)
        return known

    def _check_verified(
        self, batch: BatchHeader, entry: ProducerEntry | None, verified: Verification | None
    ) -> Refusal | None:
        if verified is NOT_VERIFIED or self.has_open_txn(batch.producer_id, batch.producer_epoch):
            return None
        if verified is None or self._verifications.get(batch.producer_id) is not verified:
            return Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id}: its transaction is not open here, or was ended meanwhile",
            )
        must_start_at_0 = verified.is_implicit and (entry is None or not entry.batches)
        lowest = 0 if must_start_at_0 else verified.lowest_sequence
        if batch.base_sequence > lowest:
            return Refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id}: sequence {batch.base_sequence} where {lowest} comes first",
            )
        return None

    @staticmethod
    def _check_epoch(batch: BatchHeader, entry: ProducerEntry) -> Refusal | None:
        if batch.producer_epoch < entry.epoch:
            return Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {batch.producer_id} has epoch {entry.epoch}, the batch {batch.producer_epoch}",
            )
        return None

    def _check_known(self, batch: BatchHeader, entry: ProducerEntry) -> KnownBatch | Refusal | None:
        if batch.producer_epoch < entry.epoch:
            return self._check_epoch(batch, entry)
        if batch.producer_epoch == entry.epoch:
            last_sequence = batch.last_sequence
            for known in entry.batches:
                if (
                    known.first_sequence == batch.base_sequence
                    and known.last_sequence == last_sequence
                ):
                    return known
        return self._check_sequence(batch, entry) or self._check_transaction(batch, entry)

    def is_behind_gap(self, batch: BatchHeader) -> bool:
        """Whether batches are missing between the producer's last one here and this one."""
        entry = self._entries.get(batch.producer_id)
        if entry is None or batch.producer_epoch < entry.epoch:
            return False
        distance = sequence_after(batch.base_sequence, -self._next_sequence(batch, entry))
        return 0 < distance < _HALF_OF_SEQUENCES

    @staticmethod
    def _next_sequence(batch: BatchHeader, entry: ProducerEntry) -> int:
        is_same_epoch = batch.producer_epoch == entry.epoch
        return sequence_after(entry.last_sequence, 1) if is_same_epoch else 0

    @classmethod
    def _check_sequence(cls, batch: BatchHeader, entry: ProducerEntry) -> Refusal | None:
        expected = cls._next_sequence(batch, entry)
        if batch.base_sequence == expected:
            return None
        return Refusal(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {batch.producer_id}: sequence {batch.base_sequence} where {expected} comes next "
            f"(epoch {batch.producer_epoch}, last known {entry.epoch})",
        )

    @staticmethod
    def _check_transaction(batch: BatchHeader, entry: ProducerEntry) -> Refusal | None:
        if entry.txn_first_offset is not None and not batch.is_transactional:
            return Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id} has an open transaction and wrote outside of it",
            )
        return None

    def check_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        has_epoch_bump: bool = False,
    ) -> Refusal | None:
        """Whether the coordinator may end this producer's transaction.

        `has_epoch_bump` (transaction version 2): the marker's epoch is above the one that the transaction wrote in, so that a
        marker of an earlier transaction, which comes late, does not end this one. The same epoch is a marker that is repeated.
        """
        entry = self._entries.get(producer_id)
        if entry is None:
            return None
        is_late = (
            has_epoch_bump and producer_epoch == entry.epoch and entry.txn_first_offset is not None
        )
        if producer_epoch < entry.epoch or is_late:
            return Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} has epoch {entry.epoch}, the marker {producer_epoch}",
            )
        if coordinator_epoch < entry.coordinator_epoch:
            return Refusal(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {coordinator_epoch} is older than {entry.coordinator_epoch}",
            )
        return None

    # ---- changing, for batches that are in the log

    def note_data(self, batch: BatchHeader) -> None:
        """A producer's data batch stands in the log."""
        entry = self._entry_of(batch.producer_id)
        entry.enter_epoch(batch.producer_epoch)
        if batch.base_sequence != NO_SEQUENCE:
            entry.batches.append(KnownBatch.of(batch))
        entry.last_timestamp = batch.max_timestamp
        if batch.is_transactional:
            self._verifications.pop(batch.producer_id, None)
            if entry.txn_first_offset is None:
                entry.txn_first_offset = batch.base_offset
                self._open[batch.base_offset] = batch.producer_id

    def note_marker(
        self, batch: BatchHeader, control_type: int, coordinator_epoch: int
    ) -> EndedTxn | None:
        """A marker stands in the log. Returns the transaction it ended, if one was open."""
        self._verifications.pop(batch.producer_id, None)
        entry = self._entry_of(batch.producer_id)
        entry.enter_epoch(batch.producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = batch.max_timestamp
        first_offset, entry.txn_first_offset = entry.txn_first_offset, None
        if first_offset is None:
            return None
        del self._open[first_offset]
        self._unreplicated[first_offset] = batch.last_offset
        return EndedTxn(
            batch.producer_id, first_offset, batch.last_offset, control_type == ControlType.ABORT
        )

    def aborted_txn(self, ended: EndedTxn) -> AbortedTxn:
        """The index entry of an aborted transaction: with the last stable offset as its marker left it."""
        still_open = min(self._open, default=ended.last_offset + 1)
        return AbortedTxn(
            ended.producer_id,
            ended.first_offset,
            ended.last_offset,
            min(still_open, ended.last_offset + 1),
        )

    def on_high_watermark(self, high_watermark: int) -> None:
        """Ended transactions whose marker is replicated no longer hold back readers."""
        if self._unreplicated:
            for first_offset, last_offset in list(self._unreplicated.items()):
                if last_offset < high_watermark:
                    del self._unreplicated[first_offset]

    @property
    def first_unstable_offset(self) -> int | None:
        """Start of the earliest transaction that is open, or ended but not replicated."""
        if not self._open and not self._unreplicated:
            return None
        return min(*self._open, *self._unreplicated, 2**63 - 1)

    @property
    def oldest_txn_timestamp(self) -> int:
        """When the producer of the earliest open transaction wrote last; -1 if no transaction is open."""
        if not self._open:
            return NO_TIMESTAMP
        return self._entries[self._open[min(self._open)]].last_timestamp

    def put(self, entry: ProducerEntry) -> None:
        """From a snapshot: a producer as it was."""
        self._entries[entry.producer_id] = entry
        if entry.txn_first_offset is not None:
            self._open[entry.txn_first_offset] = entry.producer_id

    def recall(self, batch: BatchHeader) -> None:
        """A data batch stands before the last one of its producer, which is all that Kafka's snapshots tell. In ascending order."""
        entry = self._entries.get(batch.producer_id)
        if entry is None or not entry.batches or batch.producer_epoch != entry.epoch:
            return
        if any(known.base_offset == batch.base_offset for known in entry.batches):
            return
        if batch.last_offset < entry.batches[-1].base_offset and batch.base_sequence != NO_SEQUENCE:
            last = entry.batches.pop()
            entry.batches.extend((KnownBatch.of(batch), last))

    def note_append(self, producer_id: int, now_ms: int) -> None:
        """This broker has just appended batches of a producer."""
        entry = self._entries.get(producer_id)
        if entry is not None:
            entry.appended_ms = now_ms

    def keep_append_times(self, earlier: "ProducerState") -> None:
        """Take over when this broker appended, which snapshots do not tell, from the state that this one replaces."""
        for entry in self:
            known = earlier.entry(entry.producer_id)
            if known is not None:
                entry.appended_ms = known.appended_ms

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent for long and have no open transaction. Returns how many.

        Unlike Kafka's, the later of the records' timestamps and the time of the append counts: a producer that copies old
        records would be forgotten at every check, and a retry after that would be appended again.
        """
        for producer_id, verification in list(self._verifications.items()):
            if now_ms - verification.since_ms >= expiration_ms:
                del self._verifications[producer_id]
        silent = [
            producer_id
            for producer_id, entry in self._entries.items()
            if entry.txn_first_offset is None
            and now_ms - max(entry.last_timestamp, entry.appended_ms) >= expiration_ms
        ]
        for producer_id in silent:
            del self._entries[producer_id]
        return len(silent)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._open.clear()
        self._unreplicated.clear()
        self._verifications.clear()

    def _entry_of(self, producer_id: int) -> ProducerEntry:
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id)
        return entry
