"""What must be true after every step, whatever went wrong (reliability by name; docs/testing.md has the list).

Owns the truth that no broker knows: what was ever committed at which offset, who led in which epoch, and how far each
replica's log agrees with that. Each look is incremental; `look_again` reads every log from its disk, at the end.
"""

from collections.abc import Iterable
from typing import NamedTuple

from headrace.coordination.nodes import (
    BrokerEpochNode,
    ControllerEpochNode,
    PartitionStateNode,
)
from headrace.coordination.store import Node
from headrace.ids import TopicPartition
from headrace.log.append_result import Refused
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.records.batch_view import headers_in
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable

_MAX_READ_BYTES = 1 << 20
_AFTER_EPOCH = 16  # bytes of a batch before this one are stamped by the leader


class Violation(AssertionError):
    """Something that must never happen has happened."""


class Batch(NamedTuple):
    """A batch as it lies in a log."""

    base_offset: int
    next_offset: int
    data: bytes


class ReplicaView:
    """One replica's log, and how far it agrees with what is committed."""

    __slots__ = ("batches", "end", "good", "good_to", "high_watermark", "log", "partition", "start")

    def __init__(self, log: PartitionLog) -> None:
        self.partition: Partition | None = None
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
        if log is not self.log or start > self.end:
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

    def compare(self, committed: dict[int, Batch]) -> None:
        """Go on comparing with what is committed, where the last comparison ended."""
        while self.good < len(self.batches):
            batch = self.batches[self.good]
            if committed.get(batch.base_offset) != batch:
                return
            self.good += 1
            self.good_to = batch.next_offset


def read_batches(log: PartitionLog, offset: int) -> list[Batch]:
    """All batches of a log from an offset on."""
    batches: list[Batch] = []
    while offset < log.log_end_offset:
        found = log.read(offset, _MAX_READ_BYTES, log.log_end_offset)
        if isinstance(found, Refused) or not found.length:
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
        self.end = 0  # the highest high watermark that any leader ever had
        self.deleted_to = 0
        self.leaders: dict[int, tuple[int, int]] = {}  # by epoch → (broker, life)
        self.views: dict[int, ReplicaView] = {}
        self.stored: PartitionStateNode | None = None
        self.stored_epoch = -1

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
        self.end = high_watermark
        for each in self.views.values():
            each.compare(self.committed)

    def check_served(self, data: bytes) -> int:
        """Consistent read: what a consumer is given is committed, and always the same. Returns the next offset."""
        next_offset = -1
        with memoryview(data) as view:
            for position, header in headers_in(view):
                known = self.committed.get(header.base_offset)
                if known is None or known.data != data[position : position + header.size]:
                    raise Violation(
                        f"consistent read: {self.where} at {header.base_offset} was served as "
                        f"{header}, but {known} is committed"
                    )
                next_offset = header.next_offset
        return next_offset

    def check_acked(self, base_offset: int, sent: bytes) -> None:
        """Committed when acknowledged: with acks=all, at this very offset."""
        known = self.committed.get(base_offset)
        if known is None or known.data[_AFTER_EPOCH:] != sent[_AFTER_EPOCH:]:
            raise Violation(
                f"acknowledged, not committed: {self.where} at {base_offset} holds {known}, "
                f"committed up to {self.end}"
            )


class Invariants:
    """The truths of a cluster. The lives and deaths of its brokers are told to it."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.truths = {where: Truth(where) for where in partitions}
        self._paths = {PartitionStateNode.path(*where): where for where in self.truths}
        # Brokers that lost a disk, until the controller has seen an incarnation that came later.
        self._lost_at: dict[int, int] = {}
        self._is_changed = True

    # ---- the store

    def on_write(self, path: str, before: Node | None, after: Node | None) -> None:
        """Metadata monotonic: no epoch ever goes back."""
        self._is_changed = True
        where = self._paths.get(path)
        if where is not None and after is not None:
            truth = self.truths[where]
            state = PartitionStateNode.decode(path, after.data)
            if truth.stored is not None:
                if state.leader_epoch < truth.stored.leader_epoch:
                    raise Violation(f"metadata monotonic: {where}: {truth.stored} → {state}")
                if after.version <= truth.stored_epoch:
                    raise Violation(f"metadata monotonic: {where}: version {after.version}")
            truth.stored, truth.stored_epoch = state, after.version
        elif path == ControllerEpochNode.PATH and before is not None and after is not None:
            if int(after.data) <= int(before.data):
                raise Violation(f"metadata monotonic: controller epoch {after.data!r}")
        elif path.startswith(BrokerEpochNode.ROOT + "/") and after is not None:
            broker_id = int(path.rpartition("/")[2])
            seen = BrokerEpochNode.decode(broker_id, after.data).epoch
            if seen > self._lost_at.get(broker_id, seen):
                del self._lost_at[broker_id]

    def on_lost(self, broker_id: int, txn: int) -> None:
        """A broker's disk forgot something, or everything, at this point of the store's history."""
        self._is_changed = True
        self._lost_at[broker_id] = txn
        for truth in self.truths.values():
            truth.views.pop(broker_id, None)

    # ---- brokers

    def look(
        self,
        broker_id: int,
        life: int,
        log_dirs: LogDirs,
        partitions: PartitionTable,
    ) -> None:
        """Check all that a step of this broker can have broken."""
        for where, truth in self.truths.items():
            log = log_dirs.get(where)
            if log is None:
                self._is_changed |= truth.views.pop(broker_id, None) is not None
                continue
            view = truth.views.get(broker_id)
            if view is None:
                view = truth.views[broker_id] = ReplicaView(log)
                self._is_changed = True
            if view.refresh(log):
                self._is_changed = True
                view.compare(truth.committed)
            if view.start > truth.deleted_to:
                raise Violation(
                    f"{where}: the log of broker {broker_id} starts at {view.start}, "
                    f"but only {truth.deleted_to} was ever asked for"
                )
            partition = partitions.get(*where)
            if partition is not None:
                self._look_at_role(truth, view, partition, (broker_id, life))

    def _look_at_role(
        self, truth: Truth, view: ReplicaView, partition: Partition, who: tuple[int, int]
    ) -> None:
        where = truth.where
        high_watermark = partition.high_watermark
        if view.partition is partition and high_watermark < view.high_watermark:
            raise Violation(
                f"high watermark goes back: {where} on {who}: "
                f"{view.high_watermark} → {high_watermark}"
            )
        view.partition, view.high_watermark = partition, high_watermark
        leader = partition.leader
        if leader is not None:
            is_new = leader.leader_epoch not in truth.leaders
            first = truth.leaders.setdefault(leader.leader_epoch, who)
            if first != who:
                raise Violation(f"one leader: {where} epoch {leader.leader_epoch}: {first}, {who}")
            # One that another has replaced, and that does not know it yet, need not have what came later.
            if is_new and view.good_to < truth.end:
                raise Violation(
                    f"leader completeness: {where} is led by {who} in epoch "
                    f"{leader.leader_epoch}, which has {view.good_to} of {truth.end}"
                )
            if high_watermark > truth.end:
                self._check_quorum(truth, partition, who)
                truth.commit(view, high_watermark)
                self._is_changed = True
        if high_watermark > view.good_to:
            raise Violation(
                f"log matching: {where} on {who}: high watermark {high_watermark}, "
                f"sound up to {view.good_to}, committed up to {truth.end}"
            )

    @staticmethod
    def _check_quorum(truth: Truth, partition: Partition, who: tuple[int, int]) -> None:
        leader, stored = partition.leader, truth.stored
        assert leader is not None
        if stored is None or stored.leader_epoch != leader.leader_epoch:
            return
        counted = {*leader.isr, *(leader.proposed_isr or ())}
        if not counted.issuperset(stored.isr):
            raise Violation(
                f"quorum superset: {truth.where}: {who} counts {counted}, stored is {stored.isr}"
            )

    def check(self) -> None:
        """Strong ISR, and committed never lost: who is in sync has everything, and somebody has."""
        if not self._is_changed:
            return
        self._is_changed = False
        for truth in self.truths.values():
            if truth.stored is None:
                continue
            for member in truth.stored.isr:
                view = truth.views.get(member)
                if member not in self._lost_at and (
                    view.good_to < truth.end if view is not None else truth.end > 0
                ):
                    raise Violation(
                        f"strong ISR: {truth.where}: broker {member} is in {truth.stored.isr} with "
                        f"{view.good_to if view else 'nothing'} of {truth.end}"
                    )
            best = max((view.good_to for view in truth.views.values()), default=0)
            if best < truth.end:
                raise Violation(f"committed is lost: {truth.where}: {best} of {truth.end} is left")

    def look_again(self) -> None:
        """At the end: what lies on the disks is what was seen, and all replicas are the same."""
        for truth in self.truths.values():
            contents = {}
            for broker_id, view in truth.views.items():
                contents[broker_id] = read_batches(view.log, view.start)
                if contents[broker_id] != view.batches:
                    raise Violation(f"{truth.where} on {broker_id} is not what was written")
            start = max(view.start for view in truth.views.values())
            tails = {
                broker_id: [batch for batch in batches if batch.next_offset > start]
                for broker_id, batches in contents.items()
            }
            if any(tail != next(iter(tails.values())) for tail in tails.values()):
                raise Violation(f"replicas differ: {truth.where}")
