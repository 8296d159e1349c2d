"""One broker of a simulated cluster: the real log directories, roles, partitions and proposals, without sockets.

Owns what the rim of a broker does: the session with the store, registering, following changes, asking the controller, and
answering followers and clients. Everything that happens to it goes through `deliver`: a dead broker does nothing, a paused
one does it all at once when it goes on.
"""

from collections.abc import Callable, Coroutine
from enum import Enum
from functools import cache
from random import Random
from typing import Any, Final, Protocol
from uuid import UUID

from headrace.broker.cluster_view import ClusterView
from headrace.broker.config_rules import SettingRules
from headrace.broker.live_settings import LiveSettings
from headrace.broker.roles import Roles
from headrace.broker.settings.broker_settings import BrokerSettings
from headrace.broker.traffic import Traffic
from headrace.broker.wiring import controller_settings, group_settings
from headrace.controller.brokers import ShutdownWanted
from headrace.controller.changes import ChangeBatch, ChangeGate, decode
from headrace.controller.core import Event
from headrace.controller.isr_proposals import IsrProposals, request_of
from headrace.controller.questions import decode_answer, encode_event
from headrace.controller.seat import holder
from headrace.controller.term import TermParts
from headrace.coordination.nodes import BrokerNode
from headrace.coordination.store import NodeExists, SessionState, StoreFailed
from headrace.coordinator.group.groups import Groups
from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.log_dirs import LogDirs
from headrace.log.retention import delete_old_segments
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.testing.memory_disk import MemoryDisk
from headrace.testing.memory_store import MemoryStore, MemoryTree
from headrace.testing.simulation.controller import SimulatedController
from headrace.testing.simulation.errands import Errand, Fail, Pause, Resume
from headrace.testing.simulation.follower import SimulatedFollowers
from headrace.testing.simulation.plan import Plan
from headrace.testing.virtual_clock import Action, VirtualClock
from headrace.testing.virtual_network import Reply, VirtualNetwork

STORE: Final = 0  # the store's place in the network; brokers are numbered from 1
LOG_DIR: Final = "/d"
_PING_MS: Final = 100
_RETRY_MS: Final = 60
_ISR_CHECK_MS: Final = 100
_HOUSEKEEPING_MS: Final = 400
_CALL_TIMEOUT_MS: Final = 500


class Condition(Enum):
    """How a broker is."""

    UP = "up"
    PAUSED = "paused"
    DOWN = "down"


class Surroundings(Protocol):
    """What a broker needs of the cluster it is in."""

    plan: Plan
    clock: VirtualClock
    network: VirtualNetwork
    tree: MemoryTree
    chance: Random
    brokers: "dict[int, SimulatedBroker]"
    seen_sessions: dict[int, int]

    def touched(self, broker: "SimulatedBroker") -> None: ...
    def lost_logs(self, broker: "SimulatedBroker") -> None: ...


class SimulatedBroker:
    """See the module's text."""

    def __init__(self, around: Surroundings, broker_id: int) -> None:
        self.around = around
        self.broker_id = broker_id
        self.disk = MemoryDisk()
        self.condition = Condition.DOWN
        self.skew_ms = 0  # of the wall clock
        self.lags_until_ms = 0
        self.life = 0
        self.epoch = -1
        self._backlog: list[Action] = []
        self._errands: list[Errand] = []

    def now_ms(self) -> int:
        """This broker's wall clock."""
        return self.around.clock.now_ms + self.skew_ms

    # ---- life and death

    def start(self) -> None:
        """A new process on what the disk holds."""
        assert self.condition is Condition.DOWN
        around = self.around
        self.life += 1
        self.epoch = -1
        self.condition = Condition.UP
        settings = _settings(self.broker_id, around.plan.replica_lag_ms)
        live_settings = LiveSettings(settings)
        self.log_dirs = LogDirs(
            self.disk,
            [LOG_DIR],
            config_for=lambda _: settings.topic_defaults.to_log_config(
                producer_id_expiration_ms=settings.producer_id_expiration_ms
            ),
            new_id=self._new_id,
        )
        self.log_dirs.open(self.now_ms())
        self.partitions = PartitionTable()
        self.cluster = ClusterView(self.broker_id, "simulated", tells_dialled_address=False)
        self.followers = SimulatedFollowers(self)
        self.roles = Roles(
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=self.log_dirs,
            groups=_no_groups(settings),
            followers=self.followers,
            live_settings=live_settings,
            traffic=Traffic(),
            clock=self.now_ms,
            on_topics_deleted=lambda topics, paths: None,
        )
        self.store = MemoryStore(around.tree, self._travel)
        self._gate = ChangeGate()
        self._proposals = IsrProposals()
        parts = TermParts(
            self.store,
            self.broker_id,
            controller_settings(settings),
            SettingRules(live_settings),
            self._new_id,
            around.chance.randrange,
        )
        self.controller = SimulatedController(parts, self.deliver, self._apply)
        self._contact_ms = around.clock.now_ms
        self._open_session()
        self._every(_PING_MS, self._ping)
        self._every(_ISR_CHECK_MS, self._propose_isrs)
        self._every(_HOUSEKEEPING_MS, self._keep_house)
        self.run(self._register(self.log_dirs.previous_broker_epoch))
        around.touched(self)

    def die(self, *, loses_power: bool = False, loses_disk: bool = False) -> None:
        """The process is gone at once; perhaps with what was not synced, perhaps with everything."""
        self._stop()
        if loses_disk:
            self.disk = MemoryDisk()
        elif loses_power:
            self.disk.crash(self.around.chance)
        else:
            self.disk.unlock()
        if loses_disk or loses_power:
            self.around.lost_logs(self)

    def shut_down(self) -> None:
        """Hand over what can be handed over, then stop in an orderly way."""
        self.run(self._shut_down(self.life))

    async def _shut_down(self, life: int) -> None:
        wish = ShutdownWanted(broker_id=self.broker_id, broker_epoch=self.epoch)
        await self.ask(wish)
        # Out of the errand: a broker that stops ends its errands too.
        self.around.clock.after(1, lambda: self._close(life))

    def _close(self, life: int) -> None:
        if self.life != life or self.condition is not Condition.UP:
            return
        self._stop()
        self._note_high_watermarks()
        self.around.tree.end_session(self.store.session)
        self.log_dirs.close(self.now_ms(), broker_epoch=self.epoch)

    def _stop(self) -> None:
        self.condition = Condition.DOWN
        self._backlog.clear()
        errands, self._errands = self._errands, []
        for errand in errands:
            errand.stop()
        self.controller.term = None

    def pause(self) -> None:
        """Stand still; the world goes on."""
        self.condition = Condition.PAUSED

    def go_on(self) -> None:
        """Do what has come in the meantime, in its order, and know nothing of the time that has passed."""
        self.condition = Condition.UP
        backlog, self._backlog = self._backlog, []
        for action in backlog:
            self.deliver(0, action)

    # ---- what happens

    def deliver(self, delay_ms: int, action: Action) -> None:
        """Let something happen here so many milliseconds from now, if this process lives then."""
        life = self.life

        def arrive() -> None:
            if self.life != life or self.condition is Condition.DOWN:
                return
            if self.condition is Condition.PAUSED:
                self._backlog.append(arrive)
                return
            action()
            self.around.touched(self)

        self.around.clock.after(delay_ms, arrive)

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start an errand; it ends with this process."""
        errand = Errand(coroutine)
        self._errands.append(errand)
        errand.start()

    def _every(self, interval_ms: int, action: Action) -> None:
        def again() -> None:
            action()
            self.deliver(interval_ms, again)

        self.deliver(self.around.chance.randrange(interval_ms), again)

    def sleep(self, delay_ms: int) -> Pause:
        """Awaited: some time passes."""
        return Pause(lambda resume, fail: self.deliver(delay_ms, resume))

    async def call(
        self,
        target: int,
        request: "Callable[[SimulatedBroker, Reply], None]",
        *,
        timeout_ms: int = _CALL_TIMEOUT_MS,
    ) -> object:
        """Ask another broker; None if no answer comes in time. A late answer is lost, as on a closed connection."""
        answers: list[object] = []

        def arm(resume: Resume, fail: Fail) -> None:
            def answered(answer: object) -> None:
                if not answers:
                    answers.append(answer)
                    resume()

            self._send(target, request, answered)
            self.deliver(timeout_ms, lambda: answered(None))

        await Pause(arm)
        return answers[0]

    def _send(
        self,
        target: int,
        request: "Callable[[SimulatedBroker, Reply], None]",
        on_answer: Reply,
    ) -> None:
        network, other, life = self.around.network, self.around.brokers[target], self.life

        def reply(answer: object) -> None:
            network.send(target, self.broker_id, lambda: self._take_in(life, on_answer, answer))

        network.send(
            self.broker_id, target, lambda: other.deliver(0, lambda: request(other, reply))
        )

    def _take_in(self, life: int, on_answer: Reply, answer: object) -> None:
        if self.life == life:
            self.deliver(0, lambda: on_answer(answer))

    # ---- the store

    async def _travel(self, back: bool) -> None:  # noqa: FBT001 (the form of a Travel)
        delay_ms = self.around.network.delay_ms

        def arm(resume: Resume, fail: Fail) -> None:
            def arrive() -> None:
                if self._reaches_store:
                    resume()
                elif back:
                    fail(_lost_answer())
                else:
                    self.deliver(_RETRY_MS, arrive)

            self.deliver(delay_ms(), arrive)

        await Pause(arm)

    @property
    def _reaches_store(self) -> bool:
        network = self.around.network
        return network.is_up(self.broker_id, STORE) and network.is_up(STORE, self.broker_id)

    def _open_session(self) -> None:
        self.store.renew()
        self.around.seen_sessions[self.store.session] = self.around.clock.now_ms

    def _ping(self) -> None:
        around, store = self.around, self.store
        now_ms, timeout_ms = around.clock.now_ms, around.plan.session_timeout_ms
        if not self._reaches_store:
            silent_ms = now_ms - self._contact_ms
            if silent_ms > timeout_ms * 11 // 12 - _PING_MS:
                self._session(SessionState.OVERDUE)
            elif silent_ms > timeout_ms * 2 // 3:
                self._session(SessionState.SUSPENDED)
            return
        self._contact_ms = now_ms
        if around.tree.is_alive(store.session):
            around.seen_sessions[store.session] = now_ms
            self._session(SessionState.CONNECTED)
            return
        self._session(SessionState.LOST)
        self._open_session()
        self.run(self._register(self.epoch))

    def _session(self, state: SessionState) -> None:
        if self.store.session_state is not state:
            self.store.report(state)
            self.roles.session_changed(state)

    async def _register(self, previous_epoch: int) -> None:
        """As `coordination.membership` does."""
        is_first = self.epoch == -1
        path, session = BrokerNode.path(self.broker_id), self.store.session
        node = BrokerNode(
            listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
            endpoints=(f"PLAINTEXT://broker-{self.broker_id}:9092",),
            host=f"broker-{self.broker_id}",
            port=9092,
            timestamp=f"{self.life}.{session}",
            previous_broker_epoch=previous_epoch,
        ).encode()
        epoch = -1
        while epoch == -1 and self.store.session == session:
            try:
                epoch = (await self.store.create(path, node, ephemeral=True)).created_txn
            except NodeExists:
                ours = await self._get(path)
                if ours is not None and ours[0] == node:
                    epoch = ours[1]
                else:
                    await self.sleep(_RETRY_MS)
            except StoreFailed:
                await self.sleep(_RETRY_MS)
        if epoch != -1:
            self.epoch = epoch
            self.roles.registered(epoch)
            if is_first:
                self.run(self.controller.run())
                self.run(self._follow_changes())

    async def _get(self, path: str) -> tuple[bytes, int] | None:
        try:
            node = await self.store.get(path)
        except StoreFailed:
            return None
        return None if node is None else (node.data, node.created_txn)

    # ---- the controller

    def _apply(self, batch: ChangeBatch) -> None:
        if self._gate.admits(batch):
            self.roles.apply(batch)

    async def _follow_changes(self) -> None:
        while True:
            if self.controller.term is None:
                try:
                    controller_id = await holder(self.store)
                except StoreFailed:
                    controller_id = -1
                if controller_id not in (-1, self.broker_id):
                    await self._pull(controller_id)
            await self.sleep(_RETRY_MS)

    async def _pull(self, controller_id: int) -> None:
        epoch, offset = -1, 0
        while self.controller.term is None:
            asked = epoch, offset
            answer = await self.call(
                controller_id, lambda other, reply, at=asked: other.controller.on_pull(*at, reply)
            )
            if not isinstance(answer, bytes):
                return
            batch = decode(answer)
            epoch, offset = batch.controller_epoch, batch.next_offset
            if batch.changes or batch.is_snapshot:
                self._apply(batch)

    async def ask(self, event: Event[Any]) -> Any:
        """Have an event decided by whoever is controller; None if that is not to be had now."""
        kind, data = encode_event(event)
        try:
            controller_id = await holder(self.store)
        except StoreFailed:
            return None
        if controller_id == -1:
            return None
        answer = await self.call(
            controller_id, lambda other, reply: other.controller.on_ask(kind, data, reply)
        )
        return decode_answer(kind, answer) if isinstance(answer, bytes) else None

    def _propose_isrs(self) -> None:
        proposed = self._proposals.due(
            self.partitions, now_ms=self.now_ms(), max_lag_ms=self.around.plan.replica_lag_ms
        )
        if proposed:
            self.run(self._propose(proposed))

    async def _propose(self, proposed: dict[Partition, Any]) -> None:
        answer = await self.ask(request_of(self.broker_id, self.epoch, proposed))
        if answer is not None:
            self._proposals.answered(proposed, answer, now_ms=self.now_ms())

    # ---- by itself

    def _keep_house(self) -> None:
        """As `broker.housekeeping` does, but at once."""
        now_ms = self.now_ms()
        for log in self.log_dirs:
            if log.has_unflushed_segments:
                plan = log.unflushed(sealed_only=True)
                plan.run()
                log.mark_flushed(plan, now_ms)
            partition = self.partitions.get(*log.topic_partition)
            if partition is not None:
                delete_old_segments(log, high_watermark=partition.high_watermark, now_ms=now_ms)
            for path in log.removable(now_ms):
                self.disk.remove(path)
        self._note_high_watermarks()
        for _, files in self.log_dirs.checkpoints():
            for path, content in files:
                self.disk.replace(path, content)

    def _note_high_watermarks(self) -> None:
        for directory in self.log_dirs.online:
            directory.high_watermarks = {
                where: partition.high_watermark
                for where in directory.logs
                if (partition := self.partitions.get(*where)) is not None
            }

    def _new_id(self) -> UUID:
        return UUID(int=self.around.chance.getrandbits(128))


def on_disk_failed(partition: Partition, error: DiskFailed) -> None:
    """Disks in this simulation forget, but they do not fail."""
    raise AssertionError(f"{partition.topic_partition}: {error}")


@cache
def _settings(broker_id: int, replica_lag_ms: int) -> BrokerSettings:
    return BrokerSettings.from_properties(
        {
            "node.id": str(broker_id),
            "log.dirs": LOG_DIR,
            "replica.lag.time.max.ms": str(replica_lag_ms),
            "replica.fetch.backoff.ms": "50",
        }
    )


@cache
def _no_groups(settings: BrokerSettings) -> Groups:
    """A coordinator that is never asked: there is no topic for its groups."""

    def never(_: object) -> Any:
        raise AssertionError("a group in a simulation without groups")

    return Groups(
        group_settings(settings),
        partition_count=lambda: 0,
        wall_clock_ms=lambda: 0,
        new_uuid=lambda: "",
        spawn=never,
    )


def find(broker: SimulatedBroker, where: TopicPartition) -> Partition | None:
    """A partition hosted by a broker that lives."""
    return None if broker.condition is Condition.DOWN else broker.partitions.get(*where)
