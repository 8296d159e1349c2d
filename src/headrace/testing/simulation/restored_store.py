"""A simulated cluster whose coordination store is set back to a backup: no replica deletes what it knows to be committed.

`run_restore` plays one seed: a backup is made while brokers come and go, one broker is behind when all are stopped, the backup is
restored, and the brokers are started in any order. Each replica must keep what it can know to be committed, and no leader epoch may
be used twice. Then an operator does what docs/operating/cluster.md says, and all replicas must have everything again.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from headrace.controller.leaders import ElectionType, ElectLeaders
from headrace.coordination.nodes import PartitionStateNode
from headrace.coordination.store import Node
from headrace.ids import TopicPartition
from headrace.log.files.checkpoint import HIGH_WATERMARK_FILE, SEEN_EPOCH_FILE, read_offsets
from headrace.log.log_dirs import LogDirs
from headrace.replication.partition_table import PartitionTable
from headrace.testing.memory_store import Backup
from headrace.testing.simulation.broker import LOG_DIR, Condition, SimulatedBroker
from headrace.testing.simulation.cluster import (
    Cluster,
    Outcome,
    SimulationFailed,
    outcome_of,
    report,
)
from headrace.testing.simulation.invariants import Invariants
from headrace.testing.simulation.plan import Fault, Plan, draw_plan
from headrace.testing.simulation.truth import ReplicaView, Truth, Violation

_FAULTS: Final = (Fault.BOUNCE, Fault.KILL, Fault.ELECT, Fault.SEAT, Fault.LAG, Fault.EXPIRE)
_LONGEST_MS: Final = 30_000  # for anything that must come about
_MESSAGES_ARRIVE_MS: Final = 5_000
_REST_MS: Final = 3_000


class KeptRecords(Invariants):
    """What must be true after the restore: replicas keep what they knew to be committed, and no leader epoch is used twice."""

    def __init__(
        self,
        truths: dict[TopicPartition, Truth],
        known: dict[tuple[int, TopicPartition], int],
    ) -> None:
        """`known`: what each replica must keep."""
        super().__init__(list(truths))
        self.truths = truths
        self._known = known
        for truth in truths.values():
            truth.views.clear()

    def on_write(self, path: str, before: Node | None, after: Node | None) -> None:
        where = self._paths.get(path)
        if where is not None and after is not None:
            self.truths[where].stored = PartitionStateNode.decode(path, after.data)

    def look(
        self, broker_id: int, life: int, log_dirs: LogDirs, partitions: PartitionTable
    ) -> None:
        for where, truth in self.truths.items():
            log, partition = log_dirs.get(where), partitions.get(*where)
            if log is None:
                continue
            view = truth.views.setdefault(broker_id, ReplicaView(log))
            if view.refresh(log):
                view.compare(truth.committed, truth.deleted_to)
            known = self._known.get((broker_id, where), 0)
            if view.good_to < known:
                raise Violation(
                    f"committed is lost: broker {broker_id} had {known} of {where} and has {view.good_to}"
                )
            if partition is not None and partition.is_leader:
                first = truth.leaders.setdefault(partition.leader_epoch, (broker_id, life))
                if first != (broker_id, life):
                    raise Violation(
                        f"one leader: {where} epoch {partition.leader_epoch}: {first}, {broker_id, life}"
                    )

    def check(self) -> None:
        """Everything is checked by `look`."""


def run_restore(seed: int, steps: int = 300) -> Outcome:
    """Play a seed to its end. Raises SimulationFailed."""
    story = _Story(_plan(seed, steps))
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        story.play()
    except Exception as error:
        raise SimulationFailed(report(story.cluster, error)) from error
    finally:
        logging.disable(disabled)
        for broker in story.cluster.brokers.values():
            broker.end()
    return outcome_of(story.cluster)


def _plan(seed: int, steps: int) -> Plan:
    """Two of three replicas have all that is committed, so at most one is behind."""
    chance = Random(seed)
    return replace(
        draw_plan(seed, steps),
        broker_count=3,
        replication_factor=3,
        min_insync_replicas=2,
        defaults_differ=False,
        allows_unclean_elections=False,
        faults=tuple(chance.sample(_FAULTS, chance.randint(1, 4))),
    )


class _Story:
    def __init__(self, plan: Plan) -> None:
        self.cluster = Cluster(plan)
        self._chance = self.cluster.chance
        self._backup: Backup | None = None
        self._known_to_be_committed: dict[TopicPartition, int] = {}  # by any disk

    def play(self) -> None:
        cluster = self.cluster
        cluster.set_up()
        cluster.clock.after(self._chance.randrange(2_500), self._make_backup)
        cluster.suffer()
        cluster.mend()
        if self._backup is None or self._chance.random() < 0.3:
            self._make_backup()
        self._leave_one_behind()
        self._stop_all()
        self._let_pass(_MESSAGES_ARRIVE_MS)
        self._restore()
        for broker in self._in_any_order():
            broker.start()
            self._let_pass(self._chance.randrange(1_500))
        self._let_pass(_REST_MS)
        for where in cluster.partitions:
            self._bring_together(where)

    def _in_any_order(self) -> list[SimulatedBroker]:
        return self._chance.sample(list(self.cluster.brokers.values()), 3)

    def _let_pass(self, duration_ms: int) -> None:
        until_ms = self.cluster.clock.now_ms + duration_ms
        while self.cluster.clock.now_ms < until_ms:
            self.cluster.step()

    def _until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline_ms = self.cluster.clock.now_ms + _LONGEST_MS
        while not is_so():
            if self.cluster.clock.now_ms > deadline_ms:
                raise Violation(f"liveness: {what}")
            self._let_pass(50)

    def _stop(self, broker: SimulatedBroker) -> None:
        """In an orderly way; again if the controller changes meanwhile."""
        if broker.condition is Condition.DOWN:
            return
        broker.shut_down()
        self._until(
            lambda: broker.condition is Condition.DOWN, f"broker {broker.broker_id} does not stop"
        )

    # ---- before the restore

    def _make_backup(self) -> None:
        self.cluster.note("backup")
        self._backup = self.cluster.tree.backup()

    def _leave_one_behind(self) -> None:
        """Stop a broker, and write without it."""
        cluster = self.cluster
        behind = self._in_any_order()[0]
        self._stop(behind)
        for producer in cluster.producers:
            producer.is_stopped = False
            producer.start()
        self._let_pass(self._chance.randrange(1_000))
        for producer in cluster.producers:
            producer.is_stopped = True

        def is_quiet() -> bool:
            for broker in cluster.brokers.values():
                if broker is not behind and broker.condition is Condition.DOWN:
                    broker.start()  # a bounce that was begun before has ended
            return self._is_quiet()

        self._until(is_quiet, "the others do not come to rest")

    def _stop_all(self) -> None:
        """In an orderly way, or by a crash: then a replica knows what was committed at its last checkpoint."""
        is_crash = self._chance.random() < 0.3
        for broker in self._in_any_order():
            if not is_crash:
                self._stop(broker)
            elif broker.condition is Condition.UP:
                broker.die()

    def _is_quiet(self) -> bool:
        """Whether all replicas on living brokers are in sync."""
        live = {
            broker_id
            for broker_id, broker in self.cluster.brokers.items()
            if broker.condition is Condition.UP
        }
        return all(producer.pending is None for producer in self.cluster.producers) and all(
            truth.stored is not None and set(truth.stored.isr) == live
            for truth in self.cluster.invariants.truths.values()
        )

    def _restore(self) -> None:
        cluster = self.cluster
        cluster.note("restore")
        for consumer in cluster.consumers:
            consumer.is_stopped = True  # a leader that is behind shows them less than they saw
        assert self._backup is not None
        cluster.tree.restore(self._backup)
        cluster.seen_sessions.clear()
        known = {
            (broker.broker_id, where): self._kept_by(broker, where)
            for broker in cluster.brokers.values()
            for where in cluster.partitions
        }
        for (_, where), kept in known.items():
            most = max(self._known_to_be_committed.get(where, 0), kept)
            self._known_to_be_committed[where] = most
        cluster.invariants = KeptRecords(cluster.invariants.truths, known)

    def _kept_by(self, broker: SimulatedBroker, where: TopicPartition) -> int:
        """What a replica must keep: all that is committed, if its disk knows of a later election than the backup; else what its
        disk knows to be committed."""
        assert self._backup is not None
        path = PartitionStateNode.path(*where)
        backed_up = PartitionStateNode.decode(path, self._backup[0][path].data)
        view = self.cluster.invariants.truths[where].views.get(broker.broker_id)
        seen = read_offsets(broker.disk, f"{LOG_DIR}/{SEEN_EPOCH_FILE}").get(where, -1)
        if seen > backed_up.leader_epoch and view is not None:
            return view.good_to
        return read_offsets(broker.disk, f"{LOG_DIR}/{HIGH_WATERMARK_FILE}").get(where, 0)

    # ---- what an operator does

    def _bring_together(self, where: TopicPartition) -> None:
        """If a replica refuses to follow, have the partition led by the one that knows most."""
        refusing = {
            partition.high_watermark: broker
            for broker in self.cluster.brokers.values()
            if (partition := broker.partitions.get(*where)) is not None and partition.unfollowable
        }
        if refusing:
            self._make_leader(where, refusing[max(refusing)])
        self._until(lambda: self._is_whole(where), f"{where} is not whole again")

    def _make_leader(self, where: TopicPartition, leader: SimulatedBroker) -> None:
        for other in self.cluster.brokers.values():
            if other is not leader:
                self._stop(other)
        wish = ElectLeaders(election_type=ElectionType.UNCLEAN, partitions=(where,))

        async def elect() -> None:
            while not self._leads(leader, where):
                await leader.ask(wish)
                await leader.sleep(100)

        leader.run(elect())
        self._until(lambda: self._leads(leader, where), f"{leader.broker_id} does not lead {where}")
        for other in self.cluster.brokers.values():
            if other is not leader:
                other.start()

    @staticmethod
    def _leads(broker: SimulatedBroker, where: TopicPartition) -> bool:
        partition = broker.partitions.get(*where)
        return partition is not None and partition.is_leader

    def _is_whole(self, where: TopicPartition) -> bool:
        truth = self.cluster.invariants.truths[where]
        assert truth.stored is not None
        views = [truth.views[each] for each in self.cluster.brokers]
        known = self._known_to_be_committed[where]
        return (
            len(truth.stored.isr) == 3
            and min(view.good_to for view in views) >= known
            and len({view.end for view in views}) == 1
        )
