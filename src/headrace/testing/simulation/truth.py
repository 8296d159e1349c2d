"""What is true of one partition, known to no broker: what was ever committed at which offset, and who led in which epoch.

Owns how far each replica's log agrees with that. Each look at a log is incremental. A partition is known by its topic's id, so
that a topic that is deleted and created again is another one.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.coordination.nodes import PartitionStateNode
from headrace.ids import TopicIdPartition, TopicPartition
from headrace.log.partition_log import PartitionLog
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import headers_in, read_header
from headrace.replication.partition import Partition
from headrace.testing.memory_disk import MemoryDisk
from headrace.testing.simulation.story import Violation
from headrace.wire.refusal import Refusal

_MAX_READ_BYTES: Final = 1 << 20
AFTER_EPOCH: Final = 16  # bytes of a batch before this one are stamped by the leader


class Batch(NamedTuple):
    """A batch as it lies in a log."""

    base_offset: int
    next_offset: int
    data: bytes

    def __str__(self) -> str:
        header = read_header(self.data)
        return (
            f"batch {self.base_offset}-{self.next_offset - 1} of leader epoch {header.leader_epoch}, "
            f"producer {header.producer_id}, sequence {header.base_sequence}"
        )


class Committed:
    """What is committed in a partition, by offset; compaction may take single records out of a log, but adds none."""

    def __init__(self) -> None:
        self.batches: dict[int, Batch] = {}
        self.deleted_before: dict[
            int, int
        ] = {}  # by base offset → deleted up to there at the commit
        self.end = 0  # the highest high watermark that any leader ever had
        self.is_compacted = False
        self.abandoned: set[Batch] = set()  # by unclean elections
        self._records: dict[int, Record] = {}
        self._recorded_to = 0

    def add(self, batch: Batch, deleted_to: int) -> None:
        """One more batch, at the end."""
        self.batches[batch.base_offset] = batch
        self.deleted_before[batch.base_offset] = deleted_to

    def cut(self, offset: int) -> None:
        """An unclean election gave up everything from an offset on."""
        for base_offset in [each for each in self.batches if each >= offset]:
            self.abandoned.add(self.batches.pop(base_offset))
            del self.deleted_before[base_offset]
        self._records = {at: each for at, each in self._records.items() if at < offset}
        self._recorded_to = min(self._recorded_to, offset)
        self.end = min(self.end, offset)

    def agrees(self, batch: Batch) -> bool:
        """Whether a batch of a log is what was committed there, or what compaction left of it."""
        if self.batches.get(batch.base_offset) == batch:
            return True
        if not self.is_compacted or batch.next_offset > self.end:
            return False
        records = self.records
        return all(
            _same_record(records.get(record.offset), record) for record in read_batch(batch.data)
        )

    @property
    def records(self) -> dict[int, Record]:
        """The committed records by offset."""
        for base_offset, batch in self.batches.items():
            if base_offset >= self._recorded_to:
                for record in read_batch(batch.data):
                    self._records[record.offset] = record
                self._recorded_to = batch.next_offset
        return self._records

    def newest_of_keys(self) -> dict[bytes | None, Record]:
        """What compaction has to keep: the last record of each key."""
        return {record.key: record for _, record in sorted(self.records.items())}


def _same_record(known: Record | None, record: Record) -> bool:
    return known is not None and known.key == record.key and known.value == record.value


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
        "sound_epoch",
        "start",
    )

    def __init__(self, log: PartitionLog) -> None:
        self.partition: Partition | None = None
        self.epochs = (-1, -1)  # of the leader and, while this replica leads, of the partition
        self.high_watermark = 0
        self.sound_epoch = -1  # of the last unclean election after which it agreed with the truth
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

    def compare(self, committed: Committed, deleted_to: int) -> None:
        """Go on comparing with what is committed and not deleted, where the last comparison ended."""
        while self.good < len(self.batches):
            batch = self.batches[self.good]
            if batch.next_offset > deleted_to and not committed.agrees(batch):
                return
            self.good += 1
            self.good_to = batch.next_offset

    def compare_anew(self) -> None:
        """Compare from the start the next time."""
        self.good, self.good_to = 0, self.start


def read_batches(log: PartitionLog, offset: int) -> list[Batch]:
    """All batches of a log from an offset on."""
    assert isinstance(log.disk, MemoryDisk)
    with log.disk.observed():
        return list(_batches(log, offset))


def _batches(log: PartitionLog, offset: int) -> Iterator[Batch]:
    while offset < log.log_end_offset:
        found = log.read(offset, _MAX_READ_BYTES, log.log_end_offset)
        if isinstance(found, Refusal):
            raise Violation(f"unreadable log: {log.topic_partition} at {offset}: {found}")
        if not found.length:
            break
        data = found.copy()
        with memoryview(data) as view:
            for position, header in headers_in(view):
                content = bytes(data[position : position + header.size])
                yield Batch(header.base_offset, header.next_offset, content)
                offset = header.next_offset


class Truth:
    """What is true of one partition."""

    def __init__(self, topic: str, where: TopicIdPartition) -> None:
        self.where = where
        self.name = TopicPartition(topic, where.partition)
        self.committed = Committed()
        self.deleted_to = 0
        self.leaders: dict[int, tuple[int, int]] = {}  # by epoch → (broker, life)
        self.views: dict[int, ReplicaView] = {}
        self.replicas: tuple[int, ...] = ()
        self.stored: PartitionStateNode | None = None
        self.stored_epoch = -1
        self.epoch_since_us = 0  # when the stored leader epoch began
        self.unclean_epoch = -1  # the last leader epoch that began with an unclean election
        self.lost: dict[int, int] = {}  # brokers that lost records → the store's transaction then
        self.allows_retention = False
        self._deletions: list[tuple[int, set[int]]] = []  # → brokers that must know of it
        self.is_deleted = False

    @property
    def end(self) -> int:
        """Everything below is committed."""
        return self.committed.end

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
            self.committed.add(batch, self.deleted_to)
        self.committed.end = high_watermark
        self.compare()

    def compare(self) -> None:
        """Look again how far each replica agrees with what is committed."""
        for view in self.views.values():
            view.compare(self.committed, self.deleted_to)

    def elected_uncleanly(self, leader: int, epoch: int) -> None:
        """The new leader's log is the truth from now on, whatever else was committed."""
        self.unclean_epoch = epoch
        view = self.views.get(leader)
        self.committed.cut(0 if view is None else view.good_to)
        for each in self.views.values():
            each.compare_anew()
        self.compare()

    def delete_to(self, offset: int) -> None:
        """Somebody wants everything below this offset deleted: whether and when a replica does it is its own affair."""
        if offset > self.deleted_to:
            self.deleted_to = offset
            self.compare()

    def deletion_answered(self, offset: int, live: set[int]) -> None:
        """DeleteRecords was answered without an error while these brokers were known to be alive."""
        self._deletions.append((offset, live))

    def disk_lost(self, broker_id: int) -> None:
        """A broker need not know any more what was deleted."""
        for _, live in self._deletions:
            live.discard(broker_id)

    def deleted_for_good(self, broker_id: int) -> int:
        """Below this offset a broker must have deleted everything, also when it was killed since."""
        if self.unclean_epoch >= 0:
            return 0
        return max((offset for offset, live in self._deletions if broker_id in live), default=0)

    def check_served(self, data: bytes) -> int:
        """Consistent read: what a consumer is given is committed, and always the same. Returns the next offset."""
        next_offset = -1
        with memoryview(data) as view:
            for position, header in headers_in(view):
                content = bytes(data[position : position + header.size])
                batch = Batch(header.base_offset, header.next_offset, content)
                if (
                    batch.next_offset > self.deleted_to
                    and not self.committed.agrees(batch)
                    and batch not in self.committed.abandoned
                ):
                    known = self.committed.batches.get(batch.base_offset)
                    raise Violation(
                        f"consistent read: {self.name} served {batch}, but committed is {known}, "
                        f"up to {self.end}"
                    )
                next_offset = header.next_offset
        return next_offset

    def check_acked(self, base_offset: int, sent: bytes) -> None:
        """Committed when acknowledged: with acks=all, at this very offset."""
        known = self.committed.batches.get(base_offset)
        if known is None or known.data[AFTER_EPOCH:] != sent[AFTER_EPOCH:]:
            raise Violation(
                f"acknowledged means committed: {self.name} at {base_offset} holds {known}, "
                f"committed up to {self.end}"
            )

    def places(self, sent: list[bytes]) -> list[int]:
        """The place of each batch among those that are committed; -1 for one that is not."""
        known = {
            batch.data[AFTER_EPOCH:]: place
            for place, batch in enumerate(self.committed.batches.values())
        }
        return [known.get(each[AFTER_EPOCH:], -1) for each in sent]

    def check_sequences(self) -> None:
        """Exactly once, in order: the batches of idempotent producers.

        A replica that starts empty learns of a producer only from what is not deleted: a batch may be there twice if nothing
        of its first copy was left when the second came, as in Kafka.
        """
        if self.unclean_epoch >= 0:
            return
        last: dict[
            tuple[int, int], tuple[int, int, int]
        ] = {}  # → first and next sequence, next offset
        for batch in self.committed.batches.values():
            header = read_header(batch.data)
            if header.producer_id < 0 or header.is_control:
                continue
            producer = header.producer_id, header.producer_epoch
            first, expected, next_offset = last.get(producer, (0, 0, 0))
            is_forgotten = next_offset <= self.committed.deleted_before[batch.base_offset]
            if header.base_sequence != expected and not (
                header.base_sequence == first and is_forgotten
            ):
                raise Violation(
                    f"exactly once: {self.name} at {batch.base_offset}: producer "
                    f"{header.producer_id} wrote {header.base_sequence}, not {expected}"
                )
            next_sequence = header.base_sequence + header.record_count
            last[producer] = header.base_sequence, next_sequence, batch.next_offset
