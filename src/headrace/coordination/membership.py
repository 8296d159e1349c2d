"""How a broker joins: the roots of the tree, the cluster's id, the broker's registration.

Owns the order in which a broker announces itself; must not know what a controller makes of it.
A rim: it waits for sessions. A registration is ephemeral, so it ends with the session, and others
may remove it who take the broker for dead; `run` registers again in either case, with a new epoch.
"""

import asyncio
from collections.abc import Callable

import msgspec

from headrace.coordination.nodes import (
    ROOTS,
    BrokerNode,
    ClusterIdNode,
    ControllerEpochNode,
)
from headrace.coordination.store import (
    Create,
    NodeExists,
    NoNode,
    SessionLost,
    SessionState,
    Store,
    StoreFailed,
    WriteUncertain,
)

_WITHDRAW_S = 2.0


class BrokerIdTaken(StoreFailed):
    """Another living broker is registered under this broker's id."""


async def prepare(store: Store) -> None:
    """Create the nodes that others hang from, if this cluster is new."""
    if await store.get(ControllerEpochNode.PATH) is not None:
        return
    creations = [Create(path) for path in ROOTS]
    # Last, for it says that all the others are there.
    creations.append(Create(ControllerEpochNode.PATH, ControllerEpochNode.encode(0)))
    try:
        await store.multi(creations)
    except NodeExists:
        for creation in creations:
            try:
                await store.create(creation.path, creation.data, parents=True)
            except NodeExists:
                continue


async def cluster_id(store: Store, proposed: str) -> str:
    """The cluster's id: the one it has, or `proposed` from now on."""
    try:
        await store.create(ClusterIdNode.PATH, ClusterIdNode(proposed).encode(), parents=True)
    except NodeExists:
        node = await store.get(ClusterIdNode.PATH)
        assert node is not None, "a cluster's id is never deleted"
        return ClusterIdNode.decode(node.data).id
    return proposed


class BrokerRegistration:
    """One broker's place under /brokers/ids."""

    def __init__(
        self,
        store: Store,
        broker_id: int,
        node: BrokerNode,
        *,
        takeover_timeout_ms: int = 0,
        on_epoch: Callable[[int], None] = lambda _: None,
        on_removed: Callable[[], None] = lambda: None,
    ) -> None:
        """`takeover_timeout_ms`: how long to wait for a registration that a crash left behind.

        The session timeout is right for ZooKeeper, 0 for the embedded store. `on_epoch` hears
        the epoch of every registration, `on_removed` that somebody took one away.
        """
        self._store = store
        self._broker_id = broker_id
        self._path = BrokerNode.path(broker_id)
        self._node = node
        self._takeover_timeout_ms = takeover_timeout_ms
        self._on_epoch = on_epoch
        self._on_removed = on_removed
        self._changed = asyncio.Event()  # the session or the node
        self._lost = False
        self._is_leaving = False
        self.epoch = -1
        # Nothing was lost since that incarnation, by crash or otherwise.
        self.clean_since_epoch = node.clean_since_epoch
        # From the start: a session may be over before `run` has its first turn.
        self._stop_hearing = store.on_session(self._heard)

    async def register(self) -> int:
        """Register and return the broker's epoch. Raises BrokerIdTaken, StoreFailed."""
        deadline = asyncio.get_running_loop().time() + self._takeover_timeout_ms / 1000
        while True:
            try:
                created = await self._store.create(self._path, self._node.encode(), ephemeral=True)
            except NodeExists:
                ours = await self._store.get(self._path)
                # An answer lost on the way: the node carries our very words, so it is ours.
                if ours is not None and ours.data == self._node.encode():
                    return self._registered(ours.created_txn)
                if not await self._gone_before(deadline):
                    raise BrokerIdTaken(
                        f"broker {self._broker_id} is already registered ({await self._holder()}); "
                        "is it running elsewhere?"
                    ) from None
            else:
                return self._registered(created.created_txn)

    async def run(self) -> None:
        """Register again after each lost session and each removal, until cancelled."""
        stop_watching = await self._store.watch_node(self._path, self._changed.set)
        self._changed.set()  # for what happened before it was watched
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                if self._is_leaving or self._store.session_state is not SessionState.CONNECTED:
                    continue
                if not self._lost and await self._is_removed():
                    self._lost = True
                    self._on_removed()
                if self._lost:
                    await self._register_again()
        finally:
            stop_watching()
            self._stop_hearing()

    def leave(self) -> None:
        """The broker is about to stop: whatever becomes of the registration, there is no other."""
        self._is_leaving = True

    async def withdraw(self) -> None:
        """Leave. The node goes at once instead of with the session, if the store can be reached."""
        self.leave()
        if self._store.session_state is not SessionState.CONNECTED:
            return
        try:
            async with asyncio.timeout(_WITHDRAW_S):
                await self._store.delete(self._path)
        except (NoNode, SessionLost, WriteUncertain, TimeoutError):
            pass

    async def _register_again(self) -> None:
        # The process lives, so nothing that it wrote is lost: as good as a clean restart.
        self._node = msgspec.structs.replace(
            self._node,
            previous_broker_epoch=self.epoch,
            clean_since_epoch=self.clean_since_epoch,
        )
        self._lost = False  # before: what is lost while we register has to be registered again
        try:
            await self.register()
        except (SessionLost, WriteUncertain):
            self._lost = True
            self._changed.set()

    async def _is_removed(self) -> bool:
        try:
            node = await self._store.get(self._path)
        except SessionLost:
            return False  # we shall hear of that
        return (node is None or node.created_txn != self.epoch) and not self._is_leaving

    def _registered(self, epoch: int) -> int:
        if self.clean_since_epoch == -1:
            self.clean_since_epoch = epoch
        self.epoch = epoch
        self._on_epoch(epoch)
        return epoch

    def _heard(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            self._lost = True
        self._changed.set()

    async def _gone_before(self, deadline: float) -> bool:
        gone = asyncio.Event()
        cancel = await self._store.watch_node(self._path, gone.set)
        try:
            if await self._store.get(self._path) is None:
                return True
            async with asyncio.timeout_at(deadline):
                await gone.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            cancel()

    async def _holder(self) -> str:
        node = await self._store.get(self._path)
        if node is None:
            return "gone by now"
        return ", ".join(BrokerNode.decode(self._broker_id, node.data).endpoints)
