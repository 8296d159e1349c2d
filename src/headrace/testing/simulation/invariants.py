"""What must be true after every step, whatever went wrong (reliability by name; docs/testing/simulation.md has the list).

Told of every write to the store and of every step, life and death of a broker. Only what can have changed is looked at;
`look_again` reads every log from its disk, at the end.
"""

from collections.abc import Iterable

from headrace.coordination.nodes import (
    BrokerEpochNode,
    ControllerEpochNode,
    PartitionStateNode,
)
from headrace.coordination.store import Node
from headrace.ids import TopicPartition
from headrace.log.log_dirs import LogDirs
from headrace.replication.leader import LeaderState
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.testing.simulation.truth import ReplicaView, Truth, Violation, read_batches


class Invariants:
    """The truths of a cluster. The lives and deaths of its brokers are told to it."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.truths = {where: Truth(where) for where in partitions}
        self._paths = {PartitionStateNode.path(*where): where for where in self.truths}
        # Brokers that died, and those that lost a disk, until the controller has seen an incarnation that came later.
        self._died_at: dict[int, int] = {}
        self._lost_at: dict[int, int] = {}
        self._is_changed = True

    # ---- the store

    def on_write(self, path: str, before: Node | None, after: Node | None) -> None:
        """Metadata monotonic: no epoch ever goes back."""
        self._is_changed = True
        if after is None:
            return
        where = self._paths.get(path)
        if where is not None:
            self._on_state(self.truths[where], PartitionStateNode.decode(path, after.data), after)
        elif path == ControllerEpochNode.PATH and before is not None:
            if int(after.data) <= int(before.data):
                raise Violation(f"metadata monotonic: controller epoch {after.data!r}")
        elif path.startswith(BrokerEpochNode.ROOT + "/"):
            self._on_seen(int(path.rpartition("/")[2]), before, after)

    @staticmethod
    def _on_state(truth: Truth, state: PartitionStateNode, node: Node) -> None:
        if truth.stored is not None:
            if state.leader_epoch < truth.stored.leader_epoch:
                raise Violation(f"metadata monotonic: {truth.where}: {truth.stored} → {state}")
            if node.version <= truth.stored_epoch:
                raise Violation(f"metadata monotonic: {truth.where}: version {node.version}")
        truth.stored, truth.stored_epoch = state, node.version

    def _on_seen(self, broker_id: int, before: Node | None, after: Node) -> None:
        """The controller has taken note of an incarnation of a broker."""
        seen = BrokerEpochNode.decode(broker_id, after.data).epoch
        if before is not None and seen < BrokerEpochNode.decode(broker_id, before.data).epoch:
            raise Violation(f"metadata monotonic: broker {broker_id}: {before.data!r} → {seen}")
        if seen > self._lost_at.get(broker_id, seen):
            del self._lost_at[broker_id]
        if seen > self._died_at.get(broker_id, seen):
            del self._died_at[broker_id]
            self._check_excluded(broker_id)

    def _check_excluded(self, broker_id: int) -> None:
        """Unclean exclusion: who died has to catch up, unless it leads because nobody else can."""
        for truth in self.truths.values():
            stored = truth.stored
            if stored is not None and broker_id in stored.isr and stored.isr != (stored.leader,):
                raise Violation(
                    f"unclean exclusion: {truth.where}: broker {broker_id} died and is in {stored}"
                )

    def on_died(self, broker_id: int, txn: int) -> None:
        """A broker that was registered died, at this point of the store's history."""
        self._died_at[broker_id] = txn

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
                view.compare(truth.committed, truth.deleted_to)
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
        where, leader = truth.where, partition.leader
        high_watermark = partition.high_watermark
        epochs = partition.leader_epoch, -1 if leader is None else leader.partition_epoch
        if view.partition is partition:
            if high_watermark < view.high_watermark:
                raise Violation(
                    f"high watermark goes back: {where} on {who}: "
                    f"{view.high_watermark} → {high_watermark}"
                )
            if epochs[0] < view.epochs[0] or -1 < epochs[1] < view.epochs[1]:
                raise Violation(
                    f"metadata monotonic: {where} on {who}: {view.epochs} → {epochs} (leader, "
                    "partition)"
                )
        # Several changes may come at once: one that led when it was last seen may have moved on and be replaced since.
        may_commit = leader is not None or (view.partition is partition and view.epochs[1] != -1)
        view.partition, view.high_watermark, view.epochs = partition, high_watermark, epochs
        if leader is not None:
            self._look_at_leader(truth, view, leader, who)
        if may_commit and high_watermark > truth.end:
            truth.commit(view, high_watermark)
            self._is_changed = True
        if high_watermark > view.good_to:
            raise Violation(
                f"log matching: {where} on {who}: high watermark {high_watermark}, "
                f"sound up to {view.good_to}, committed up to {truth.end}"
            )

    @staticmethod
    def _look_at_leader(
        truth: Truth, view: ReplicaView, leader: LeaderState, who: tuple[int, int]
    ) -> None:
        where, epoch, stored = truth.where, leader.leader_epoch, truth.stored
        is_new = epoch not in truth.leaders
        first = truth.leaders.setdefault(epoch, who)
        if first != who:
            raise Violation(f"one leader: {where} epoch {epoch}: {first}, {who}")
        # One that others have replaced before it knew that it leads need not have what they committed.
        if is_new and epoch == max(truth.leaders) and view.good_to < truth.end:
            raise Violation(
                f"leader completeness: {where} is led by {who} in epoch {epoch}, "
                f"which has {view.good_to} of {truth.end}"
            )
        if view.high_watermark > truth.end and stored is not None and stored.leader_epoch == epoch:
            counted = {*leader.isr, *(leader.proposed_isr or ())}
            if not counted.issuperset(stored.isr):
                raise Violation(
                    f"quorum superset: {where}: {who} counts {counted}, stored is {stored.isr}"
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
            if truth.waits_for_operator:
                continue
            start = max(view.start for view in truth.views.values())
            tails = {
                broker_id: [batch for batch in batches if batch.next_offset > start]
                for broker_id, batches in contents.items()
            }
            if any(tail != next(iter(tails.values())) for tail in tails.values()):
                raise Violation(f"replicas differ: {truth.where}")
