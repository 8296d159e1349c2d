"""What must be true after every step, whatever went wrong. docs/testing/simulation.md has the list.

Told of every write to the store and of every step, life and death of a broker. Only what can have changed is looked at;
`look_again` reads every log from its disk, when everything has healed.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from headrace.broker.lifecycle import BrokerState
from headrace.broker.wiring import BrokerComponents
from headrace.controller.values import NO_LEADER
from headrace.coordination.nodes import (
    BrokerEpochNode,
    ConfigNode,
    ControllerEpochNode,
    PartitionStateNode,
    TopicNode,
)
from headrace.coordination.store import Node
from headrace.ids import TopicIdPartition, TopicPartition, id_of_text
from headrace.internal_topics import INTERNAL_TOPICS
from headrace.records.batch_reader import read_batch
from headrace.replication.leader import LeaderState
from headrace.replication.partition import Partition
from headrace.testing.simulation.broker import SimulatedBroker
from headrace.testing.simulation.story import Story, Violation
from headrace.testing.simulation.truth import ReplicaView, Truth, read_batches

_LONGEST_STALE_US: Final = 10_000_000


class Invariants:
    """The truths of a cluster. The lives and deaths of its brokers are told to it."""

    def __init__(
        self, story: Story, now_us: Callable[[], int], longest_stale_us: int = _LONGEST_STALE_US
    ) -> None:
        """`longest_stale_us` is how long a leader may not know that it was replaced while its session lives."""
        self._longest_stale_us = longest_stale_us
        self.truths: dict[TopicIdPartition, Truth] = {}  # of topics that exist
        self.topic_ids: dict[str, UUID] = {}
        self._story = story
        self._now_us = now_us
        self._configs: dict[str, dict[str, str]] = {}  # by topic
        self._state_paths: dict[str, Truth] = {}
        self._died_at: dict[int, int] = {}  # broker → the store's transaction then
        self._marks: dict[int, object] = {}  # broker → what it looked like the last time
        self._roles: dict[tuple[int, TopicIdPartition], int] = {}
        self.unclean_wishes: set[TopicPartition] = set()  # where an unclean election was asked for
        self._is_changed = True
        self.epochs = 0  # leader epochs of partitions that are gone

    def truth_of(self, topic: str, partition: int) -> Truth | None:
        """The truth of a partition of a topic that exists."""
        topic_id = self.topic_ids.get(topic)
        return None if topic_id is None else self.truths.get(TopicIdPartition(topic_id, partition))

    # ---- the store

    def on_write(self, path: str, before: Node | None, after: Node | None) -> None:
        """Metadata monotonic: no epoch ever goes back."""
        self._is_changed = True
        truth = self._state_paths.get(path)
        if truth is not None and after is not None:
            self._on_state(truth, PartitionStateNode.decode(path, after.data), after)
        elif path.startswith(TopicNode.ROOT + "/") and path.count("/") == 3:
            self._on_topic(path.rpartition("/")[2], after)
        elif path.startswith(ConfigNode.ROOT + "/topics/") and after is not None:
            _, name = ConfigNode.split(path)
            self._configs[name] = ConfigNode.decode(path, after.data).config
            self._take_config(name)
        elif path == ControllerEpochNode.PATH and before is not None and after is not None:
            if int(after.data) <= int(before.data):
                raise Violation(f"metadata monotonic: controller epoch {after.data!r}")
        elif path.startswith(BrokerEpochNode.ROOT + "/") and after is not None:
            self._on_seen(int(path.rpartition("/")[2]), before, after)

    def _on_topic(self, name: str, node: Node | None) -> None:
        known = self.topic_ids.get(name)
        if node is None:
            if known is not None:
                self._forget_topic(name, known)
            return
        topic = TopicNode.decode(name, node.data)
        topic_id = self.topic_ids[name] = id_of_text(topic.topic_id)
        for index, replicas in topic.partitions.items():
            where = TopicIdPartition(topic_id, index)
            truth = self.truths.get(where)
            if truth is None:
                truth = self.truths[where] = Truth(name, where)
                truth.committed.is_compacted = name in INTERNAL_TOPICS
                self._state_paths[PartitionStateNode.path(name, index)] = truth
            truth.replicas = replicas
        self._take_config(name)

    def _forget_topic(self, name: str, topic_id: UUID) -> None:
        del self.topic_ids[name]
        for where in [each for each in self.truths if each.topic_id == topic_id]:
            truth = self.truths.pop(where)
            truth.is_deleted = True
            self.epochs += len(truth.leaders)
            del self._state_paths[PartitionStateNode.path(name, where.partition)]

    def _take_config(self, name: str) -> None:
        """What a config ever allowed may have happened."""
        config = self._configs.get(name, {})
        policy = config.get("cleanup.policy", "delete")
        for truth in self.truths.values():
            if truth.name.topic == name:
                truth.committed.is_compacted |= "compact" in policy
                truth.allows_retention |= "retention.ms" in config or "retention.bytes" in config

    def _on_state(self, truth: Truth, state: PartitionStateNode, node: Node) -> None:
        stored = truth.stored
        if stored is not None:
            if state.leader_epoch < stored.leader_epoch:
                raise Violation(f"metadata monotonic: {truth.name}: {stored} → {state}")
            if node.version <= truth.stored_epoch:
                raise Violation(f"metadata monotonic: {truth.name}: version {node.version}")
        truth.stored, truth.stored_epoch = state, node.version
        if stored is None or state.leader_epoch > stored.leader_epoch:
            truth.epoch_since_us = self._now_us()
            # A leader that a finished reassignment takes away hands over to one that it says is in sync.
            has_moved = stored is not None and stored.leader not in (NO_LEADER, *truth.replicas)
            if stored is not None and not has_moved and is_unclean(stored, state):
                if truth.name not in self.unclean_wishes:
                    raise Violation(
                        f"unclean election: {truth.name}: nobody asked for it: {stored} → {state}"
                    )
                self._story.tell(f"{truth.name}: broker {state.leader} is elected uncleanly")
                truth.elected_uncleanly(state.leader, state.leader_epoch)
        # Who is eligible may still be elected, as long as the controller does not know that it died.
        for broker_id in [each for each in truth.lost if each not in (*state.isr, *state.elr)]:
            del truth.lost[broker_id]

    def _on_seen(self, broker_id: int, before: Node | None, after: Node) -> None:
        """The controller has taken note of an incarnation of a broker."""
        seen = BrokerEpochNode.decode(broker_id, after.data).epoch
        if before is not None and seen < BrokerEpochNode.decode(broker_id, before.data).epoch:
            raise Violation(f"metadata monotonic: broker {broker_id}: {before.data!r} → {seen}")
        for truth in self.truths.values():
            if seen > truth.lost.get(broker_id, seen):
                del truth.lost[broker_id]
        if seen > self._died_at.get(broker_id, seen):
            del self._died_at[broker_id]
            self._check_excluded(broker_id)

    def _check_excluded(self, broker_id: int) -> None:
        """Unclean exclusion: who died has to catch up, unless it leads because nobody else can."""
        for truth in self.truths.values():
            stored = truth.stored
            if stored is not None and broker_id in stored.isr and stored.isr != (stored.leader,):
                raise Violation(
                    f"unclean exclusion: {truth.name}: broker {broker_id} died and is in {stored}"
                )

    # ---- lives and deaths

    def on_died(self, broker_id: int, txn: int) -> None:
        """A broker that was registered died, at this point of the store's history."""
        self._died_at[broker_id] = txn

    def on_lost(self, broker_id: int, txn: int) -> None:
        """A broker's disk forgot something, or cannot be read, from this point of the store's history on."""
        self._is_changed = True
        for truth in self.truths.values():
            truth.lost[broker_id] = txn
            truth.disk_lost(broker_id)
            truth.views.pop(broker_id, None)

    # ---- brokers

    def look(self, broker: SimulatedBroker, parts: BrokerComponents) -> None:
        """Check all that a step of this broker can have broken."""
        mark = broker.life, broker.disk.changes, [_mark_of(each) for each in parts.partitions]
        if self._marks.get(broker.broker_id) == mark:
            return
        self._marks[broker.broker_id] = mark
        with broker.disk.observed():
            self._look_at_logs(broker, parts)

    def _look_at_logs(self, broker: SimulatedBroker, parts: BrokerComponents) -> None:
        if parts.lifecycle.state is BrokerState.SHUTTING_DOWN and not parts.log_dirs.online:
            return  # the logs are closed: what was written stays
        for truth in self.truths.values():
            log = parts.log_dirs.get(truth.name)
            broker_id = broker.broker_id
            is_closing = log is not None and log.is_closed  # with all others
            # It may lie where it cannot be read now.
            is_unreadable = log is None and (
                bool(parts.log_dirs.offline) or truth.name in parts.log_dirs.broken
            )
            if is_closing or is_unreadable:
                self._take_last_commit(truth, broker_id)
                continue
            if log is None or log.topic_id not in (None, truth.where.topic_id):
                self._is_changed |= truth.views.pop(broker_id, None) is not None
                continue
            view = truth.views.get(broker_id)
            if view is None:
                view = truth.views[broker_id] = ReplicaView(log)
                self._is_changed = True
            self._look_at_log(truth, view, broker, parts)

    def _take_last_commit(self, truth: Truth, broker_id: int) -> None:
        """The step that ended a leader's log may have committed something before."""
        view = truth.views.get(broker_id)
        if view is None or view.partition is None or view.epochs[1] == -1:
            return
        high_watermark = min(view.partition.high_watermark, view.end)
        if high_watermark > truth.end and view.epochs[0] >= truth.unclean_epoch:
            truth.commit(view, high_watermark)
            self._is_changed = True

    def _look_at_log(
        self, truth: Truth, view: ReplicaView, broker: SimulatedBroker, parts: BrokerComponents
    ) -> None:
        log = parts.log_dirs.get(truth.name)
        assert log is not None
        end = view.end
        if view.refresh(log):
            self._is_changed = True
            view.compare(truth.committed, truth.deleted_to)
        if view.start > truth.deleted_to:
            if not truth.allows_retention or view.start > truth.end:
                raise Violation(
                    f"log start: {truth.name}: the log of {broker.name} starts at {view.start}, "
                    f"but only {truth.deleted_to} was ever asked for"
                )
            truth.delete_to(view.start)
        partition = parts.partitions.get(*truth.name)
        if partition is not None:
            if partition.is_leader and view.end > end and partition is view.partition:
                self._check_right_to_append(truth, partition, broker, parts)
            self._look_at_role(truth, view, partition, broker)

    def _check_right_to_append(
        self, truth: Truth, partition: Partition, broker: SimulatedBroker, parts: BrokerComponents
    ) -> None:
        """A leader has appended: its session cannot have timed out, and it knows of no removal."""
        ensemble = broker.around.ensemble
        session = 0 if broker.client is None else broker.client.session
        if session in ensemble.timed_out:
            raise Violation(
                f"lease: {broker.name} appends to {truth.name} after its session has timed out"
            )
        stored = truth.stored
        # A broker that cannot read the changes of a newer controller hears of no new leader until it is upgraded.
        may_know = not broker.runs_older
        if may_know and stored is not None and stored.leader_epoch > partition.leader_epoch:
            stale_us = self._now_us() - truth.epoch_since_us
            if stale_us > self._longest_stale_us:
                raise Violation(
                    f"deposed leader: {broker.name} appends to {truth.name} in leader epoch "
                    f"{partition.leader_epoch}, {stale_us // 1000} ms after epoch "
                    f"{stored.leader_epoch} began"
                )
        if not parts.replica_hosting.is_registered:
            raise Violation(
                f"registration: {broker.name} appends to {truth.name}, but knows it is removed"
            )

    def _look_at_role(
        self, truth: Truth, view: ReplicaView, partition: Partition, broker: SimulatedBroker
    ) -> None:
        name, leader, who = truth.name, partition.leader, broker.name
        self._note_role(truth, view, partition, broker)
        high_watermark = partition.high_watermark
        epochs = partition.leader_epoch, -1 if leader is None else leader.partition_epoch
        if view.partition is partition:
            is_excused = truth.unclean_epoch > view.sound_epoch
            if high_watermark < view.high_watermark and not is_excused:
                raise Violation(
                    f"high watermark monotonic: {name} on {who}: "
                    f"{view.high_watermark} → {high_watermark}"
                )
            if epochs[0] < view.epochs[0] or -1 < epochs[1] < view.epochs[1]:
                raise Violation(
                    f"metadata monotonic: {name} on {who}: {view.epochs} → {epochs} (leader, "
                    "partition)"
                )
        # Several changes may come at once: one that led when it was last seen may have moved on and be replaced since.
        may_commit = leader is not None or (view.partition is partition and view.epochs[1] != -1)
        view.partition, view.high_watermark, view.epochs = partition, high_watermark, epochs
        if partition.leader_epoch < truth.unclean_epoch:
            return  # it does not know yet that others have given up what it has
        if leader is not None:
            self._look_at_leader(truth, view, leader, broker)
        if may_commit and high_watermark > truth.end:
            truth.commit(view, high_watermark)
            self._is_changed = True
        if high_watermark <= view.good_to:
            view.sound_epoch = truth.unclean_epoch
        elif leader is not None or view.sound_epoch >= truth.unclean_epoch:
            # A follower keeps what an unclean election gave up until its first fetch from the new leader.
            raise Violation(
                f"log matching: {name} on {who}: high watermark {high_watermark}, "
                f"sound up to {view.good_to}, committed up to {truth.end}"
            )

    def _note_role(
        self, truth: Truth, view: ReplicaView, partition: Partition, broker: SimulatedBroker
    ) -> None:
        key = broker.broker_id, truth.where
        role = partition.leader_epoch if partition.is_leader else ~partition.leader_epoch
        if self._roles.get(key) == role and view.partition is partition:
            return
        self._roles[key] = role
        does = "leads" if partition.is_leader else "does not lead"
        if not partition.is_leader and partition.leader_id >= 0:
            does = f"follows broker {partition.leader_id}"
        self._story.tell(
            f"{broker.name} {does} in epoch {partition.leader_epoch} of {truth.name}, log "
            f"{view.start}-{view.end}, high watermark {partition.high_watermark}"
        )

    @staticmethod
    def _look_at_leader(
        truth: Truth, view: ReplicaView, leader: LeaderState, broker: SimulatedBroker
    ) -> None:
        name, epoch, stored = truth.name, leader.leader_epoch, truth.stored
        who = broker.broker_id, broker.life
        is_new = epoch not in truth.leaders
        first = truth.leaders.setdefault(epoch, who)
        if first != who:
            raise Violation(f"one leader: {name} epoch {epoch}: {first}, {who}")
        # One that others have replaced before it knew that it leads need not have what they committed.
        if is_new and epoch == max(truth.leaders) and view.good_to < truth.end:
            raise Violation(
                f"leader completeness: {name} is led by {broker.name} in epoch {epoch}, "
                f"which has {view.good_to} of {truth.end}"
            )
        lost = truth.deleted_for_good(broker.broker_id)
        if is_new and epoch == max(truth.leaders) and view.start < lost:
            raise Violation(
                f"deleted for good: {name} is led by {broker.name} from offset {view.start} on, "
                f"but everything below {lost} was deleted"
            )
        if view.high_watermark > truth.end and stored is not None and stored.leader_epoch == epoch:
            counted = {*leader.isr, *(leader.proposed_isr or ())}
            if not counted.issuperset(stored.isr):
                raise Violation(
                    f"quorum superset: {name}: {broker.name} counts {sorted(counted)}, "
                    f"stored is {stored.isr}"
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
                if member not in truth.lost and (
                    view.good_to < truth.end if view is not None else truth.end > 0
                ):
                    raise Violation(
                        f"strong ISR: {truth.name}: broker {member} is in {truth.stored.isr} with "
                        f"{view.good_to if view else 'nothing'} of {truth.end}"
                    )
            best = max((view.good_to for view in truth.views.values()), default=0)
            if best < truth.end:
                raise Violation(
                    f"committed never lost: {truth.name}: {best} of {truth.end} is left"
                )

    # ---- at rest

    def look_again(self) -> None:
        """What lies on the disks is what was seen, and all replicas are the same."""
        for truth in self.truths.values():
            truth.check_sequences()
            if truth.waits_for_operator:
                continue
            contents = {
                broker_id: read_batches(view.log, view.start)
                for broker_id, view in truth.views.items()
            }
            if truth.committed.is_compacted:
                self._check_compacted(truth)
                continue
            for broker_id, view in truth.views.items():
                if contents[broker_id] != view.batches:
                    raise Violation(f"stable log: {truth.name} on {broker_id} has changed")
            start = max(view.start for view in truth.views.values())
            tails = {
                broker_id: [batch for batch in batches if batch.next_offset > start]
                for broker_id, batches in contents.items()
            }
            if any(tail != next(iter(tails.values())) for tail in tails.values()):
                raise Violation(f"replicas equal: {truth.name}")

    @staticmethod
    def _check_compacted(truth: Truth) -> None:
        """Each replica has the newest record of every key, and no record that was not committed."""
        newest = truth.committed.newest_of_keys()
        for broker_id, view in truth.views.items():
            batches = read_batches(view.log, view.start)
            wrong = next((each for each in batches if not truth.committed.agrees(each)), None)
            if wrong is not None:
                raise Violation(f"replicas equal: {truth.name} on {broker_id} has {wrong}")
            kept = {record.offset for each in batches for record in read_batch(each.data)}
            for record in newest.values():
                if record.value is not None and view.start <= record.offset not in kept:
                    raise Violation(f"compaction keeps: {truth.name} on {broker_id} lacks {record}")


def _mark_of(partition: Partition) -> tuple[object, ...]:
    leader = partition.leader
    return (
        partition.high_watermark,
        partition.leader_epoch,
        None if leader is None else leader.partition_epoch,
        partition.log.log_start_offset,
    )


def is_unclean(before: PartitionStateNode, after: PartitionStateNode) -> bool:
    """Whether an election chose a leader that need not have everything committed."""
    if after.isr != (after.leader,):
        return False  # nobody leads, or the last leader says that this one is in sync
    # The last known leader counts beside the ELR: its members may have come back after a crash, and be eligible no more.
    return after.leader not in {*before.isr, *before.elr, *before.last_known_elr}
