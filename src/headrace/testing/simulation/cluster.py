"""A simulated cluster from start to end: set up, let things go wrong, mend them, and see that all is well.

`run_seed` plays one seed. The same seed and number of steps give the same run, step for step.
"""

import logging
from collections import deque
from random import Random
from typing import Final, NamedTuple

from headrace.controller.topics import CreateTopics, NewTopic
from headrace.coordination.nodes import ROOTS, BrokerNode, ControllerEpochNode
from headrace.coordination.store import Create, Node
from headrace.ids import TopicPartition
from headrace.replication.partition import Partition
from headrace.testing.memory_store import MemoryTree
from headrace.testing.simulation.broker import Condition, SimulatedBroker
from headrace.testing.simulation.clients import Kind, SimulatedConsumer, SimulatedProducer
from headrace.testing.simulation.faults import Nemesis, partitions_of
from headrace.testing.simulation.invariants import Invariants
from headrace.testing.simulation.plan import Plan, draw_plan
from headrace.testing.simulation.truth import AFTER_EPOCH, Violation
from headrace.testing.virtual_clock import VirtualClock
from headrace.testing.virtual_network import VirtualNetwork

TOPIC: Final = "simulated"
DEFAULT_STEPS: Final = 1_000
_START_MS: Final = 1_000_000
_TO_SET_UP_MS: Final = 10_000
_TO_MEND_MS: Final = 30_000
_STORY_LENGTH: Final = 60


class Outcome(NamedTuple):
    """What came of a seed."""

    seed: int
    steps: int
    virtual_ms: int
    committed: int
    epochs: int


class SimulationFailed(AssertionError):
    """A seed found something; the text is how to see it again."""


class Cluster:
    """See the module's text."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.chance = Random(plan.seed * 2 + 1)
        self.clock = VirtualClock(_START_MS)
        self.network = VirtualNetwork(self.clock, self.chance)
        self.partitions = partitions_of(TOPIC, plan.partition_count)
        self.invariants = Invariants(self.partitions)
        self.seen_sessions: dict[int, int] = {}
        self.timed_out: set[int] = set()  # sessions
        self.steps = 0
        self._hosting: dict[tuple[int, TopicPartition], int] = {}
        self.story: deque[tuple[int, int, tuple[object, ...]]] = deque(maxlen=_STORY_LENGTH)
        self.tree = MemoryTree(self._on_write)
        self.tree.write([Create(path) for path in ROOTS], 0)
        self.tree.write([Create(ControllerEpochNode.PATH, ControllerEpochNode.encode(0))], 0)
        self.brokers = {
            broker_id: SimulatedBroker(self, broker_id)
            for broker_id in range(1, plan.broker_count + 1)
        }
        self.nemesis = Nemesis(self)
        self.producers = [
            SimulatedProducer(self, 100 + number, kind, self.partitions)
            for number, kind in enumerate((Kind.IDEMPOTENT, Kind.IDEMPOTENT, Kind.ALL, Kind.ONE))
        ]
        self.consumers = [
            SimulatedConsumer(self, 200 + number, where)
            for number, where in enumerate(self.partitions)
        ]

    # ---- what the parts tell

    def _on_write(self, path: str, before: Node | None, after: Node | None) -> None:
        if before is not None or (after is not None and after.data):
            self.note(path, "gone" if after is None else _short(path, after))
        self.invariants.on_write(path, before, after)

    def note(self, *words: object) -> None:
        """Remember what happened, for the story of a failure."""
        self.story.append((self.steps, self.clock.now_ms - _START_MS, words))

    def touched(self, broker: SimulatedBroker) -> None:
        """A step was taken by this broker: nothing that must be true may be broken now."""
        if broker.condition is not Condition.UP:
            return
        for partition in broker.partitions:
            key = broker.broker_id, partition.topic_partition
            role = partition.leader_epoch if partition.is_leader else ~partition.leader_epoch
            if self._hosting.get(key) != role:
                self._hosting[key] = role
                self._note_role(broker, partition)
        self.invariants.look(broker.broker_id, broker.life, broker.log_dirs, broker.partitions)

    def _note_role(self, broker: SimulatedBroker, partition: Partition) -> None:
        does = "leads" if partition.is_leader else f"follows {partition.leader_id} in"
        self.note(
            f"broker {broker.broker_id}.{broker.life} {does} epoch {partition.leader_epoch} of "
            f"{partition.topic_partition} with {partition.log.log_end_offset}, "
            f"high watermark {partition.high_watermark}"
        )

    def died(self, broker: SimulatedBroker, *, has_lost: bool) -> None:
        """A broker died, perhaps with something on its disk, if only what had never been acknowledged to anybody."""
        if broker.epoch != -1:
            self.invariants.on_died(broker.broker_id, self.tree.last_txn)
        if has_lost:
            self.invariants.on_lost(broker.broker_id, self.tree.last_txn)

    # ---- a run

    def step(self) -> None:
        """Let the next thing happen, and look at what came of it."""
        self.clock.step()
        self.steps += 1
        self.invariants.check()

    def set_up(self) -> None:
        """Start the brokers and create the topic, in fair weather."""
        for broker in self.brokers.values():
            broker.start()
        self._expire_sessions()
        first = self.brokers[1]
        first.run(self._create_topic(first))
        deadline = self.clock.now_ms + _TO_SET_UP_MS
        while any(truth.stored is None for truth in self.invariants.truths.values()):
            if self.clock.now_ms > deadline:
                raise Violation("liveness: no topic could be created")
            self.step()

    async def _create_topic(self, broker: SimulatedBroker) -> None:
        plan = self.plan
        configs = {
            "internal.segment.bytes": str(plan.segment_bytes),
            "index.interval.bytes": "150",
            "file.delete.delay.ms": "500",
        }
        if not plan.defaults_differ:
            configs["min.insync.replicas"] = str(plan.min_insync_replicas)
        if plan.allows_unclean_elections:
            configs["unclean.leader.election.enable"] = "true"
        if plan.syncs_every_append:
            configs["flush.messages"] = "1"
        topic = NewTopic(
            name=TOPIC,
            num_partitions=plan.partition_count,
            replication_factor=plan.replication_factor,
            configs=configs,
        )
        # All brokers must be registered, or there are not enough for the replicas.
        while not (answers := await broker.ask(CreateTopics(topics=(topic,)))) or answers[0].error:
            await broker.sleep(100)

    def _expire_sessions(self) -> None:
        now_ms, timeout_ms = self.clock.now_ms, self.plan.session_timeout_ms
        for session, seen_ms in list(self.seen_sessions.items()):
            if now_ms - seen_ms > timeout_ms:
                del self.seen_sessions[session]
                self.timed_out.add(session)
                self.tree.end_session(session)
        self.clock.after(100, self._expire_sessions)

    def suffer(self) -> None:
        """Produce and consume while things go wrong."""
        self.network.weather = self.plan.weather
        for producer in self.producers:
            producer.start()
        for consumer in self.consumers:
            consumer.start()
        self.nemesis.start()
        for _ in range(self.plan.steps):
            self.step()

    def mend(self) -> None:
        """Liveness: once nothing goes wrong any more, everything comes right, and in time."""
        self.note("mend")
        self.nemesis.stop()
        self.network.heal()
        for broker in self.brokers.values():
            broker.lags_until_ms = broker.skew_ms = 0
            if broker.condition is not Condition.DOWN:
                broker.session.hears_nothing = False
            broker.disk.capacity_bytes = None
            if broker.condition is Condition.PAUSED:
                broker.go_on()
        for producer in self.producers:
            producer.is_stopped = True
        deadline = self.clock.now_ms + _TO_MEND_MS
        while (unwell := self._unwell()) is not None:
            if self.clock.now_ms > deadline:
                raise Violation(f"liveness: {unwell}")
            pause_until = self.clock.now_ms + 100
            while self.clock.now_ms < pause_until:
                self.step()
            for broker in self.brokers.values():
                if broker.condition is Condition.DOWN:
                    broker.start()

    def _unwell(self) -> str | None:
        """What is not as it should be, if anything. A partition that waits for an operator is as it should be."""
        for broker in self.brokers.values():
            if broker.condition is not Condition.UP:
                return f"broker {broker.broker_id} is {broker.condition.value}"
        led = {
            where: truth
            for where, truth in self.invariants.truths.items()
            if not truth.waits_for_operator
        }
        for producer in self.producers:
            if producer.pending is not None and producer.pending[0] in led:
                return f"producer {producer.producer_id} waits for {producer.pending[0]}"
        for where, truth in led.items():
            stored = truth.stored
            assert stored is not None
            state = self.brokers[1].cluster.state.partition(*where)
            if state is None or state.is_reassigning or set(stored.isr) != set(state.replicas):
                return f"{where}: {stored}, but broker 1 knows {state}"
            ends = {view.end for view in truth.views.values()}
            marks = {view.high_watermark for view in truth.views.values()}
            if set(truth.views) != set(stored.isr) or len(ends | marks) != 1:
                return f"{where}: replicas {sorted(truth.views)} end at {ends}, marks {marks}"
        for consumer in self.consumers:
            if consumer.where in led and consumer.position < led[consumer.where].end:
                return f"a consumer of {consumer.where} is at {consumer.position}"
        return None

    def judge(self) -> None:
        """At the end: exactly once, in order, and the same bytes everywhere."""
        self.invariants.look_again()
        for where, truth in self.invariants.truths.items():
            truth.check_sequences()
            contents = {
                batch.data[AFTER_EPOCH:]: number
                for number, batch in enumerate(truth.committed.values())
            }
            for producer in self.producers:
                places = [contents.get(batch[AFTER_EPOCH:], -1) for batch in producer.acked[where]]
                if -1 in places:
                    raise Violation(f"acknowledged, lost: {where}: {places}")
                if producer.kind is Kind.IDEMPOTENT and places != sorted(set(places)):
                    raise Violation(f"acknowledged, out of order: {where}: {places}")


def run_seed(seed: int, steps: int = DEFAULT_STEPS) -> Outcome:
    """Play a seed to its end. Raises SimulationFailed."""
    return run_plan(draw_plan(seed, steps))


def tell_seed(seed: int, *, steps: int) -> Outcome | str:
    """Play a seed to its end: what came of it, or the story of its failure."""
    try:
        return run_seed(seed, steps)
    except SimulationFailed as failure:
        return str(failure)


def run_plan(plan: Plan) -> Outcome:
    """Play a plan to its end. Raises SimulationFailed."""
    cluster = Cluster(plan)
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # the faults' echo; a failure tells its own story
    try:
        cluster.set_up()
        cluster.suffer()
        cluster.mend()
        cluster.judge()
    except Exception as error:
        raise SimulationFailed(report(cluster, error)) from error
    finally:
        logging.disable(disabled)
        for broker in cluster.brokers.values():
            broker.end()
    return outcome_of(cluster)


def outcome_of(cluster: Cluster) -> Outcome:
    """What came of a run that went well."""
    truths = cluster.invariants.truths.values()
    return Outcome(
        cluster.plan.seed,
        cluster.steps,
        cluster.clock.now_ms - _START_MS,
        sum(truth.end for truth in truths),
        sum(len(truth.leaders) for truth in truths),
    )


def _short(path: str, node: Node) -> str:
    """What a node says, without what never changes."""
    text = node.data.decode()
    if path.startswith(BrokerNode.ROOT):
        text = f"previous epoch {BrokerNode.decode(0, node.data).previous_broker_epoch}"
    return f"v{node.version} of {node.created_txn}: {text}"


def report(cluster: Cluster, error: Exception) -> str:
    """The story of a run that failed, and how to see it again."""
    plan = cluster.plan
    lines = [
        f"  {step:6d} {at:6d} ms  {' '.join(map(str, words))}" for step, at, words in cluster.story
    ]
    return "\n".join(
        (
            f"seed {plan.seed} fails at step {cluster.steps}: {type(error).__name__}: {error}",
            f"  {plan}",
            *lines,
            f"  again: python -m headrace.testing.simulation --seed {plan.seed} --steps {plan.steps}",
        )
    )
