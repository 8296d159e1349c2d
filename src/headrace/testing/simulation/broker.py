"""One broker of a simulated cluster: the real log directories, roles, partitions and proposals, without sockets.

Owns what the rim of a broker does: the session with the store, registering, following changes, asking the controller, and
answering followers and clients. Everything that happens to it goes through `deliver`: a dead broker does nothing, a paused
one does it all at once when it goes on.
"""

from collections.abc import Callable, Coroutine
from enum import Enum
from functools import cache, partial
from itertools import count
from random import Random
from typing import Any, Final, Protocol
from uuid import UUID

from headrace.broker.cluster.cluster_feed import ClusterFeed, FeedListener
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.config_rules import SettingRules
from headrace.broker.cluster.dynamic_settings import DynamicSettings
from headrace.broker.coordinators.coordinator_table import CoordinatorTable
from headrace.broker.fetching.fetch_sessions import FetchSessions
from headrace.broker.replicas.replica_hosting import ReplicaHosting
from headrace.broker.telemetry.traffic import Traffic
from headrace.broker.upkeep.housekeeping import note_replicas
from headrace.broker.wiring import controller_settings
from headrace.controller.brokers import ShutdownWanted
from headrace.controller.changes import ChangeBatch, ChangeGate, decode
from headrace.controller.controller_requests import decode_answer, encode_event
from headrace.controller.controllership import holder
from headrace.controller.core import Event
from headrace.controller.isr_proposals import IsrProposals, request_of
from headrace.controller.raise_epochs import LogEpoch, RaiseEpochs
from headrace.controller.term import TermParts
from headrace.coordination.store import StoreFailed
from headrace.log.log_dirs import LogDirs
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.testing.memory_disk import MemoryDisk
from headrace.testing.memory_store import MemoryTree
from headrace.testing.simulation.controller import SimulatedController
from headrace.testing.simulation.errands import Errand, Fail, Pause, Resume
from headrace.testing.simulation.follower import SimulatedFollowers
from headrace.testing.simulation.housekeeping import (
    keep_house,
    sync_new_logs,
)
from headrace.testing.simulation.plan import Fault, Plan
from headrace.testing.simulation.session import SimulatedSession
from headrace.testing.simulation.truth import Violation
from headrace.testing.virtual_clock import Action, Timer, VirtualClock
from headrace.testing.virtual_network import Reply, VirtualNetwork

LOG_DIR: Final = "/d"
_RETRY_MS: Final = 60
_ISR_CHECK_MS: Final = 100
_HOUSEKEEPING_MS: Final = 250
_CALL_TIMEOUT_MS: Final = 250
_FETCH_SESSIONS: Final = 2  # sometimes there is no room for one


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
    timed_out: set[int]

    def touched(self, broker: "SimulatedBroker") -> None: ...
    def died(self, broker: "SimulatedBroker", *, has_lost: bool) -> None: ...


class SimulatedBroker:
    """See the module's text."""

    def __init__(self, around: Surroundings, broker_id: int) -> None:
        self.around = around
        self.broker_id = broker_id
        self.disk = MemoryDisk()
        self.disks = 1  # how many it had
        self.condition = Condition.DOWN
        self.skew_ms = 0  # of the wall clock
        self.lags_until_ms = 0
        self.life = 0
        self._backlog: list[Action] = []
        self._errands: list[Errand] = []

    @property
    def epoch(self) -> int:
        """That of the present registration; -1 before the first."""
        return self.session.run.broker_epoch

    def check_right_to_append(self) -> None:
        """This broker has appended as leader: its session cannot have timed out, and it knows of no removal."""
        if self.session.store.session in self.around.timed_out:
            raise Violation(f"lease: broker {self.broker_id} leads after its session has timed out")
        us = self.cluster.state.brokers.get(self.broker_id)
        if us is None or us.epoch != self.epoch:
            raise Violation(f"registration: broker {self.broker_id} leads, but knows it is removed")

    def now_ms(self) -> int:
        """This broker's wall clock."""
        return self.around.clock.now_ms + self.skew_ms

    # ---- life and death

    def start(self) -> None:
        """A new process on what the disk holds."""
        assert self.condition is Condition.DOWN
        around = self.around
        self.life += 1
        self.condition = Condition.UP
        settings = _settings(self.broker_id, around.plan.default_min_isr(self.broker_id))
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
        assert not self.log_dirs.broken, f"{self.broker_id} cannot open {self.log_dirs.broken}"
        self.partitions = PartitionTable()
        self.cluster = ClusterView(self.broker_id, "simulated", tells_dialled_address=False)
        self.followers = SimulatedFollowers(self)
        self.fetch_sessions = FetchSessions(_FETCH_SESSIONS, count(1).__next__)
        self.session = SimulatedSession(self)
        self.replica_hosting = ReplicaHosting(
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=self.log_dirs,
            coordinators=CoordinatorTable(),
            fetchers=self.followers,
            live_settings=live_settings,
            traffic=Traffic(),
            clock=self.now_ms,
            broker_epoch=lambda: self.epoch,
            on_topics_deleted=lambda topics, paths: None,
            lease=self.session.store.lease,
        )
        self.feed = ClusterFeed(
            self.cluster,
            after=(
                FeedListener("dynamic configs", DynamicSettings(self.cluster, live_settings).hear),
                FeedListener("roles", self.replica_hosting.apply),
            ),
        )
        self._gate = ChangeGate()
        self._proposals = IsrProposals()
        parts = TermParts(
            self.session.store,
            self.broker_id,
            controller_settings(settings),
            SettingRules(live_settings, self.cluster),
            self._new_id,
            around.chance.randrange,
        )
        self.controller = SimulatedController(parts, self.now_ms, self.deliver, self._apply)
        self.session.start(self.log_dirs.previous_run)
        self.every(_HOUSEKEEPING_MS, self._keep_house)
        self.every(_HOUSEKEEPING_MS, lambda: sync_new_logs(self.log_dirs))
        if Fault.FULL in around.plan.faults:
            self.every(_HOUSEKEEPING_MS, self.replica_hosting.retry_after_full_disk)
        around.touched(self)

    def die(self, *, loses_power: bool = False, loses_disk: bool = False) -> None:
        """The process is gone at once; perhaps with what was not synced, perhaps with everything."""
        self._stop()
        if loses_disk:
            self.disk = MemoryDisk()
            self.disks += 1
        elif loses_power:
            self.disk.crash(self.around.chance)
        else:
            for directory in self.log_dirs.online:
                directory.release()  # the operating system lets go of a dead process's lock
        has_lost = loses_disk or (loses_power and not self.around.plan.syncs_every_append)
        self.around.died(self, has_lost=has_lost)

    def shut_down(self) -> None:
        """Hand over what can be handed over, then stop in an orderly way."""
        self.run(self._shut_down())

    async def _shut_down(self) -> None:
        wish = ShutdownWanted(broker_id=self.broker_id, broker_epoch=self.epoch)
        await self.ask(wish)
        # Out of the errand: a broker that stops ends its errands too.
        self.deliver(1, self._close)

    def _close(self) -> None:
        self._stop()
        note_replicas(self.log_dirs, self.partitions)
        self.around.tree.end_session(self.session.store.session)
        self.log_dirs.close(self.now_ms(), run=self.session.clean_run)

    def _stop(self) -> None:
        self.end()
        self.controller.term = None

    def end(self) -> None:
        """Nothing happens here any more."""
        self.condition = Condition.DOWN
        self._backlog.clear()
        errands, self._errands = self._errands, []
        for errand in errands:
            errand.stop()

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

    def deliver(self, delay_ms: int, action: Action) -> Timer:
        """Let something happen here so many milliseconds from now, if this process lives then."""
        life = self.life
        return self.around.clock.after(delay_ms, lambda: self.happen(life, action))

    def happen(self, life: int | None, action: Action) -> None:
        """Let something happen here now, if this process lives; None is for whichever process does."""
        if self.condition is Condition.DOWN or (life is not None and life != self.life):
            return
        if self.condition is Condition.PAUSED:
            self._backlog.append(action)
            return
        action()
        self.around.touched(self)

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start an errand; it ends with this process."""
        errand = Errand(coroutine)
        self._errands.append(errand)
        errand.start()

    def every(self, interval_ms: int, action: Action) -> None:
        def again() -> None:
            action()
            self.deliver(interval_ms, again)

        self.deliver(self.around.chance.randrange(interval_ms), again)

    def sleep(self, delay_ms: int) -> Pause:
        """Awaited: some time passes."""

        def arm(resume: Resume, fail: Fail) -> None:
            self.deliver(delay_ms, resume)

        return Pause(arm)

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
                    timeout.call_off()
                    answers.append(answer)
                    resume()

            timeout = self.deliver(timeout_ms, lambda: answered(None))
            self._send(target, request, answered)

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
            network.send(
                target, self.broker_id, lambda: self.happen(life, lambda: on_answer(answer))
            )

        network.send(
            self.broker_id, target, lambda: other.happen(None, lambda: request(other, reply))
        )

    # ---- the controller

    def join(self) -> None:
        """This broker is registered for the first time: it takes part from now on."""
        self.run(self.controller.run())
        self.run(self._follow_changes())
        self.run(self._propose_isrs())

    def _apply(self, batch: ChangeBatch) -> None:
        if self._gate.admits(batch):
            self.feed.apply(batch)

    async def _follow_changes(self) -> None:
        while True:
            if self.controller.term is None:
                try:
                    controller_id = await holder(self.session.store)
                except StoreFailed:
                    controller_id = -1
                if controller_id not in (-1, self.broker_id):
                    await self._pull(controller_id)
            await self.sleep(_RETRY_MS)

    async def _pull(self, controller_id: int) -> None:
        epoch, offset = -1, 0
        while self.controller.term is None:
            asked = epoch, offset
            answer = await self.call(controller_id, partial(_ask_for_changes, *asked))
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
            controller_id = await holder(self.session.store)
        except StoreFailed:
            return None
        if controller_id == -1:
            return None
        answer = await self.call(
            controller_id, lambda other, reply: other.controller.on_ask(kind, data, reply)
        )
        return decode_answer(kind, answer) if isinstance(answer, bytes) else None

    async def _propose_isrs(self) -> None:
        """As `broker.replicas.isr_updates` does."""
        while True:
            await self.sleep(_ISR_CHECK_MS)
            await self._raise_epochs()
            proposed = self._proposals.due(
                self.partitions,
                now_ms=self.now_ms(),
                max_lag_ms=self.around.plan.replica_lag_ms,
                eligible=self.cluster.state.eligible(),
            )
            if proposed:
                answer = await self.ask(request_of(self.broker_id, self.epoch, proposed))
                if answer is not None:
                    self._proposals.answered(proposed, answer, now_ms=self.now_ms())

    async def _raise_epochs(self) -> None:
        """As `broker.replicas.epoch_raising` does."""
        newer = self.replica_hosting.newer_logs()
        if newer and self.replica_hosting.is_registered:
            logs = tuple(
                LogEpoch(topic_id=topic_id, partition=partition, leader_epoch=epoch)
                for (topic_id, partition), epoch in newer.items()
            )
            await self.ask(
                RaiseEpochs(broker_id=self.broker_id, broker_epoch=self.epoch, logs=logs)
            )

    # ---- by itself

    def _keep_house(self) -> None:
        keep_house(self.log_dirs, self.partitions, self.disk, self.now_ms())

    def _new_id(self) -> UUID:
        return UUID(int=self.around.chance.getrandbits(128))


def _ask_for_changes(
    controller_epoch: int, offset: int, controller: SimulatedBroker, reply: Reply
) -> None:
    controller.controller.on_pull(controller_epoch, offset, reply)


@cache
def _settings(broker_id: int, min_isr: int) -> BrokerSettings:
    return BrokerSettings.from_properties(
        {
            "node.id": str(broker_id),
            "log.dirs": LOG_DIR,
            "min.insync.replicas": str(min_isr),
        }
    )
