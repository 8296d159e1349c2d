"""A simulated cluster whose coordination store is set back to a backup: no replica deletes what it knows to be committed.

A backup is made while brokers come and go, one broker is behind when all are stopped, the backup is restored, and the brokers are
started in any order. Each replica must keep what it can know to be committed, and no leader epoch may be used twice. Then an operator does
what docs/operating/cluster.md says, and all replicas must have everything again.
"""

from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from headrace.broker.wiring import BrokerComponents
from headrace.coordination.nodes import PartitionStateNode
from headrace.coordination.store import Node
from headrace.ids import TopicIdPartition, TopicPartition
from headrace.log.files.checkpoint import HIGH_WATERMARK_FILE, SEEN_EPOCH_FILE, read_offsets
from headrace.replication.partition import Partition
from headrace.testing.memory_store import Backup
from headrace.testing.simulation.admin import UNCLEAN, SimulatedAdmin
from headrace.testing.simulation.broker import LOG_DIRS, Condition, SimulatedBroker
from headrace.testing.simulation.cluster import SimulatedCluster
from headrace.testing.simulation.invariants import Invariants
from headrace.testing.simulation.plan import Fault, Plan, draw_plan, draw_strikes
from headrace.testing.simulation.story import Violation
from headrace.testing.simulation.truth import ReplicaView, Truth
from headrace.testing.virtual.scheduler import MILLISECOND_US, SECOND_US

_FAULTS: Final = (Fault.BOUNCE, Fault.KILL, Fault.ELECT, Fault.SEAT, Fault.SPLIT, Fault.EXPIRE)
_DURATION_MS: Final = 3_000
_LONGEST_S: Final = 60.0  # for anything that must come about
_REST_S: Final = 3.0
_ELECTION_PAUSE_S: Final = 0.2

Known = dict[tuple[int, TopicIdPartition], int]
"""What the broker's replica of the partition must keep: everything below that offset."""


class KeptRecords(Invariants):
    """What must be true after the restore: replicas keep what they knew to be committed, and no leader epoch is used twice."""

    def take_over(self, before: Invariants, known: Known) -> None:
        """Go on with the partitions as they were before the restore."""
        self.truths, self.topic_ids = before.truths, before.topic_ids
        self._known = known
        self._truths_of_paths = {
            PartitionStateNode.path(*truth.name): truth for truth in self.truths.values()
        }
        for truth in self.truths.values():
            truth.views.clear()

    def on_write(self, path: str, before: Node | None, after: Node | None) -> None:
        """The store begins again at an older state, so that nothing is monotonic: note what it says."""
        truth = self._truths_of_paths.get(path)
        if truth is not None and after is not None:
            truth.stored = PartitionStateNode.decode(path, after.data)

    def look(self, broker: SimulatedBroker, parts: BrokerComponents) -> None:
        """Check what a step of this broker can have broken."""
        with broker.disk.observed():
            for truth in self.truths.values():
                self._look_at_replica(truth, broker, parts)

    def _look_at_replica(
        self, truth: Truth, broker: SimulatedBroker, parts: BrokerComponents
    ) -> None:
        log = parts.log_dirs.get(truth.name)
        if log is None or log.is_closed:
            return
        view = truth.views.setdefault(broker.broker_id, ReplicaView(log))
        if view.refresh(log):
            view.compare(truth.committed, truth.deleted_to)
        known = self._known.get((broker.broker_id, truth.where), 0)
        if view.good_to < known:
            raise Violation(
                f"known to be committed: {broker.name} had {known} of {truth.name} and has "
                f"{view.good_to}"
            )
        partition = parts.partitions.get(*truth.name)
        if partition is not None and partition.is_leader:
            who = broker.broker_id, broker.life
            first = truth.leaders.setdefault(partition.leader_epoch, who)
            if first != who:
                raise Violation(
                    f"one leader: {truth.name} epoch {partition.leader_epoch}: {first}, {who}"
                )

    def check(self) -> None:
        """Everything is checked by `look`."""


class RestoredCluster(SimulatedCluster):
    """One run."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._chance = Random(f"{plan.seed}:restore")
        self._backup: Backup | None = None
        self._stopped: set[int] = set()  # brokers that shall stay down
        self._known_to_be_committed: dict[TopicIdPartition, int] = {}  # by any disk

    def ended(self, broker: SimulatedBroker, error: BaseException | None) -> None:
        """A broker has ended by itself. It is started again, unless it shall stay down."""
        if error is None and broker.broker_id in self._stopped:
            self.story.tell(f"{broker.name} has ended")
        else:
            super().ended(broker, error)

    def run(self) -> None:
        """From start to end."""
        self.set_up()
        self.start_clients()
        backup_us = self._chance.randrange(_DURATION_MS) * MILLISECOND_US
        self.world.scheduler.after(backup_us, self._make_backup)
        self.suffer(0, self.plan.duration_ms)
        self.heal(is_last=False)
        if self._backup is None or self._chance.random() < 0.3:
            self._make_backup()
        self._leave_one_behind()
        self.is_over = True  # a leader that is behind shows consumers less than they saw
        self.run_for(_REST_S)
        self._stop_all()
        self._restore()
        for broker in self._in_any_order():
            self._let_run(broker)
            self.run_for(self._chance.random() * 1.5)
        self.run_for(_REST_S)
        for truth in self.invariants.truths.values():
            self._bring_together(truth)

    def _in_any_order(self) -> list[SimulatedBroker]:
        return self._chance.sample(list(self.brokers.values()), len(self.brokers))

    def _stop(self, broker: SimulatedBroker) -> None:
        """In an orderly way."""
        self._stopped.add(broker.broker_id)
        broker.stop()
        deadline_us = self.world.scheduler.now_us + int(_LONGEST_S * SECOND_US)
        # No look at intervals, because behind the end of the last broker nothing may happen any more.
        while broker.condition is not Condition.DOWN:
            if self.world.scheduler.now_us > deadline_us:
                raise Violation(f"liveness: {broker.name} does not stop")
            self.step()

    def _let_run(self, broker: SimulatedBroker) -> None:
        self._stopped.discard(broker.broker_id)
        self._start(broker)

    # ---- before the restore

    def _make_backup(self) -> None:
        self.story.tell("a backup of the store is made")
        self._backup = self.ensemble.tree.backup()

    def _leave_one_behind(self) -> None:
        """Stop a broker, and write without it."""
        self._stop(self._in_any_order()[0])
        self.is_resting = False
        self.run_for(self._chance.random() * 1.5)
        self.is_resting = True
        self.run_until(self._busy, _LONGEST_S)

    def _busy(self) -> str | None:
        """What goes on yet, although one broker is down."""
        live = set(self.brokers) - self._stopped
        for producer in self.producers:
            if producer.pending is not None:
                return f"{producer.name} waits for an acknowledgement"
        for truth in self.invariants.truths.values():
            if truth.stored is None or set(truth.stored.isr) != live & set(truth.replicas):
                return f"{truth.name}: in sync are {truth.stored}, not {live}"
        return None

    def _stop_all(self) -> None:
        """In an orderly way, or by a crash: then a replica knows what was committed at its last checkpoint."""
        is_crash = self._chance.random() < 0.3
        for broker in self._in_any_order():
            if broker.condition is Condition.DOWN:
                continue
            if is_crash:
                self.story.tell(f"{broker.name} is killed")
                broker.kill()
            else:
                self._stop(broker)

    def _restore(self) -> None:
        assert self._backup is not None
        self.story.tell("the backup is restored")
        for session in self.ensemble.sessions():
            self.ensemble.end_session(session)
        known = {
            (broker.broker_id, truth.where): self._kept_by(broker, truth)
            for broker in self.brokers.values()
            for truth in self.invariants.truths.values()
        }
        for (_, where), kept in known.items():
            self._known_to_be_committed[where] = max(
                self._known_to_be_committed.get(where, 0), kept
            )
        kept_records = KeptRecords(self.story, lambda: self.world.scheduler.now_us)
        kept_records.take_over(self.invariants, known)
        self.invariants = kept_records
        self.ensemble.tree.restore(self._backup)

    def _kept_by(self, broker: SimulatedBroker, truth: Truth) -> int:
        """What a replica must keep: all that is committed, if its disk knows of a later election than the backup; else what its
        disk knows to be committed."""
        assert self._backup is not None
        path = PartitionStateNode.path(*truth.name)
        backed_up = PartitionStateNode.decode(path, self._backup[0][path].data)
        view = truth.views.get(broker.broker_id)
        with broker.disk.observed():
            seen = read_offsets(broker.disk, f"{LOG_DIRS[0]}/{SEEN_EPOCH_FILE}")
            marks = read_offsets(broker.disk, f"{LOG_DIRS[0]}/{HIGH_WATERMARK_FILE}")
        if seen.get(truth.name, -1) > backed_up.leader_epoch and view is not None:
            return view.good_to
        return marks.get(truth.name, 0)

    # ---- what an operator does

    def _bring_together(self, truth: Truth) -> None:
        """If a replica refuses to follow, have the partition led by the one that knows most."""
        refusing = {
            partition.high_watermark: broker
            for broker in self.brokers.values()
            if (partition := _partition_of(broker, truth.name)) is not None
            and partition.unfollowable
        }
        if refusing:
            self._make_leader(truth.name, refusing[max(refusing)])
        self.run_until(lambda: self._unequal(truth), _LONGEST_S)

    def _make_leader(self, where: TopicPartition, leader: SimulatedBroker) -> None:
        others = [each for each in self.brokers.values() if each is not leader]
        for other in others:
            self._stop(other)
        self.story.tell(f"an operator has {leader.name} elected uncleanly for {where}")
        self.admin(partial(_elect_until_led, leader=leader, where=where))
        self.run_until(
            lambda: None if _leads(leader, where) else f"{leader.name} does not lead {where}",
            _LONGEST_S,
        )
        for other in others:
            self._let_run(other)

    def _unequal(self, truth: Truth) -> str | None:
        stored, known = truth.stored, self._known_to_be_committed[truth.where]
        views = [truth.views.get(each) for each in truth.replicas]
        if stored is None or set(stored.isr) != set(truth.replicas):
            return f"{truth.name}: in sync are {stored}"
        kept = [(-1, -1) if view is None else (view.good_to, view.end) for view in views]
        if min(kept)[0] < known or len({end for _, end in kept}) != 1:
            return f"{truth.name}: the replicas have {kept} of {known}"
        return None


def restore_plan(seed: int) -> Plan:
    """Two of three replicas have all that is committed, so that at most one is behind."""
    chance = Random(seed)
    faults = tuple(chance.sample(_FAULTS, chance.randint(1, 4)))
    return replace(
        draw_plan(seed),
        broker_count=3,
        replication_factor=3,
        min_insync_replicas=2,
        defaults_differ=False,
        allows_unclean_elections=False,
        log_dirs=1,
        group_members=0,
        has_transactions=False,
        rounds=1,
        faults=faults,
        strikes=draw_strikes(chance, faults, _DURATION_MS),
        duration_ms=_DURATION_MS,
    )


def _partition_of(broker: SimulatedBroker, where: TopicPartition) -> Partition | None:
    return None if broker.parts is None else broker.parts.partitions.get(*where)


def _leads(broker: SimulatedBroker, where: TopicPartition) -> bool:
    partition = _partition_of(broker, where)
    return partition is not None and partition.is_leader


async def _elect_until_led(
    admin: SimulatedAdmin, leader: SimulatedBroker, where: TopicPartition
) -> object:
    answer: object = None
    while not _leads(leader, where):
        answer = await admin.elect(*where, UNCLEAN)
        await admin.client.pause(_ELECTION_PAUSE_S)
    return answer
