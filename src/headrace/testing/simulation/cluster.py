"""A simulated cluster from start to end: set up, let things go wrong, let them heal, see that all is well, perhaps once more.

The same plan gives the same run, step for step.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from headrace.broker.cluster.store_identity import WrongStore
from headrace.coordination.store import Node, StoreFailed
from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.files.checkpoint import read_topic_id
from headrace.testing.simulation.admin import UNCLEAN, SimulatedAdmin
from headrace.testing.simulation.agreement import disagreement
from headrace.testing.simulation.at_rest import leftover
from headrace.testing.simulation.broker import (
    LOG_DIRS,
    PORT,
    Condition,
    SimulatedBroker,
    host_of,
)
from headrace.testing.simulation.consumer import SimulatedConsumer
from headrace.testing.simulation.faults.nemesis import Nemesis
from headrace.testing.simulation.group import GroupTruth, SimulatedMember
from headrace.testing.simulation.invariants import Invariants
from headrace.testing.simulation.plan import Fault, Plan, TopicPlan
from headrace.testing.simulation.producer import SimulatedProducer
from headrace.testing.simulation.story import Story, Violation
from headrace.testing.simulation.transaction_truth import TransactionTruth
from headrace.testing.simulation.transactional import (
    CommittedReader,
    SimulatedTransactionalProducer,
)
from headrace.testing.simulation.truth import Truth
from headrace.testing.virtual.process import VirtualProcess
from headrace.testing.virtual.scheduler import MILLISECOND_US, SECOND_US
from headrace.testing.virtual.world import VirtualWorld
from headrace.testing.virtual.zookeeper import ZOOKEEPER_HOST, VirtualEnsemble
from headrace.wire.error_code import ErrorCode

_TO_SET_UP_S: Final = 30.0
_TO_HEAL_S: Final = 180.0
_REST_S: Final = 2.0
_RESTART_US: Final = 500 * MILLISECOND_US
_UNNOTICED_MS: Final = 6_000  # of the stream of changes
_LOOK_S: Final = 0.1
_TRANSACTIONAL_IDS: Final = 2


class Outcome(NamedTuple):
    """What came of a run."""

    seed: int
    steps: int
    virtual_ms: int
    committed: int
    epochs: int
    digest: int


class SimulatedCluster:
    """The brokers, the store, the clients and the truth of one run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seed = plan.seed
        self.world = VirtualWorld(plan.seed)
        scheduler = self.world.scheduler
        self.story = Story(scheduler)
        # An outage may keep the controller's word from a leader, and then the longest silence that is not noticed.
        longest_stale_ms = plan.granted_timeout_ms + plan.outage_ms + _UNNOTICED_MS
        self.invariants = Invariants(
            self.story, lambda: scheduler.now_us, longest_stale_ms * MILLISECOND_US
        )
        self.ensemble = VirtualEnsemble(
            self.world.process(ZOOKEEPER_HOST), self._on_write, plan.granted_timeout_ms
        )
        self.brokers = {
            broker_id: SimulatedBroker(self, broker_id, properties_of(plan, broker_id), plan.pace)
            for broker_id in range(1, plan.broker_count + 1)
        }
        for broker in self.brokers.values():
            broker.is_older = plan.starts_with_older_version
        self._brokers_of_hosts = {broker.host: broker for broker in self.brokers.values()}
        self.nemesis = Nemesis(self)
        self.volatile_topics = ["volatile-0", "volatile-1"]
        self.is_resting = False
        self.is_over = False
        self.producers: list[SimulatedProducer] = []
        self.consumers: list[SimulatedConsumer] = []
        self.members: dict[SimulatedMember, VirtualProcess] = {}
        self._group = GroupTruth()
        self.transactions = TransactionTruth(self.invariants)
        self._transactional: list[SimulatedTransactionalProducer] = []
        self._member_count = 0
        self._admin_count = 0
        self._failure: BaseException | None = None

    @property
    def broker_ids(self) -> list[int]:
        """The brokers, up or down."""
        return list(self.brokers)

    def wall_clock_ms(self) -> int:
        """A clock that is right."""
        return self.ensemble.process.wall_clock_ms()

    def is_older(self, host: str) -> bool:
        """Whether a broker of the older version runs on a host."""
        broker = self._brokers_of_hosts.get(host)
        return broker is not None and broker.runs_older

    # ---- what the parts tell

    def fail(self, error: BaseException) -> None:
        """Something went wrong where it cannot be raised: the run ends after this step."""
        self._failure = self._failure or error

    def _on_write(self, path: str, before: Node | None, after: Node | None) -> None:
        if before is not None or (after is not None and after.data):
            self.story.tell(f"store: {path} {'is gone' if after is None else _short(after)}")
        try:
            self.invariants.on_write(path, before, after)
        except Violation as violation:
            self.fail(violation)

    def stepped(self, broker: SimulatedBroker) -> None:
        """A callback of a broker has run: nothing that must be true may be broken now."""
        process, parts = broker.process, broker.parts
        if process is None:
            return
        if process.failures:
            raise _unexpected(broker.name, process)
        if parts is not None:
            self.invariants.look(broker, parts)

    def died(self, broker: SimulatedBroker, *, has_lost: bool) -> None:
        """A broker is about to be killed; perhaps its disk has lost something."""
        txn = self.ensemble.lasting_tree.last_txn
        if broker.broker_epoch != -1:
            self.invariants.on_died(broker.broker_id, txn)
        if has_lost:
            self.invariants.on_lost(broker.broker_id, txn)

    def ended(self, broker: SimulatedBroker, error: BaseException | None) -> None:
        """A broker has ended by itself."""
        self.story.tell(f"{broker.name} has ended" + ("" if error is None else f": {error!r}"))
        is_expected = (
            isinstance(error, StoreFailed)
            or (isinstance(error, WrongStore) and Fault.FORGET in self.plan.faults)
            or (
                isinstance(error, DiskFailed) and bool(broker.disk.failing or broker.disk.bad_bytes)
            )
        )
        if error is not None and not is_expected:
            self.fail(error)
        elif self.is_resting or error is not None:
            self.world.scheduler.after(_RESTART_US, lambda: self._start(broker))

    def _start(self, broker: SimulatedBroker) -> None:
        if broker.condition is Condition.DOWN:
            broker.start()

    # ---- time

    def step(self) -> None:
        """Let the next thing happen, and look at what came of it."""
        if not self.world.scheduler.step():
            raise Violation("liveness: nothing is left to happen")
        if self._failure is not None:
            raise self._failure
        self.invariants.check()

    def run_for(self, seconds: float) -> None:
        """Let so much time pass."""
        until_us = self.world.scheduler.now_us + int(seconds * SECOND_US)
        while self.world.scheduler.now_us < until_us:
            self.step()

    def run_until(self, problem: Callable[[], str | None], seconds: float) -> None:
        """Until there is no problem any more, which must be within so much time."""
        deadline_us = self.world.scheduler.now_us + int(seconds * SECOND_US)
        while (found := problem()) is not None:
            if self.world.scheduler.now_us > deadline_us:
                raise Violation(f"liveness: {found}")
            self.run_for(_LOOK_S)

    # ---- clients

    def client(self, host: str, work: Coroutine[Any, Any, None]) -> VirtualProcess:
        """Run a client's program in a process of its own, which ends with it."""
        process = self.world.process(host, after_step=self._client_stepped)
        process.loop.create_task(self._guarded(process, work))
        return process

    def _client_stepped(self, process: VirtualProcess) -> None:
        if process.failures:
            raise _unexpected(process.host, process)

    async def _guarded(self, process: VirtualProcess, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 (it ends the run)
            self.fail(error)
        self.world.scheduler.after(1, process.end)

    def admin(
        self, work: Callable[[SimulatedAdmin], Coroutine[Any, Any, object]]
    ) -> VirtualProcess:
        """Let an admin client do something; the process has ended when it is done."""
        admin = SimulatedAdmin(self, self._admin_count)
        self._admin_count += 1

        async def run() -> None:
            answer = await work(admin)
            self.story.tell(f"{admin.client.name} is answered {answer!r}")
            admin.client.close()

        return self.client(admin.client.name, run())

    def start_member(self) -> None:
        """One more member joins the consumer group."""
        partitions = [
            TopicPartition(topic.name, index)
            for topic in self.plan.topics
            for index in range(topic.partitions)
        ]
        member = SimulatedMember(self, self._member_count, self._group, partitions)
        self._member_count += 1
        self.members[member] = self.client(member.name, member.run())

    def start_clients(self) -> None:
        topics = [topic.name for topic in self.plan.topics] + self.volatile_topics
        for number, kind in enumerate(self.plan.producers):
            producer = SimulatedProducer(self, number, kind, topics)
            self.producers.append(producer)
            self.client(producer.name, producer.run())
        read = [
            (topic.name, index) for topic in self.plan.topics for index in range(topic.partitions)
        ]
        for number, (name, index) in enumerate([*read, (self.volatile_topics[0], 0)]):
            consumer = SimulatedConsumer(self, number, name, index, reads_committed=number % 2 == 1)
            self.consumers.append(consumer)
            self.client(consumer.name, consumer.run())
        for _ in range(self.plan.group_members):
            self.start_member()
        if self.plan.has_transactions:
            self._start_transactions(self.plan.topics[0])

    def _start_transactions(self, topic: TopicPlan) -> None:
        for number in range(_TRANSACTIONAL_IDS):
            producer = SimulatedTransactionalProducer(self, self.transactions, number, topic.name)
            self._transactional.append(producer)
            self.client(producer.name, producer.run())
        for index in range(topic.partitions):
            number = len(self.consumers)
            reader = CommittedReader(self, self.transactions, number, topic.name, index)
            self.consumers.append(reader)
            self.client(reader.name, reader.run())

    # ---- a run

    def run(self) -> None:
        """From start to end."""
        self.set_up()
        self.start_clients()
        length_ms = self.plan.duration_ms // self.plan.rounds
        for number in range(self.plan.rounds):
            self.suffer(number * length_ms, (number + 1) * length_ms)
            self.heal(is_last=number == self.plan.rounds - 1)
            self.judge()

    def set_up(self) -> None:
        """Start the brokers and create the topics, in fair weather."""
        for broker in self.brokers.values():
            self.world.network.hosts.add(broker.host)
            broker.start()
        self.run_until(self._unready, _TO_SET_UP_S)
        creating = self.admin(self._create_topics)
        self.run_until(lambda: None if creating.has_ended else "topics are created", _TO_SET_UP_S)

    def _unready(self) -> str | None:
        for broker in self.brokers.values():
            if broker.condition is not Condition.UP or not broker.is_ready:
                return f"{broker.name} does not serve yet"
            parts = broker.parts
            if parts is None or len(parts.cluster.state.brokers) < len(self.brokers):
                return f"{broker.name} does not know all brokers"
        return None

    async def _create_topics(self, admin: SimulatedAdmin) -> object:
        plan = self.plan
        for topic in plan.topics:
            configs = {
                "internal.segment.bytes": str(plan.segment_bytes),
                "index.interval.bytes": "150",
                "file.delete.delay.ms": "500",
                **dict(topic.configs),
            }
            if not plan.defaults_differ:
                configs["min.insync.replicas"] = str(plan.min_insync_replicas)
            if plan.allows_unclean_elections:
                configs["unclean.leader.election.enable"] = "true"
            error: ErrorCode | None = None
            while error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                error = await admin.create_topic(
                    topic.name, topic.partitions, plan.replication_factor, configs
                )
        return "all topics are created"

    def suffer(self, from_ms: int, to_ms: int) -> None:
        """Let a part of the plan's faults strike while clients work."""
        self.is_resting = False
        self.world.network.weather = self.plan.weather
        self.nemesis.start(from_ms, to_ms)
        self.run_for((to_ms - from_ms) / 1_000)

    def heal(self, *, is_last: bool) -> None:
        """Liveness: once nothing goes wrong any more, everything comes right, and in time."""
        self.story.tell("everything heals")
        self.is_resting = True
        self.nemesis.stop()
        for broker in self.brokers.values():
            self._start(broker)
        self.run_until(self._broken, _TO_HEAL_S)
        self._move_away_old_logs()
        self.run_until(self._broken, _TO_HEAL_S)
        self._elect_where_nobody_can_lead()
        self.run_until(self._unwell, _TO_HEAL_S)
        if is_last:
            self.is_over = True
            self.run_for(_REST_S)
            self.run_until(self._restless, _TO_HEAL_S)

    def _broken(self) -> str | None:
        for broker in self.brokers.values():
            if broker.condition is not Condition.UP or not broker.is_ready:
                return f"{broker.name} is {broker.condition.value}"
        return None

    def _move_away_old_logs(self) -> None:
        """As the log asks for: a directory was out of use while a topic was deleted and created again in another one."""
        for broker in self.brokers.values():
            log_dirs = None if broker.parts is None else broker.parts.log_dirs
            if log_dirs is None or not log_dirs.broken:
                continue
            self.story.tell(f"an operator moves old logs of {broker.name} away")
            self.died(broker, has_lost=False)
            broker.kill()
            for where in log_dirs.broken:
                self._move_away(broker, where, self.invariants.topic_ids.get(where.topic))
            broker.start()

    @staticmethod
    def _move_away(broker: SimulatedBroker, where: TopicPartition, topic_id: UUID | None) -> None:
        for directory in broker.log_dirs:
            path = f"{directory}/{where}"
            if broker.disk.exists(path) and read_topic_id(broker.disk, path) != topic_id:
                broker.disk.remove_tree(path)

    def _elect_where_nobody_can_lead(self) -> None:
        """As an operator does for partitions that lost a disk while nobody was in sync."""
        for truth in self.invariants.truths.values():
            if truth.waits_for_operator:
                self.story.tell(f"an operator asks for an unclean election of {truth.name}")
                self.invariants.unclean_wishes.add(truth.name)
                self.admin(partial(_elect_uncleanly, where=truth.name))

    def _unwell(self) -> str | None:
        """What is not as it should be, if anything."""
        if (broken := self._broken()) is not None:
            return broken
        for producer in self.producers:
            if producer.pending is not None:
                return f"{producer.name} waits for an acknowledgement"
        for transactional in self._transactional:
            if transactional.is_busy:
                return f"{transactional.name} waits for the end of a transaction"
        problems = (unwell(truth) for truth in self.invariants.truths.values())
        lags = (consumer.lag for consumer in self.consumers)
        problem = next(filter(None, (*problems, *lags)), None)
        if problem is None and self._transactional:
            problem = self.transactions.open_somewhere()
        return problem or disagreement(self.ensemble.tree, self.brokers)

    def _restless(self) -> str | None:
        for broker in self.brokers.values():
            if broker.parts is None:
                return f"{broker.name} does not run"
            if (left := leftover(broker, broker.parts)) is not None:
                return left
        return None

    def judge(self) -> None:
        """Everything is at rest: exactly once, in order, and the same bytes everywhere."""
        self.invariants.look_again()
        for producer in self.producers:
            producer.check_acked()
        self.transactions.check_all_or_nothing()

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        truths = self.invariants.truths.values()
        scheduler = self.world.scheduler
        return Outcome(
            self.seed,
            scheduler.steps,
            self.story.now_ms,
            sum(truth.end for truth in truths),
            self.invariants.epochs + sum(len(truth.leaders) for truth in truths),
            scheduler.digest,
        )


def properties_of(plan: Plan, broker_id: int) -> dict[str, str]:
    """The settings of a broker."""
    every_append = "1" if plan.syncs_every_append else "9223372036854775807"
    return {
        "node.id": str(broker_id),
        "log.dirs": ",".join(LOG_DIRS[: plan.log_dirs]),
        "listeners": f"PLAINTEXT://{host_of(broker_id)}:{PORT}",
        "zookeeper.connect": f"{ZOOKEEPER_HOST}:2181",
        "zookeeper.session.timeout.ms": str(plan.session_timeout_ms),
        "zookeeper.connection.timeout.ms": "10000",
        "min.insync.replicas": str(plan.default_min_isr(broker_id)),
        "replica.lag.time.max.ms": str(plan.replica_lag_ms),
        "log.flush.interval.messages": every_append,
        "headrace.busy.poll.us": "0",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": str(plan.replication_factor),
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": str(plan.replication_factor),
        "transaction.state.log.min.isr": str(plan.default_min_isr(broker_id)),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        "log.roll.ms": str(plan.roll_ms),
        "replica.high.watermark.checkpoint.interval.ms": str(plan.checkpoint_ms),
        "log.cleaner.backoff.ms": "1000",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1",
    }


async def _elect_uncleanly(admin: SimulatedAdmin, where: TopicPartition) -> object:
    """As often as it takes to get an answer: the controller may just be going."""
    answer: ErrorCode | None = None
    while answer is None or answer.retriable:
        answer = await admin.elect(*where, UNCLEAN)
        await admin.client.pause(_LOOK_S)
    return answer


def _unexpected(who: str, process: VirtualProcess) -> Violation:
    failure = process.failures[0]
    error = failure.get("exception")
    violation = Violation(f"no unexpected exception: {who}: {failure.get('message')}: {error!r}")
    violation.__cause__ = error
    return violation


def _short(node: Node) -> str:
    return f"v{node.version} {node.data.decode()}"


def unwell(truth: Truth) -> str | None:
    """Why a partition is not at rest."""
    stored = truth.stored
    if stored is None:
        return f"{truth.name} has no leader yet"
    if set(stored.isr) != set(truth.replicas):
        return f"{truth.name}: in sync are {stored.isr} of {truth.replicas}"
    ends = {view.end for view in truth.views.values()}
    marks = {view.high_watermark for view in truth.views.values()}
    if set(truth.views) != set(stored.isr) or len(ends | marks) != 1:
        return f"{truth.name}: replicas {sorted(truth.views)} end at {ends}, marks {marks}"
    return None
