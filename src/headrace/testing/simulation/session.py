"""A simulated broker's session with the store: kept alive by pings, lost, opened anew, and the registration that hangs on it.

As `coordination.zookeeper` reports a session's states and `coordination.membership` registers a broker, without an event
loop. A call waits while the store cannot be reached; a write whose answer does not come back is uncertain.
"""

from typing import TYPE_CHECKING, Final

from headrace.coordination.nodes import BrokerNode
from headrace.coordination.store import NodeExists, SessionState, StoreFailed, WriteUncertain
from headrace.log.log_dirs import UNKNOWN_RUN, CleanRun
from headrace.testing.memory_store import Leg, MemoryStore
from headrace.testing.simulation.errands import Fail, Pause, Resume

if TYPE_CHECKING:
    from headrace.testing.simulation.broker import SimulatedBroker

STORE: Final = 0  # the store's place in the network; brokers are numbered from 1
_PING_MS: Final = 100
_RETRY_MS: Final = 40


class SimulatedSession:
    """See the module's text. `run` is this incarnation, and since when none has lost anything."""

    def __init__(self, broker: "SimulatedBroker") -> None:
        self._broker = broker
        self._around = broker.around
        self._contact_ms = self._around.clock.now_ms
        self._previous = UNKNOWN_RUN
        self.store = MemoryStore(self._around.tree, self._travel)
        self.run = UNKNOWN_RUN

    def start(self, previous: CleanRun) -> None:
        """Open a session, keep it, and register."""
        self._previous = previous
        self._open()
        self._broker.every(_PING_MS, self._ping)
        self._broker.run(self._register())

    @property
    def clean_run(self) -> CleanRun:
        """What the marker of a clean stop says; without a registration this run changed nothing."""
        return self._previous if self.run == UNKNOWN_RUN else self.run

    @property
    def _reaches_store(self) -> bool:
        network, broker_id = self._around.network, self._broker.broker_id
        return network.is_up(broker_id, STORE) and network.is_up(STORE, broker_id)

    async def _travel(self, leg: Leg) -> None:
        deliver = self._broker.deliver

        def arm(resume: Resume, fail: Fail) -> None:
            def arrive() -> None:
                if self._reaches_store:
                    resume()
                elif leg is Leg.BACK_FROM_WRITE:
                    fail(WriteUncertain("the connection broke before the answer came"))
                else:
                    deliver(_RETRY_MS, arrive)

            deliver(self._around.network.delay_ms(), arrive)

        await Pause(arm)

    # ---- the session

    def _open(self) -> None:
        self.store.renew()
        self._around.seen_sessions[self.store.session] = self._around.clock.now_ms

    def _ping(self) -> None:
        around, store = self._around, self.store
        now_ms, timeout_ms = around.clock.now_ms, around.plan.session_timeout_ms
        if not self._reaches_store:
            silent_ms = now_ms - self._contact_ms
            if silent_ms > timeout_ms * 11 // 12 - _PING_MS:
                self._report(SessionState.OVERDUE)
            elif silent_ms > timeout_ms * 2 // 3:
                self._report(SessionState.SUSPENDED)
            return
        self._contact_ms = now_ms
        if around.tree.is_alive(store.session):
            around.seen_sessions[store.session] = now_ms
            self._report(SessionState.CONNECTED)
            return
        self._report(SessionState.LOST)
        self._open()
        self._previous = self.run if self.run != UNKNOWN_RUN else self._previous
        self._broker.run(self._register())

    def _report(self, state: SessionState) -> None:
        if self.store.session_state is not state:
            self.store.report(state)
            self._broker.roles.session_changed(state)

    # ---- the registration

    async def _register(self) -> None:
        """Until it is done, or until the session is over and another registration has begun."""
        broker_id, session = self._broker.broker_id, self.store.session
        path = BrokerNode.path(broker_id)
        node = BrokerNode(
            listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
            endpoints=(f"PLAINTEXT://broker-{broker_id}:9092",),
            host=f"broker-{broker_id}",
            port=9092,
            timestamp=f"{self._broker.life}.{session}",
            previous_broker_epoch=self._previous.broker_epoch,
            clean_since_epoch=self._previous.since_epoch,
        ).encode()
        while self.store.session == session:
            epoch = await self._try_to_register(path, node)
            if epoch is not None and self.store.session == session:
                is_first = self.run == UNKNOWN_RUN
                since = self._previous.since_epoch
                self.run = CleanRun(epoch, epoch if since == -1 else since)
                self._broker.roles.registered()
                if is_first:
                    self._broker.join()
                return
            await self._broker.sleep(_RETRY_MS)

    async def _try_to_register(self, path: str, node: bytes) -> int | None:
        try:
            return (await self.store.create(path, node, ephemeral=True)).created_txn
        except NodeExists:
            try:
                ours = await self.store.get(path)
            except StoreFailed:
                return None
            return ours.created_txn if ours is not None and ours.data == node else None
        except StoreFailed:
            return None
