"""A coordination store in memory: the tree that all share, and one connection to it for each broker.

`MemoryTree` is what ZooKeeper's servers hold: versioned nodes, conditional writes, sessions whose ephemeral nodes go with
them. `MemoryStore` is `headrace.coordination.store.Store` on one session of it. How long the way there and back takes, and
whether an answer gets lost, is up to `travel`; without it every call is done at once, in an event loop or without any.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import TypeAlias, TypeVar

from headrace.coordination.lease import ENDLESS, SessionLease
from headrace.coordination.store import (
    ANY_VERSION,
    BadVersion,
    Cancel,
    Check,
    Create,
    Delete,
    NoChildrenForEphemerals,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    OnChange,
    OnSession,
    Operation,
    SessionLost,
    SessionState,
    Set,
    Shortcut,
    StoreRefused,
    add_watch,
    parent_of,
)

T = TypeVar("T")


class Leg(Enum):
    """A part of the way of a call."""

    THERE = "there"
    BACK = "back"
    BACK_FROM_WRITE = "back from write"  # may raise WriteUncertain; reads wait and ask again


Travel: TypeAlias = Callable[[Leg], Awaitable[None]]

Backup: TypeAlias = tuple[dict[str, Node], int]
"""Nodes by path, and the number of the last transaction."""

OnWrite: TypeAlias = Callable[[str, Node | None, Node | None], None]


class _Entry:
    __slots__ = ("children", "node", "owner")

    def __init__(self, node: Node, owner: int) -> None:
        self.node = node
        self.owner = owner  # the session that an ephemeral node ends with, else 0
        self.children = 0


class MemoryTree:
    """The nodes and sessions of a store in memory. `on_write` hears (path, before, after) of every node that a write changed."""

    def __init__(self, on_write: OnWrite = lambda path, before, after: None) -> None:
        self._entries: dict[str, _Entry] = {}
        self.last_txn = 0
        self._sessions: dict[int, dict[str, None]] = {}  # → their ephemeral nodes
        self.last_session = 0
        self._on_write = on_write
        self._node_watches: dict[str, list[OnChange]] = {}
        self._children_watches: dict[str, list[OnChange]] = {}

    # ---- sessions

    def open_session(self) -> int:
        """A new session's number."""
        self.last_session += 1
        self._sessions[self.last_session] = {}
        return self.last_session

    def end_session(self, session: int) -> None:
        """End a session: closed by its owner, or expired. Its ephemeral nodes go in one write."""
        paths = self._sessions.pop(session, {})
        if paths:
            self._commit([Delete(path) for path in paths], 0)

    def is_alive(self, session: int) -> bool:
        """Whether a session has neither been closed nor expired."""
        return session in self._sessions

    # ---- backups

    def backup(self) -> Backup:
        """A copy of all nodes that belong to no session."""
        lasting = {path: entry.node for path, entry in self._entries.items() if not entry.owner}
        return lasting, self.last_txn

    def restore(self, backup: Backup) -> None:
        """Begin again with what a backup holds. Nobody hears of it: sessions and watches are gone."""
        nodes, self.last_txn = backup
        self._entries = {path: _Entry(node, 0) for path, node in nodes.items()}
        for path in nodes:
            parent = self._entries.get(parent_of(path))
            if parent is not None:
                parent.children += 1
        self._sessions.clear()
        self._node_watches.clear()
        self._children_watches.clear()

    # ---- reading

    def get(self, path: str) -> Node | None:
        """Read a node."""
        entry = self._entries.get(path)
        return None if entry is None else entry.node

    def get_tree(self, path: str) -> dict[str, Node]:
        """Every node below `path` that holds data, by path."""
        prefix = path.rstrip("/") + "/"
        return {
            each: entry.node
            for each, entry in sorted(self._entries.items())
            if entry.node.data and each.startswith(prefix)
        }

    def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted."""
        if path != "/" and path not in self._entries:
            raise NoNode(path)
        return sorted(each.rpartition("/")[2] for each in self._entries if parent_of(each) == path)

    # ---- writing

    def write(self, operations: Sequence[Operation], session: int) -> int:
        """Do all of it or nothing; returns the transaction's number."""
        refused = self.first_refused(operations)
        if refused is not None:
            raise refused[1]
        return self._commit(operations, session)

    def first_refused(self, operations: Sequence[Operation]) -> tuple[int, StoreRefused] | None:
        """The place of the first operation that would be refused, and why."""
        for done, operation in enumerate(operations):
            try:
                # Judged on what the ones before it would leave behind: nothing has to be taken back.
                self._judge(operation, operations[:done])
            except StoreRefused as refusal:
                return done, refusal
        return None

    def _judge(self, operation: Operation, before: Sequence[Operation]) -> None:
        path = operation.path
        node = self._state_after(path, before)
        match operation:
            case Create():
                parent = parent_of(path)
                if parent != "/":
                    if self._state_after(parent, before) is None:
                        raise NoNode(parent)
                    if self._is_ephemeral(parent):
                        raise NoChildrenForEphemerals(parent)
                if node is not None:
                    raise NodeExists(path)
            case Set(_, _, version) | Check(_, version) | Delete(_, version):
                if node is None:
                    raise NoNode(path)
                if version not in (ANY_VERSION, node):
                    raise BadVersion(path)
                if isinstance(operation, Delete) and self._children_after(path, before):
                    raise NotEmpty(path)

    def _state_after(self, path: str, operations: Sequence[Operation]) -> int | None:
        """The version that a node has after some operations; None if it does not exist then."""
        entry = self._entries.get(path)
        version = None if entry is None else entry.node.version
        for operation in operations:
            if operation.path == path:
                if isinstance(operation, Create):
                    version = 0
                elif isinstance(operation, Set) and version is not None:
                    version += 1
                elif isinstance(operation, Delete):
                    version = None
        return version

    def _children_after(self, path: str, operations: Sequence[Operation]) -> int:
        entry = self._entries.get(path)
        count = 0 if entry is None else entry.children
        for operation in operations:
            if parent_of(operation.path) == path:
                count += isinstance(operation, Create) - isinstance(operation, Delete)
        return count

    def _is_ephemeral(self, path: str) -> bool:
        entry = self._entries.get(path)
        return entry is not None and entry.owner != 0

    def _commit(self, operations: Sequence[Operation], session: int) -> int:
        self.last_txn += 1
        callbacks: dict[OnChange, None] = {}
        for operation in operations:
            if isinstance(operation, Check):
                continue
            path = operation.path
            before, after = self._apply(operation, session)
            self._on_write(path, before, after)
            callbacks.update(dict.fromkeys(self._node_watches.get(path, ())))
            if not isinstance(operation, Set):
                watches = self._children_watches.get(parent_of(path), ())
                callbacks.update(dict.fromkeys(watches))
        for callback in callbacks:
            callback()
        return self.last_txn

    def _apply(
        self, operation: Create | Set | Delete, session: int
    ) -> tuple[Node | None, Node | None]:
        path = operation.path
        before = self._entries.get(path)
        parent = self._entries.get(parent_of(path))
        if isinstance(operation, Create):
            owner = session if operation.ephemeral else 0
            entry = self._entries[path] = _Entry(Node(operation.data, 0, self.last_txn), owner)
            if parent is not None:
                parent.children += 1
            if owner:
                self._sessions[owner][path] = None
            return None, entry.node
        assert before is not None
        old = before.node
        if isinstance(operation, Set):
            before.node = Node(operation.data, old.version + 1, old.created_txn)
            return old, before.node
        del self._entries[path]
        if parent is not None:
            parent.children -= 1
        self._sessions.get(before.owner, {}).pop(path, None)
        return old, None

    # ---- watching

    def watch_node(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node is created, set or deleted."""
        return add_watch(self._node_watches.setdefault(path, []), on_change)

    def watch_children(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node gains or loses a child."""
        if path != "/" and path not in self._entries:
            raise NoNode(path)
        return add_watch(self._children_watches.setdefault(path, []), on_change)


async def _at_once(_: Leg) -> None:
    return


class MemoryStore:
    """One session on a tree. `report` tells the session's watchers how far it may be trusted."""

    def __init__(
        self, tree: MemoryTree, travel: Travel = _at_once, lease: SessionLease = ENDLESS
    ) -> None:
        self._tree = tree
        self._travel = travel
        self._watches: list[Cancel] = []
        self._session_watches: list[OnSession] = []
        self.session = 0
        self.session_state = SessionState.LOST
        self.lease = lease

    @property
    def max_multi_bytes(self) -> int | None:
        """Nothing limits a write."""
        return None

    def renew(self) -> None:
        """A new session, at once."""
        self.session = self._tree.open_session()
        self.report(SessionState.CONNECTED)

    def report(self, state: SessionState) -> None:
        """The session's state has changed."""
        self.session_state = state
        for callback in tuple(self._session_watches):
            callback(state)

    async def open(self) -> None:
        self.renew()

    async def close(self) -> None:
        for cancel in self._watches:
            cancel()
        self._session_watches.clear()
        self._tree.end_session(self.session)
        self.session_state = SessionState.LOST

    async def get(self, path: str) -> Node | None:
        return await self._call(lambda: self._tree.get(path))

    async def get_tree(self, path: str, shortcut: Shortcut | None = None) -> dict[str, Node]:
        return await self._call(lambda: self._tree.get_tree(path))

    async def children(self, path: str) -> list[str]:
        return await self._call(lambda: self._tree.children(path))

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, parents: bool = False
    ) -> Node:
        operations: list[Operation] = [Create(path, data, ephemeral)]
        if parents:
            parent = parent_of(path)
            while parent != "/" and self._tree.get(parent) is None:
                operations.insert(0, Create(parent))
                parent = parent_of(parent)
        txn = await self._write(operations)
        return Node(data, 0, txn)

    async def set(self, path: str, data: bytes, *, version: int) -> int:
        await self._write([Set(path, data, version)])
        if version != ANY_VERSION:
            return version + 1
        node = self._tree.get(path)
        return -1 if node is None else node.version

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        await self._write([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        await self._write(operations)

    async def watch_node(self, path: str, on_change: OnChange) -> Cancel:
        return await self._watch(lambda: self._tree.watch_node(path, on_change))

    async def watch_children(self, path: str, on_change: OnChange) -> Cancel:
        return await self._watch(lambda: self._tree.watch_children(path, on_change))

    def on_session(self, callback: OnSession) -> Cancel:
        """Call back with every change of the session's state."""
        return add_watch(self._session_watches, callback)

    async def _write(self, operations: Sequence[Operation]) -> int:
        session = self.session
        return await self._call(
            lambda: self._tree.write(operations, session), back=Leg.BACK_FROM_WRITE
        )

    async def _watch(self, watch: Callable[[], Cancel]) -> Cancel:
        cancel = await self._call(watch)
        self._watches.append(cancel)
        return cancel

    async def _call(self, work: Callable[[], T], *, back: Leg = Leg.BACK) -> T:
        session = self.session
        await self._travel(Leg.THERE)
        if not self._tree.is_alive(session):
            raise SessionLost(f"session {session} is over")
        result = work()
        await self._travel(back)
        return result
