"""What is true of one partition, known to no broker: what was ever committed at which offset, and who led in which epoch.

Owns how far each replica's log agrees with that. Each look at a log is incremental.
"""

from typing import Final, NamedTuple

from headrace.coordination.nodes import PartitionStateNode
from headrace.ids import TopicPartition
from headrace.log.partition_log import PartitionLog
from headrace.records.batch_view import headers_in, read_header
from headrace.replication.partition import Partition
from headrace.wire.refusal import Refusal

_MAX_READ_BYTES: Final = 1 << 20
AFTER_EPOCH: Final = 16  # bytes of a batch before this one are stamped by the leader


class Violation(AssertionError):
    """Something that must never happen has happened."""


class Batch(NamedTuple):
    """A batch as it lies in a log."""

    base_offset: int
    next_offset: int
    data: bytes


class ReplicaView:
    """One replica's log, and how far it agrees with what is committed."""

    __slots__ = (
        "batches",
        "end",
        "epochs",
        "good",
        "good_to",
        "high_watermark",
        "log",
        "partition",
        "start",
    )

    def __init__(self, log: PartitionLog) -> None:
        self.partition: Partition | None = None
        self.epochs = (-1, -1)  # of the leader and, while this replica leads, of the partition
        self.high_watermark = 0
        self._begin(log)

    def _begin(self, log: PartitionLog) -> None:
        self.log = log
        self.batches: list[Batch] = []
        self.start = self.end = self.good_to = log.log_start_offset
        self.good = 0  # so many batches agree

    def refresh(self, log: PartitionLog) -> bool:
        """Take in what has changed. Returns whether anything has."""
        end, start = log.log_end_offset, log.log_start_offset
        if log is self.log and end == self.end and start == self.start:
            return False
        if start < self.start:
            # It began inside a batch, which is whole now: nobody was served what lies before.
            self.high_watermark = min(self.high_watermark, start)
        if log is not self.log or not self.start <= start <= self.end:
            self._begin(log)
        elif end < self.end:
            while self.batches and self.batches[-1].next_offset > end:
                self.batches.pop()
            self.good = min(self.good, len(self.batches))
            self.good_to = min(self.good_to, end)
            self.end = end
        if end > self.end:
            self.batches += read_batches(log, self.end)
            self.end = end
        if start > self.start:
            self._forget(start)
        self.start = start
        return True

    def _forget(self, start: int) -> None:
        """What lies before the start is deleted: whatever it was, nobody can read it any more."""
        gone = 0
        while gone < len(self.batches) and self.batches[gone].next_offset <= start:
            gone += 1
        del self.batches[:gone]
        self.good = max(self.good - gone, 0)
        self.good_to = max(self.good_to, start)

    def compare(self, committed: dict[int, Batch], deleted_to: int) -> None:
        """Go on comparing with what is committed and not deleted, where the last comparison ended."""
        while self.good < len(self.batches):
            batch = self.batches[self.good]
            if committed.get(batch.base_offset) != batch and batch.next_offset > deleted_to:
                return
            self.good += 1
            self.good_to = batch.next_offset


def read_batches(log: PartitionLog, offset: int) -> list[Batch]:
    """All batches of a log from an offset on."""
    batches: list[Batch] = []
    while offset < log.log_end_offset:
        found = log.read(offset, _MAX_READ_BYTES, log.log_end_offset)
        if isinstance(found, Refusal) or not found.length:
            raise Violation(f"{log.topic_partition} cannot be read at {offset}: {found}")
        data = found.copy()
        with memoryview(data) as view:
            for position, header in headers_in(view):
                content = data[position : position + header.size]
                batches.append(Batch(header.base_offset, header.next_offset, content))
        offset = batches[-1].next_offset
    return batches


class Truth:
    """What is true of one partition."""

    def __init__(self, where: TopicPartition) -> None:
        self.where = where
        self.committed: dict[int, Batch] = {}
        self.deleted_before: dict[int, int] = {}  # by base offset → `deleted_to` at the commit
        self.end = 0  # the highest high watermark that any leader ever had
        self.deleted_to = 0
        self.leaders: dict[int, tuple[int, int]] = {}  # by epoch → (broker, life)
        self.views: dict[int, ReplicaView] = {}
        self.stored: PartitionStateNode | None = None
        self.stored_epoch = -1

    @property
    def waits_for_operator(self) -> bool:
        """Whether a disk was lost while nobody was in sync, so that only an unclean election gives a leader again."""
        stored = self.stored
        return (
            stored is not None
            and bool(stored.emptied)
            and not (stored.isr or stored.elr or stored.last_known_elr)
        )

    def commit(self, view: ReplicaView, high_watermark: int) -> None:
        """A leader says that everything below its high watermark is committed."""
        fresh = []
        for batch in reversed(view.batches):
            if batch.base_offset < self.end:
                break
            if batch.next_offset <= high_watermark:
                fresh.append(batch)
        for batch in reversed(fresh):
            self.committed[batch.base_offset] = batch
            self.deleted_before[batch.base_offset] = self.deleted_to
        self.end = high_watermark
        self.compare()

    def compare(self) -> None:
        """Look again how far each replica agrees with what is committed."""
        for view in self.views.values():
            view.compare(self.committed, self.deleted_to)

    def delete_to(self, offset: int) -> None:
        """Somebody wants everything below this offset deleted: whether and when a replica does it is its own affair."""
        if offset > self.deleted_to:
            self.deleted_to = offset
            self.compare()

    def check_served(self, data: bytes) -> int:
        """Consistent read: what a consumer is given is committed, and always the same. Returns the next offset."""
        next_offset = -1
        with memoryview(data) as view:
            for position, header in headers_in(view):
                known = self.committed.get(header.base_offset)
                is_same = known is not None and known.data == data[position:][: header.size]
                if not is_same and header.next_offset > self.deleted_to:
                    raise Violation(
                        f"consistent read: {self.where} at {header.base_offset} was served as "
                        f"{header}, but {known} is committed"
                    )
                next_offset = header.next_offset
        return next_offset

    def check_acked(self, base_offset: int, sent: bytes) -> None:
        """Committed when acknowledged: with acks=all, at this very offset."""
        known = self.committed.get(base_offset)
        if known is None or known.data[AFTER_EPOCH:] != sent[AFTER_EPOCH:]:
            raise Violation(
                f"acknowledged, not committed: {self.where} at {base_offset} holds {known}, "
                f"committed up to {self.end}"
            )

    def check_sequences(self) -> None:
        """Exactly once, in order: the batches of idempotent producers, each with one on its way at a time.

        A replica that starts empty learns of a producer only from what is not deleted: a batch may be there twice if nothing
        of its first copy was left when the second came, as in Kafka.
        """
        last: dict[int, tuple[int, int, int]] = {}  # → first and next sequence, next offset
        for batch in self.committed.values():
            header = read_header(batch.data)
            if header.producer_id < 0:
                continue
            first, expected, next_offset = last.get(header.producer_id, (0, 0, 0))
            is_forgotten = next_offset <= self.deleted_before[batch.base_offset]
            if header.base_sequence != expected and not (
                header.base_sequence == first and is_forgotten
            ):
                raise Violation(
                    f"exactly once: {self.where} at {batch.base_offset}: producer "
                    f"{header.producer_id} wrote {header.base_sequence}, not {expected}"
                )
            next_sequence = header.base_sequence + header.record_count
            last[header.producer_id] = header.base_sequence, next_sequence, batch.next_offset
