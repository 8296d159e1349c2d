"""How a broker joins: the roots of the tree, the cluster's id, the broker's registration.

Owns the order in which a broker announces itself; must not know what a controller makes of it.
A rim: it waits for sessions. A registration is ephemeral, so it ends with the session, and others
may remove it who take the broker for dead; `run` registers again in either case, with a new epoch.
Beside it stands a node that nobody else removes: it ends with the session and tells that the session lives.

A broker that starts while an earlier run of it is still registered replaces that registration, if it holds the lock on the data
directory from which it was made: then the earlier process is dead. Otherwise it waits until the earlier session is over.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from headrace.coordination.nodes import (
    ROOTS,
    BrokerNode,
    BrokerSessionNode,
    ClusterIdNode,
    ControllerEpochNode,
    ControllerNode,
    MalformedNode,
)
from headrace.coordination.store import (
    BadVersion,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    Operation,
    SessionLost,
    SessionState,
    Store,
    StoreFailed,
    WriteUncertain,
)

_logger = logging.getLogger(__name__)

_WITHDRAW_S: Final = 2.0
_RETRY_S: Final = 0.05
_FAILED_RETRY_S: Final = 1.0  # after a failure that the end of a session does not explain
_REMIND_S: Final = 10.0


async def prepare(store: Store) -> None:
    """Create the nodes that others hang from, if this cluster is new."""
    if await store.get(ControllerEpochNode.PATH) is not None:
        for path in ROOTS:  # an earlier version may have known fewer
            await _create_if_missing(store, Create(path))
        return
    creations = [Create(path) for path in ROOTS]
    # Last, for it says that all the others are there.
    creations.append(Create(ControllerEpochNode.PATH, ControllerEpochNode.encode(0)))
    try:
        await store.multi(creations)
    except (NodeExists, WriteUncertain):
        for creation in creations:
            await _create_if_missing(store, creation)


async def _create_if_missing(store: Store, creation: Create) -> None:
    while await store.get(creation.path) is None:
        try:
            await store.create(creation.path, creation.data, parents=True)
        except (NodeExists, WriteUncertain):
            continue


async def cluster_id(store: Store, proposed: str) -> str:
    """The cluster's id: the one it has, or `proposed` from now on."""
    await _create_if_missing(store, Create(ClusterIdNode.PATH, ClusterIdNode(proposed).encode()))
    known = await known_cluster_id(store)
    assert known is not None, "a cluster's id is never deleted"
    return known


async def known_cluster_id(store: Store) -> str | None:
    """The id of the cluster that the store holds; None if it holds none."""
    node = await store.get(ClusterIdNode.PATH)
    return None if node is None else ClusterIdNode.decode(node.data).id


class ForeignStore(StoreFailed):
    """The store holds another cluster than before, or none."""


async def require_cluster(store: Store, expected: str | None) -> None:
    """Raises ForeignStore if the store has lost the cluster or holds another one; None expects nothing.

    A broker asks before it registers and before it campaigns: in another cluster it would put its logs aside.
    """
    if expected is None:
        return
    try:
        found = await known_cluster_id(store)
    except MalformedNode as error:
        raise ForeignStore(f"the id of the cluster cannot be read: {error}") from error
    if found != expected:
        raise ForeignStore(
            f"this broker belongs to the cluster {expected}, but the coordination store holds "
            + ("no cluster" if found is None else f"the cluster {found}")
            + ". Nothing on disk has been changed. Check that ZooKeeper has its data; if that is lost, restore it from a"
            " backup (docs/operating/cluster.md, a lost store)"
        )


class BrokerRegistration:
    """One broker's place under /brokers/ids."""

    def __init__(
        self,
        store: Store,
        broker_id: int,
        node: BrokerNode,
        *,
        cluster: str | None = None,
        dead_incarnations: Collection[str] = (),
        on_epoch: Callable[[int], None] = lambda _: None,
        on_removed: Callable[[], None] = lambda: None,
        on_confirmed: Callable[[], None] = lambda: None,
    ) -> None:
        """`cluster` is the id of the only cluster to register in; None for whatever the store holds.

        `dead_incarnations` are earlier runs of this broker whose processes are known to have ended.
        `on_epoch` hears the epoch of every registration, `on_removed` that somebody took one away, `on_confirmed` that the
        present one was found in its place after the session had been in doubt.
        """
        self._store = store
        self._broker_id = broker_id
        self._path = BrokerNode.path(broker_id)
        self._session_path = BrokerSessionNode.path(broker_id)
        self._node = node
        self._cluster = cluster
        self._dead_incarnations = frozenset(dead_incarnations)
        self._on_epoch = on_epoch
        self._on_removed = on_removed
        self._on_confirmed = on_confirmed
        self._changed = asyncio.Event()  # the session or the node
        self._lost = False
        self._is_leaving = False
        self.epoch = -1
        # This broker has lost no records since that run, by a crash or otherwise.
        self.clean_since_epoch = node.clean_since_epoch
        # From the start: a session may be over before `run` has its first turn.
        self._stop_hearing = store.on_session(self._heard)

    async def register(self) -> int:
        """Register and return the broker's epoch; waits for as long as another holds the id or the store fails."""
        while True:
            # A session that ends during an attempt leaves its outcome open: the write may have been done in the next one.
            self._lost = False
            try:
                epoch = await self._try_to_register()
                if epoch is None:
                    await self._wait_for_the_holder()
                elif not self._lost:
                    return self._registered(epoch)
            except (NodeExists, NoNode, BadVersion):
                continue  # another broker wrote between our read and our write
            except (SessionLost, WriteUncertain) as error:
                _logger.info("broker %d registers once more: %s", self._broker_id, error)
                await asyncio.sleep(_RETRY_S)
            except StoreFailed as error:
                _logger.error("broker %d cannot register, tries again: %s", self._broker_id, error)
                await asyncio.sleep(_FAILED_RETRY_S)

    async def _try_to_register(self) -> int | None:
        """The epoch; None where the id is another's. Raises what the write raises."""
        words = self._node.encode()
        session_words = BrokerSessionNode(self._node.incarnation).encode()
        await require_cluster(self._store, self._cluster)
        found = await self._store.get(self._path)
        session = await self._store.get(self._session_path)
        # An answer lost on the way: the node carries our very words, so it is ours.
        if found is not None and found.data == words:
            return found.created_txn
        writes: list[Operation] = []
        for path, node, incarnation in (
            (self._path, found, self._incarnation_of_broker(found)),
            (self._session_path, session, self._incarnation_of_session(session)),
        ):
            if node is None or (path == self._session_path and node.data == session_words):
                continue
            if incarnation not in (*self._dead_incarnations, self._node.incarnation):
                return None
            writes.append(Delete(path, node.version))
        if writes:
            writes += await self._deletion_of_own_controller_node()
        if session is None or session.data != session_words:
            writes.append(Create(self._session_path, session_words, ephemeral=True))
        writes.append(Create(self._path, words, ephemeral=True))
        await self._store.multi(writes)
        created = await self._store.get(self._path)
        if created is None or created.data != words:
            raise NoNode(self._path)
        return created.created_txn

    async def _deletion_of_own_controller_node(self) -> list[Operation]:
        """What takes the controllership away from an earlier process of this broker, if that held it."""
        controller_node = await self._store.get(ControllerNode.PATH)
        try:
            if (
                controller_node is None
                or ControllerNode.decode(controller_node.data).brokerid != self._broker_id
            ):
                return []
        except MalformedNode:
            return []
        return [Delete(ControllerNode.PATH, controller_node.version)]

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
                try:
                    await self._look()
                except SessionLost:
                    self._lost = True
                    self._changed.set()
                    await asyncio.sleep(_RETRY_S)
                except StoreFailed as error:
                    _logger.error(
                        "broker %d does not know its registration: %s", self._broker_id, error
                    )
                    self._changed.set()
                    await asyncio.sleep(_FAILED_RETRY_S)
        finally:
            stop_watching()
            self._stop_hearing()

    async def _look(self) -> None:
        if not self._lost:
            node = await self._store.get(self._path)
            if self._is_leaving or self._lost:
                return
            if node is not None and node.created_txn == self.epoch:
                self._on_confirmed()
                return
            self._lost = True
            self._on_removed()
        # The process lives, so nothing that it wrote is lost: as good as a clean restart.
        self._node = msgspec.structs.replace(
            self._node,
            previous_broker_epoch=self.epoch,
            clean_since_epoch=self.clean_since_epoch,
        )
        await self.register()

    def leave(self) -> None:
        """The broker is about to stop: whatever becomes of the registration, there is no other."""
        self._is_leaving = True

    async def withdraw(self) -> None:
        """Leave. The node goes at once instead of with the session, if the store can be reached."""
        self.leave()
        if self.epoch == -1 or self._store.session_state is not SessionState.CONNECTED:
            return
        try:
            async with asyncio.timeout(_WITHDRAW_S):
                node = await self._store.get(self._path)
                if node is not None and node.created_txn == self.epoch:
                    await self._store.delete(self._path)
        except (NoNode, StoreFailed, TimeoutError):
            pass

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

    # ---- another holder of the id

    async def _wait_for_the_holder(self) -> None:
        """Until the nodes of another run of this broker have changed; says who is waited for, again and again."""
        changed = asyncio.Event()
        cancels = [
            await self._store.watch_node(path, changed.set)
            for path in (self._path, self._session_path)
        ]
        try:
            while True:
                found = await self._store.get(self._path)
                session = await self._store.get(self._session_path)
                if found is None and session is None:
                    return
                _logger.warning(
                    "broker %d waits for the end of an earlier session: its id is registered already (%s). "
                    "A session ends zookeeper.session.timeout.ms after the death of its process. "
                    "If the process lives, stop it or choose another broker.id",
                    self._broker_id,
                    self._address_of(found),
                )
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_REMIND_S):
                        await changed.wait()
                        return
        finally:
            for cancel in cancels:
                cancel()

    def _address_of(self, found: Node | None) -> str:
        try:
            node = None if found is None else BrokerNode.decode(self._broker_id, found.data)
        except MalformedNode:
            return "by a registration that cannot be read"
        return (
            "a removed registration whose session lives"
            if node is None
            else ", ".join(node.endpoints)
        )

    def _incarnation_of_broker(self, node: Node | None) -> str | None:
        try:
            return None if node is None else BrokerNode.decode(0, node.data).incarnation
        except MalformedNode:
            return None

    def _incarnation_of_session(self, node: Node | None) -> str | None:
        try:
            return None if node is None else BrokerSessionNode.decode(0, node.data).incarnation
        except MalformedNode:
            return None
