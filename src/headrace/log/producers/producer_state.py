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
        self.last_timestamp = NO_TIMESTAMP
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


class EndedTxn(NamedTuple):
    """A transaction whose marker has just been written."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerState:
    """All producers of one partition."""

    __slots__ = ("_entries", "_open", "_unreplicated")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
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

    def check(self, batch: BatchHeader) -> KnownBatch | Refusal | None:
        """For a producer's batch: the batch it repeats, a refusal, or None if it may be appended."""
        entry = self._entries.get(batch.producer_id)
        if entry is None:
            return None  # unknown or expired: any sequence may start
        if batch.producer_epoch < entry.epoch:
            return Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {batch.producer_id} has epoch {entry.epoch}, the batch {batch.producer_epoch}",
            )
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

    def check_marker(self, batch: BatchHeader, coordinator_epoch: int) -> Refusal | None:
        """Whether the coordinator may end this producer's transaction."""
        entry = self._entries.get(batch.producer_id)
        if entry is None:
            return None
        if batch.producer_epoch < entry.epoch:
            return Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {batch.producer_id} has epoch {entry.epoch}, the marker {batch.producer_epoch}",
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
        if batch.is_transactional and entry.txn_first_offset is None:
            entry.txn_first_offset = batch.base_offset
            self._open[batch.base_offset] = batch.producer_id

    def note_marker(
        self, batch: BatchHeader, control_type: int, coordinator_epoch: int
    ) -> EndedTxn | None:
        """A marker stands in the log. Returns the transaction it ended, if one was open."""
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

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent for long and have no open transaction. Returns how many."""
        silent = [
            producer_id
            for producer_id, entry in self._entries.items()
            if entry.txn_first_offset is None and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in silent:
            del self._entries[producer_id]
        return len(silent)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._open.clear()
        self._unreplicated.clear()

    def _entry_of(self, producer_id: int) -> ProducerEntry:
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id)
        return entry
