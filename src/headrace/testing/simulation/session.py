"""A simulated broker's session with the store: kept alive by pings, lost, opened anew, and the registration that hangs on it.

As `coordination.zookeeper` reports a session's states and `coordination.membership` registers a broker, without an event
loop. A call waits while the store cannot be reached; a write whose answer does not come back is uncertain.
"""

from typing import TYPE_CHECKING, Final

from headrace.coordination.lease import SessionLease
from headrace.coordination.nodes import BrokerNode, BrokerSessionNode, ControllerNode
from headrace.coordination.store import (
    Create,
    Delete,
    Node,
    Operation,
    SessionState,
    StoreFailed,
    StoreRefused,
    WriteUncertain,
)
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
        self.lease = SessionLease(lambda: self._around.clock.now_ms)
        self.store = MemoryStore(self._around.tree, self._travel, self.lease)
        self.run = UNKNOWN_RUN
        self.hears_nothing = (
            False  # and does not notice it: the link to the store is dead, but looks alive
        )
        self._is_registering = False
        self._takes_over = self._around.chance.random() < 0.5

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
        self._renewed()

    def _renewed(self) -> None:
        around = self._around
        now_ms, timeout_ms = around.clock.now_ms, around.plan.session_timeout_ms
        around.seen_sessions[self.store.session] = self._contact_ms = now_ms
        self.lease.until = now_ms + timeout_ms * 3 // 4

    def _ping(self) -> None:
        around, store = self._around, self.store
        if not self._reaches_store:
            silent_ms = around.clock.now_ms - self._contact_ms
            if self.hears_nothing:
                return
            if self.lease.is_over():
                self._report(SessionState.OVERDUE)
            elif silent_ms > around.plan.session_timeout_ms // 2:
                self._report(SessionState.SUSPENDED)
            return
        if not around.tree.is_alive(store.session):
            self._report(SessionState.LOST)
            self._open()
            self._begin_again()
            return
        self._renewed()
        node = around.tree.get(BrokerNode.path(self._broker.broker_id))
        if self.run == UNKNOWN_RUN or self._is_registering:
            self._report(SessionState.CONNECTED)
        elif node is None or node.created_txn != self.run.broker_epoch:
            # Others took it for dead. As good as a lost session.
            self._broker.replica_hosting.session_changed(SessionState.LOST)
            self._begin_again()
        else:
            self._report(SessionState.CONNECTED)

    def _begin_again(self) -> None:
        self._previous = self.run if self.run != UNKNOWN_RUN else self._previous
        if not self._is_registering:
            self._broker.run(self._register())

    def _report(self, state: SessionState) -> None:
        if self.store.session_state is not state:
            self.store.report(state)
            self._broker.replica_hosting.session_changed(state)

    # ---- the registration

    async def _register(self) -> None:
        """Until it is done, over as many sessions as it takes: one attempt at a time, as in `coordination.membership`."""
        self._is_registering = True
        while True:
            session = self.store.session
            epoch = await self._try_to_register(self._node())
            if epoch is not None and self.store.session == session:
                break
            await self._broker.sleep(_RETRY_MS)
        self._is_registering = False
        is_first = self.run == UNKNOWN_RUN
        since = self._previous.since_epoch
        self.run = CleanRun(epoch, epoch if since == -1 else since)
        self._broker.replica_hosting.registered()
        if is_first:
            self._broker.join()

    def _node(self) -> BrokerNode:
        broker_id, life = self._broker.broker_id, self._broker.life
        return BrokerNode(
            listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
            endpoints=(f"PLAINTEXT://broker-{broker_id}:9092",),
            host=f"broker-{broker_id}",
            port=9092,
            timestamp=f"{life}",
            previous_broker_epoch=self._previous.broker_epoch,
            clean_since_epoch=self._previous.since_epoch,
            incarnation=f"{broker_id}.{life}",
            directories=(f"{broker_id}.{self._broker.disks}",),
        )

    async def _try_to_register(self, node: BrokerNode) -> int | None:
        """As `coordination.membership` does; an earlier process of this broker is always dead here."""
        path = BrokerNode.path(self._broker.broker_id)
        session_path = BrokerSessionNode.path(self._broker.broker_id)
        words, session_words = node.encode(), BrokerSessionNode(node.incarnation).encode()
        try:
            standing, session = await self.store.get(path), await self.store.get(session_path)
            if standing is not None and standing.data == words:
                return standing.created_txn
            writes: list[Operation] = []
            if standing is not None:
                writes.append(Delete(path, standing.version))
            if session is not None and session.data != session_words:
                writes.append(Delete(session_path, session.version))
            if writes:
                if not self._takes_over:
                    return None
                controller_node = await self.store.get(ControllerNode.PATH)
                if controller_node is not None and self._is_ours(controller_node):
                    writes.append(Delete(ControllerNode.PATH, controller_node.version))
            if session is None or session.data != session_words:
                writes.append(Create(session_path, session_words, ephemeral=True))
            writes.append(Create(path, words, ephemeral=True))
            await self.store.multi(writes)
            created = await self.store.get(path)
        except (StoreFailed, StoreRefused):
            return None
        return created.created_txn if created is not None and created.data == words else None

    def _is_ours(self, controller_node: Node) -> bool:
        return ControllerNode.decode(controller_node.data).brokerid == self._broker.broker_id
