"""Lets the faults of a plan strike at their moments, and takes them back.

No more is broken than the cluster promises to survive: it loses nothing when one disk is lost where two replicas must be in
sync. A broker that died counts as having perhaps lost something until it is in sync again, because nobody else can know better; so the
tail of a disk is lost only while every other broker is whole, and nobody is killed while one is being made whole. A whole disk may be
lost while others are down, if one of them has everything: then the partition may end without a leader, but with its records.
"""

from functools import partial
from random import Random

from headrace.coordination.nodes import BrokerEpochNode
from headrace.testing.simulation.broker import Condition, SimulatedBroker
from headrace.testing.simulation.faults import (
    disks,
    links,
    members,
    operators,
    processes,
    store,
)
from headrace.testing.simulation.faults.act import (
    Act,
    FaultAround,
    StrikeWith,
    Undo,
    UndoLater,
)
from headrace.testing.simulation.plan import Fault, Strike
from headrace.testing.virtual.scheduler import MILLISECOND_US

STRIKES: dict[Fault, StrikeWith] = {
    Fault.KILL: processes.kill,
    Fault.POWER: processes.lose_power,
    Fault.WIPE: processes.lose_disk,
    Fault.BLACKOUT: processes.black_out,
    Fault.PAUSE: processes.pause,
    Fault.BOUNCE: processes.bounce,
    Fault.UPGRADE: processes.upgrade,
    Fault.CLOCK: processes.jump,
    Fault.SPLIT: links.split,
    Fault.RESET: links.reset,
    Fault.REFUSE: links.refuse,
    Fault.SLOW: links.slow,
    Fault.CLIENTS: links.cut_clients,
    Fault.MEMBERS: members.replace_member,
    Fault.STORE: links.cut_store,
    Fault.SILENCE: links.silence_store,
    Fault.EXPIRE: store.expire,
    Fault.REMOVE: store.remove,
    Fault.SEAT: store.unseat,
    Fault.OUTAGE: store.stop_ensemble,
    Fault.FORGET: store.forget,
    Fault.FULL: disks.fill,
    Fault.SLOW_DISK: disks.slow_down,
    Fault.SECTOR: disks.spoil_sector,
    Fault.DIRECTORY: disks.break_directory,
    Fault.ELECT: operators.elect,
    Fault.MOVE: operators.move,
    Fault.MOVE_LOG: operators.move_log,
    Fault.UNCLEAN: operators.elect_uncleanly,
    Fault.DELETE: operators.delete_records,
    Fault.MINIMUM: operators.change_minimum,
    Fault.CONFIG: operators.configure,
    Fault.TOPICS: operators.change_topics,
}


class Nemesis:
    """The faults of one run."""

    def __init__(self, around: FaultAround) -> None:
        self._around = around
        self._is_stopped = False
        self._undos: dict[int, Undo] = {}
        self._last_undo = 0
        self._dead: dict[int, bool] = {}  # died, not in sync again → whether it lost a disk

    def start(self, from_ms: int, to_ms: int) -> None:
        """Let those strikes of the plan happen that fall into this part of it."""
        self._is_stopped = False
        scheduler = self._around.world.scheduler
        for strike in self._around.plan.strikes:
            if from_ms <= strike.at_ms < to_ms:
                delay_us = (strike.at_ms - from_ms) * MILLISECOND_US
                scheduler.after(delay_us, partial(self._strike, strike))

    def stop(self) -> None:
        """No more strikes until the next start; whatever can be undone is undone now."""
        self._is_stopped = True
        undos, self._undos = self._undos, {}
        for undo in undos.values():
            undo()
        for broker in self._around.brokers.values():
            broker.set_wall_offset(0)
            broker.is_older = False
            if broker.runs_older and broker.is_ready:
                broker.stop()
            elif broker.runs_older:
                self._around.died(broker, has_lost=False)
                broker.kill()
                continue
            log_dirs = None if broker.parts is None else broker.parts.log_dirs
            if log_dirs is not None and (log_dirs.offline or log_dirs.broken):
                # Its disk is whole again, and an operator starts it anew.
                self._around.died(broker, has_lost=False)
                broker.kill()

    def _strike(self, strike: Strike) -> None:
        if self._is_stopped:
            return
        chance = Random(f"{self._around.seed}:strike:{strike.number}")
        target = self._target(chance)
        if target.condition is Condition.UP:
            act = Act(self._around, self, chance, target, strike.number, self._undo_later(chance))
            STRIKES[strike.fault](act)

    def _target(self, chance: Random) -> SimulatedBroker:
        """Any broker, but often one that leads."""
        around = self._around
        truths = [each for each in around.invariants.truths.values() if each.stored is not None]
        if truths and chance.random() < 0.5:
            stored = chance.choice(truths).stored
            if stored is not None and stored.leader >= 0:
                return around.brokers[stored.leader]
        return chance.choice(list(around.brokers.values()))

    def _undo_later(self, chance: Random) -> UndoLater:
        def undo_later(undo: Undo, longest_ms: int = 0) -> None:
            self._last_undo += 1
            number = self._last_undo
            self._undos[number] = undo
            delay_ms = 1 + chance.randrange(max(self._around.plan.outage_ms, longest_ms))

            def now() -> None:
                if self._undos.pop(number, None) is not None:
                    undo()

            self._around.world.scheduler.after(delay_ms * MILLISECOND_US, now)

        return undo_later

    # ---- Survival

    def may_die(self, broker: SimulatedBroker, *, loses: bool, has_copy: bool = False) -> bool:
        self._dead = {each: lost for each, lost in self._dead.items() if not self._is_whole(each)}
        others = [lost for each, lost in self._dead.items() if each != broker.broker_id]
        has_promise = self._around.plan.survives_a_lost_disk
        if any(others) or (loses and not ((has_copy or not others) and has_promise)):
            return False
        self.note_death(broker, loses=loses)
        return True

    def note_death(self, broker: SimulatedBroker, *, loses: bool) -> None:
        self._dead[broker.broker_id] = loses or self._dead.get(broker.broker_id, False)

    def has_copy_elsewhere(self, broker: SimulatedBroker) -> bool:
        return all(
            any(
                view.good_to >= truth.end
                for other, view in truth.views.items()
                if other != broker.broker_id
            )
            for truth in self._around.invariants.truths.values()
        )

    def _is_whole(self, broker_id: int) -> bool:
        """Whether a broker that died is known to have come back, and is in sync wherever it is a replica."""
        around = self._around
        seen = around.ensemble.lasting_tree.get(BrokerEpochNode.path(broker_id))
        epoch = -1 if seen is None else BrokerEpochNode.decode(broker_id, seen.data).epoch
        broker = around.brokers[broker_id]
        if broker.condition is Condition.DOWN or broker.broker_epoch != epoch:
            return False
        for truth in around.invariants.truths.values():
            view, stored = truth.views.get(broker_id), truth.stored
            if broker_id in truth.replicas and (
                stored is None
                or broker_id not in stored.isr
                or view is None
                or view.good_to < truth.end
            ):
                return False
        return True
