"""What goes wrong in a simulated cluster, when, and for how long. Chance comes from the cluster's seed.

What is asked of the cluster is what it promises: it survives one lost disk where two must be in sync. A broker that died
counts as having perhaps lost something until it is in sync again, for nobody else can know better; so the tail of a disk is lost only while
every other broker is whole, and nobody is killed while one is being made whole. A whole disk may be lost while others are
down, if one of them has everything: then the partition may end without a leader, but with its records.
"""

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from headrace.controller.configs import AlterConfigs, ConfigEdit, ConfigOperation, ConfigWish
from headrace.controller.core import Event
from headrace.controller.leaders import ElectLeaders
from headrace.controller.reassignment import AlterReassignments
from headrace.controller.values import ConfigKind
from headrace.coordination.nodes import BrokerEpochNode, BrokerNode, ControllerNode, TopicNode
from headrace.coordination.store import Delete
from headrace.ids import TopicPartition
from headrace.testing.memory_store import MemoryTree
from headrace.testing.simulation.broker import Condition, SimulatedBroker
from headrace.testing.simulation.invariants import Invariants
from headrace.testing.simulation.plan import Fault, Plan
from headrace.testing.simulation.session import STORE
from headrace.testing.virtual_clock import VirtualClock
from headrace.testing.virtual_network import VirtualNetwork

_MAX_CLOCK_JUMP_MS: Final = 5_000


class Surroundings(Protocol):
    """What faults happen to."""

    plan: Plan
    clock: VirtualClock
    network: VirtualNetwork
    tree: MemoryTree
    chance: Random
    brokers: dict[int, SimulatedBroker]
    invariants: Invariants

    def note(self, *words: object) -> None: ...


class Nemesis:
    """Lets things go wrong until told to stop; whatever it broke, `stop` leaves to the cluster to mend."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._is_stopped = False
        self._dead: dict[
            int, bool
        ] = {}  # who died and is not in sync again → whether it lost a disk
        self._acts: dict[Fault, Callable[[SimulatedBroker], None]] = {
            Fault.KILL: self._kill,
            Fault.POWER: self._power,
            Fault.WIPE: self._wipe,
            Fault.PAUSE: self._pause,
            Fault.SPLIT: self._split,
            Fault.STORE: self._cut_store,
            Fault.EXPIRE: self._expire,
            Fault.SILENCE: self._silence,
            Fault.REMOVE: self._remove,
            Fault.SEAT: self._unseat,
            Fault.LAG: self._lag,
            Fault.CLOCK: self._jump,
            Fault.BOUNCE: self._bounce,
            Fault.ELECT: self._elect,
            Fault.MOVE: self._move,
            Fault.DELETE: self._delete,
            Fault.MINIMUM: self._change_minimum,
            Fault.FULL: self._fill,
            Fault.BLACKOUT: self._black_out,
        }

    def start(self) -> None:
        """From now on."""
        self._again()

    def stop(self) -> None:
        """No more."""
        self._is_stopped = True

    def _again(self) -> None:
        interval_ms = self._around.plan.fault_interval_ms
        self._around.clock.after(1 + self._around.chance.randrange(2 * interval_ms), self._strike)

    def _strike(self) -> None:
        if self._is_stopped:
            return
        around = self._around
        fault = around.chance.choice(around.plan.faults)
        target = self._target()
        if target.condition is Condition.UP:
            around.note("fault", fault.value, target.broker_id)
            self._acts[fault](target)
        self._again()

    def _target(self) -> SimulatedBroker:
        """Any broker, but often one that leads."""
        around = self._around
        truth = around.chance.choice(list(around.invariants.truths.values()))
        if truth.stored is not None and truth.stored.leader >= 0 and around.chance.random() < 0.5:
            return around.brokers[truth.stored.leader]
        return around.chance.choice(list(around.brokers.values()))

    def _later(self, mend: Callable[[], None]) -> None:
        outage_ms = self._around.plan.outage_ms

        def unless_stopped() -> None:
            if not self._is_stopped:
                mend()

        self._around.clock.after(1 + self._around.chance.randrange(outage_ms), unless_stopped)

    # ---- processes and disks

    def _start_again(self, broker: SimulatedBroker) -> None:
        def start() -> None:
            if broker.condition is Condition.DOWN:
                self._around.note("start", broker.broker_id)
                broker.start()

        self._later(start)

    def _kill(self, broker: SimulatedBroker) -> None:
        if self._may_die(broker, loses=False):
            broker.die()
            self._start_again(broker)

    def _power(self, broker: SimulatedBroker) -> None:
        if self._may_die(broker, loses=not self._around.plan.syncs_every_append):
            broker.die(loses_power=True)
            self._start_again(broker)

    def _wipe(self, broker: SimulatedBroker) -> None:
        if self._may_die(broker, loses=True, has_copy=self._has_copy_elsewhere(broker)):
            broker.die(loses_disk=True)
            self._start_again(broker)

    def _black_out(self, broker: SimulatedBroker) -> None:
        if not self._may_die(broker, loses=True, has_copy=self._has_copy_elsewhere(broker)):
            return
        broker.die(loses_disk=True)
        self._start_again(broker)
        for other in self._around.brokers.values():
            if other.condition is Condition.UP:
                self._dead.setdefault(other.broker_id, False)
                other.die()
                self._start_again(other)

    def _may_die(self, broker: SimulatedBroker, *, loses: bool, has_copy: bool = False) -> bool:
        self._dead = {each: lost for each, lost in self._dead.items() if not self._is_whole(each)}
        others = [lost for each, lost in self._dead.items() if each != broker.broker_id]
        plan = self._around.plan
        has_promise = plan.is_minimum_fixed and plan.min_insync_replicas >= 2
        if any(others) or (loses and not ((has_copy or not others) and has_promise)):
            return False
        self._dead[broker.broker_id] = loses or self._dead.get(broker.broker_id, False)
        return True

    def _has_copy_elsewhere(self, broker: SimulatedBroker) -> bool:
        """Whether for each partition another broker, up or down, has everything that is committed on its disk."""
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
        seen = around.tree.get(BrokerEpochNode.path(broker_id))
        epoch = -1 if seen is None else BrokerEpochNode.decode(broker_id, seen.data).epoch
        broker = around.brokers[broker_id]
        if broker.condition is Condition.DOWN or broker.epoch != epoch:
            return False
        for where, truth in around.invariants.truths.items():
            topic = around.tree.get(TopicNode.path(where.topic))
            assert topic is not None
            replicas = TopicNode.decode(where.topic, topic.data).partitions[where.partition]
            view, stored = truth.views.get(broker_id), truth.stored
            if broker_id in replicas and (
                stored is None
                or broker_id not in stored.isr
                or view is None
                or view.good_to < truth.end
            ):
                return False
        return True

    def _fill(self, broker: SimulatedBroker) -> None:
        """Some room is left: a small batch may fit where a large one, or a new segment's index, does not."""
        disk = broker.disk
        disk.capacity_bytes = disk.used_bytes + self._around.chance.randrange(600)

        def make_room() -> None:
            disk.capacity_bytes = None

        self._later(make_room)

    def _pause(self, broker: SimulatedBroker) -> None:
        broker.pause()

        def go_on() -> None:
            if broker.condition is Condition.PAUSED:
                self._around.note("go on", broker.broker_id)
                broker.go_on()

        self._later(go_on)

    def _bounce(self, broker: SimulatedBroker) -> None:
        broker.shut_down()
        self._start_again(broker)

    # ---- links

    def _split(self, broker: SimulatedBroker) -> None:
        chance, network = self._around.chance, self._around.network
        other = chance.choice([each for each in self._around.brokers if each != broker.broker_id])
        ways = [(broker.broker_id, other), (other, broker.broker_id)]
        if chance.random() < 0.3:
            ways.pop()
        for way in ways:
            network.cut(*way)

        def join() -> None:
            for way in ways:
                network.join(*way)

        self._later(join)

    def _cut_store(self, broker: SimulatedBroker) -> None:
        network = self._around.network
        network.cut(broker.broker_id, STORE)
        self._later(lambda: network.join(broker.broker_id, STORE))

    def _silence(self, broker: SimulatedBroker) -> None:
        session = broker.session
        session.hears_nothing = True
        self._around.network.cut(broker.broker_id, STORE)

        def mend() -> None:
            session.hears_nothing = False
            self._around.network.join(broker.broker_id, STORE)

        self._later(mend)

    def _remove(self, broker: SimulatedBroker) -> None:
        tree, removals = self._around.tree, []
        if tree.get(BrokerNode.path(broker.broker_id)) is not None:
            removals.append(Delete(BrokerNode.path(broker.broker_id)))
        controller_node = tree.get(ControllerNode.PATH)
        if (
            controller_node is not None
            and ControllerNode.decode(controller_node.data).brokerid == broker.broker_id
        ):
            removals.append(Delete(ControllerNode.PATH))
        if removals:
            tree.write(removals, 0)

    def _expire(self, broker: SimulatedBroker) -> None:
        self._around.tree.end_session(broker.session.store.session)

    def _unseat(self, broker: SimulatedBroker) -> None:
        tree = self._around.tree
        if tree.get(ControllerNode.PATH) is not None:
            tree.write([Delete(ControllerNode.PATH)], 0)

    def _lag(self, broker: SimulatedBroker) -> None:
        """Long enough, mostly, to fall out of the ISR."""
        lag_ms = self._around.chance.randrange(3 * self._around.plan.replica_lag_ms)
        broker.lags_until_ms = self._around.clock.now_ms + lag_ms

    def _jump(self, broker: SimulatedBroker) -> None:
        broker.skew_ms = self._around.chance.randrange(-_MAX_CLOCK_JUMP_MS, _MAX_CLOCK_JUMP_MS)

    # ---- what operators do

    def _elect(self, broker: SimulatedBroker) -> None:
        """Make the replicas' order another one, and give the first of them the lead."""
        where = self._around.chance.choice(list(self._around.invariants.truths))
        state = broker.cluster.state.partition(*where)
        if state is not None and not state.is_reassigning:
            order = list(state.replicas)
            self._around.chance.shuffle(order)
            reorder = AlterReassignments(targets={where: tuple(order)})
            broker.run(self._ask(broker, reorder, ElectLeaders(partitions=(where,))))

    def _move(self, broker: SimulatedBroker) -> None:
        chance, plan = self._around.chance, self._around.plan
        where = chance.choice(list(self._around.invariants.truths))
        target = tuple(chance.sample(list(self._around.brokers), plan.replication_factor))
        wanted = None if chance.random() < 0.3 else target
        broker.run(self._ask(broker, AlterReassignments(targets={where: wanted})))

    def _delete(self, broker: SimulatedBroker) -> None:
        where = self._around.chance.choice(list(self._around.invariants.truths))
        partition = broker.partitions.get(*where)
        if partition is not None and partition.is_leader:
            low, high = partition.log.log_start_offset, partition.high_watermark
            offset = self._around.chance.randint(low, high)
            self._around.invariants.truths[where].delete_to(offset)
            partition.delete_records(offset)

    def _change_minimum(self, broker: SimulatedBroker) -> None:
        """Set another minimum for the topic, often to as many as are in sync, which is the remedy for
        NOT_ENOUGH_REPLICAS; or none, and then the default of the controller's broker counts."""
        chance = self._around.chance
        where, truth = chance.choice(list(self._around.invariants.truths.items()))
        value = chance.choice((None, "2", "3"))
        if truth.stored is not None and chance.random() < 0.5:
            value = str(max(1, len(truth.stored.isr)))
        operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
        edit = ConfigEdit(key="min.insync.replicas", operation=operation, value=value)
        wish = ConfigWish(kind=ConfigKind.TOPIC, name=where.topic, edits=(edit,))
        self._around.note("minimum", value)
        broker.run(self._ask(broker, AlterConfigs(wishes=(wish,))))

    @staticmethod
    async def _ask(broker: SimulatedBroker, *events: Event[object]) -> None:
        for event in events:
            await broker.ask(event)


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    """The partitions of a topic."""
    return [TopicPartition(topic, index) for index in range(count)]
