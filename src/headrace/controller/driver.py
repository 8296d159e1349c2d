"""Controller driver: takes the controllership when it is free, and then handles one event at a time. A rim module.

Owns the queue. Every broker runs a driver; at most one of them holds the controllership. Rule of order for
each event: the `term` decides, writes and publishes; the listeners hear of it; the caller is answered.
"""

import asyncio
import enum
import logging
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.clock import Clock
from headrace.controller import controllership
from headrace.controller.brokers import ElectOfflinePartitions
from headrace.controller.changes import ChangeBatch
from headrace.controller.cluster_state import ClusterState
from headrace.controller.configs import AlterConfigs
from headrace.controller.core import ConfigRules, ControllerSettings, Event
from headrace.controller.leaders import ElectLeaders, imbalanced
from headrace.controller.term import Term, TermContext
from headrace.coordination.membership import require_cluster
from headrace.coordination.nodes import (
    BrokerNode,
    BrokerSessionNode,
    ControllerNode,
    MalformedNode,
)
from headrace.coordination.store import (
    SessionLost,
    SessionState,
    Store,
    StoreFailed,
    StoreRefused,
    WriteUncertain,
)
from headrace.errors import HeadraceError

A = TypeVar("A")

Listener = Callable[[ChangeBatch], None]

_log = logging.getLogger(__name__)
_MAX_WAITING = 10_000
_RETRY_S = 1.0  # after a failure of the store that the end of a session does not explain


class UnknownToController(StoreFailed):
    """The controller is of an earlier version, which does not know this question."""


class NotController(HeadraceError):
    """This broker does not hold the controllership; `controller_id` does, if that is known (else -1)."""

    def __init__(self, controller_id: int) -> None:
        super().__init__(f"the controller is {controller_id}")
        self.controller_id = controller_id


class _Signal(enum.Enum):
    BROKERS_CHANGED = enum.auto()
    CONTROLLER_NODE_CHANGED = enum.auto()


_Work = tuple[Event[Any], asyncio.Future[Any]] | _Signal


class ControllerDriver:
    """One broker's candidate for the controllership.

    `run` does the work until it is cancelled; `ready` returns once it is known who holds the controllership
    and, if it is this broker, every partition has been looked after.
    """

    def __init__(
        self,
        store: Store,
        broker_id: int,
        *,
        cluster: str | None = None,
        config_rules: ConfigRules,
        settings: ControllerSettings | None = None,
        clock: Clock,
        new_topic_id: Callable[[], uuid.UUID],
        random_below: Callable[[int], int],
    ) -> None:
        """`cluster` is the id of the only cluster to control; None for whatever the store holds."""
        self._store = store
        self._broker_id = broker_id
        self._cluster = cluster
        self._clock = clock
        self._term_context = TermContext(
            store,
            broker_id,
            settings or ControllerSettings(),
            config_rules,
            new_topic_id,
            random_below,
        )
        self._queue: asyncio.Queue[_Work] = asyncio.Queue()
        self._signals: set[_Signal] = set()
        self._listeners: list[Listener] = []
        self._ready = asyncio.Event()
        self._published = asyncio.Event()
        self._term: Term | None = None  # from the moment when it has caught up
        self.controller_id = -1

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, ready for requests."""
        return self._term is not None

    @property
    def state(self) -> ClusterState:
        """The controller's own cluster state. Raises NotController."""
        if self._term is None:
            raise NotController(self.controller_id)
        return self._term.state

    async def ready(self) -> None:
        """Wait until it is known who the controller is."""
        await self._ready.wait()

    async def ask(self, event: Event[A]) -> A:
        """Have an event decided. Raises NotController if this broker is not the controller."""
        answer = await self._queued(event)
        if _touches_unclean_election(event):
            await self._queued(ElectOfflinePartitions())
        return answer

    async def balance_leaders(self) -> None:
        """Elect preferred leaders where they are in sync (auto.leader.rebalance.enable)."""
        term = self._term
        if term is not None and (partitions := imbalanced(term.machine.core)):
            await self._queued(ElectLeaders(partitions=partitions))

    # How the changes get to the brokers.

    def listen(self, listener: Listener) -> None:
        """Call a listener with every batch of changes, in order, before the request that caused it is answered.

        The first batch that a listener hears is a snapshot, and so is the first of each controller.
        """
        self._listeners.append(listener)
        if self._term is not None:
            listener(self._term.snapshot())

    async def pull(
        self, controller_epoch: int, offset: int, *, max_wait_ms: int = 0
    ) -> ChangeBatch:
        """The changes from an offset on, for a broker elsewhere; waits a while for the first.

        A reader that is new, or that followed another controller, gets a snapshot.
        """
        deadline = asyncio.get_running_loop().time() + max_wait_ms / 1000
        while True:
            if self._term is None:
                raise NotController(self.controller_id)
            published = self._published
            batch = self._term.changes_from(controller_epoch, offset)
            if batch.is_snapshot or batch.changes:
                return batch
            try:
                async with asyncio.timeout_at(deadline):
                    await published.wait()
            except TimeoutError:
                return batch

    # The work.

    async def run(self) -> None:
        """Campaign for the controllership, hold it, campaign again; until cancelled."""
        cancel = self._store.on_session(self._heard)
        try:
            while True:
                pause_s = 0.0
                try:
                    await self._serve(await self._campaign())
                except (SessionLost, WriteUncertain, controllership.ControllershipLost) as loss:
                    _log.warning("controller %d: %s", self._broker_id, loss)
                except (StoreFailed, StoreRefused, MalformedNode) as failure:
                    # Refused is what needs the roots of the tree, if the store has lost everything.
                    # The broker goes on serving by the last cluster state while nothing can be decided.
                    _log.error(
                        "controller %d tries again in a moment: %s", self._broker_id, failure
                    )
                    pause_s = _RETRY_S
                finally:
                    self._resign()
                await asyncio.sleep(pause_s)
        finally:
            cancel()
            self._ready.set()  # nobody waits for a driver that has ended

    async def _campaign(self) -> controllership.EpochFence:
        while True:
            await require_cluster(self._store, self._cluster)
            epoch_fence = await controllership.take(self._store, self._broker_id, self._clock())
            if epoch_fence is not None:
                return epoch_fence
            holder = await controllership.holder(self._store)
            if holder == self._broker_id:
                # Kept by a session of ours that lives, from a term that a failure ended. The fence makes this safe.
                await controllership.give_up(self._store, self._broker_id)
                continue
            self.controller_id = holder
            self._ready.set()
            await controllership.wait_until_free(self._store)

    async def _serve(self, epoch_fence: controllership.EpochFence) -> None:
        term = Term(self._term_context, epoch_fence, self._publish)
        cancels = [
            await self._store.watch_node(ControllerNode.PATH, self._signal_controller_node),
            await self._store.watch_children(BrokerNode.ROOT, self._signal_brokers),
            await self._store.watch_children(BrokerSessionNode.ROOT, self._signal_brokers),
        ]
        try:
            await term.catch_up()
            _log.info(
                "controller %d: epoch %d begins", self._broker_id, epoch_fence.controller_epoch
            )
            self._term = term
            self.controller_id = self._broker_id
            self._ready.set()
            while True:
                match await self._queue.get():
                    case _Signal() as signal:
                        await self._look(term, signal)
                    case (event, future):
                        await self._answer(term, event, future)
        finally:
            for cancel in cancels:
                cancel()

    async def _answer(self, term: Term, event: Event[Any], future: asyncio.Future[Any]) -> None:
        if future.done():  # the caller was cancelled
            return
        try:
            answer = await term.perform(event)
        except (SessionLost, WriteUncertain, controllership.ControllershipLost):
            _settle(future, NotController(-1))
            raise
        except StoreFailed as failure:
            # The store refused as a whole (a full disk, say): nothing was written, we go on.
            _settle(future, failure)
        except BaseException:
            _settle(future, NotController(-1))
            raise
        else:
            if not future.done():
                future.set_result(answer)

    async def _look(self, term: Term, signal: _Signal) -> None:
        # Cleared before reading, because a change that comes during the reading must signal again.
        self._signals.discard(signal)
        if signal is _Signal.BROKERS_CHANGED:
            await term.look_at_brokers()
        elif await controllership.holder(self._store) != self._broker_id:
            raise controllership.ControllershipLost("the controllership was given to another")

    def _resign(self) -> None:
        """End the term. Waiting requests fail with NotController."""
        self._term = None
        self.controller_id = -1
        self._wake_pulls()
        self._signals.clear()
        while not self._queue.empty():
            match self._queue.get_nowait():
                case (_, future):
                    _settle(future, NotController(-1))

    async def _queued(self, event: Event[A]) -> A:
        if self._term is None:
            raise NotController(self.controller_id)
        if self._queue.qsize() >= _MAX_WAITING:
            raise StoreFailed("too many requests are waiting for the controller")
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((event, future))
        return await future

    def _heard(self, state: SessionState) -> None:
        if state is SessionState.LOST or state is SessionState.CONNECTED:
            self._signal_controller_node()

    def _signal_controller_node(self) -> None:
        self._signal(_Signal.CONTROLLER_NODE_CHANGED)

    def _signal_brokers(self) -> None:
        self._signal(_Signal.BROKERS_CHANGED)

    def _signal(self, signal: _Signal) -> None:
        if signal not in self._signals:
            self._signals.add(signal)
            self._queue.put_nowait(signal)

    def _publish(self, batch: ChangeBatch) -> None:
        for listener in self._listeners:
            listener(batch)
        self._wake_pulls()

    def _wake_pulls(self) -> None:
        self._published.set()
        self._published = asyncio.Event()


def _touches_unclean_election(event: object) -> bool:
    return isinstance(event, AlterConfigs) and any(
        edit.key == "unclean.leader.election.enable" for wish in event.wishes for edit in wish.edits
    )


def _settle(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
