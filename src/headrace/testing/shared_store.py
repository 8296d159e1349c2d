"""A coordination store in memory that several brokers of one process share, each with a session of its own.

    tree = SharedTree()
    store = SharedStore(tree)        # one for each broker, used from that broker's event loop

Owns the tree, and which session each ephemeral node belongs to. Must not know what the nodes mean. Sessions may live in
different threads: every look at the tree and every change of it happens under one lock, and watches are called on the event
loop of the session that set them. A test can end a session from any thread with `expire`.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence

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
    StoreFailed,
    add_watch,
    parent_of,
)

_ROOT = "/"


class _Entry:
    """A node of the tree."""

    __slots__ = ("children", "node", "owner")

    def __init__(self, node: Node, owner: int | None) -> None:
        self.node = node
        self.owner = owner  # the session of an ephemeral node
        self.children: set[str] = set()


class SharedTree:
    """The nodes, and the sessions that watch them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._entries: dict[str, _Entry] = {_ROOT: _Entry(Node(b"", 0, 0), None)}
        self._last_txn = 0
        self._last_session = 0
        self._sessions: dict[int, SharedStore] = {}

    # ---- sessions

    def begin_session(self, store: "SharedStore") -> int:
        """A new session for a store."""
        with self.lock:
            self._last_session += 1
            self._sessions[self._last_session] = store
            return self._last_session

    def end_session(self, session: int) -> None:
        """Remove the session's ephemeral nodes; all others hear of it."""
        with self.lock:
            if self._sessions.pop(session, None) is not None:
                owned = [path for path, entry in self._entries.items() if entry.owner == session]
                if owned:
                    self.write(session, [Delete(path) for path in owned], must_live=False)

    # ---- reading

    def get(self, path: str) -> Node | None:
        """Read a node."""
        with self.lock:
            entry = self._entries.get(path)
            return None if entry is None else entry.node

    def get_tree(self, path: str) -> dict[str, Node]:
        """Every node below `path` that holds data."""
        prefix = path if path == _ROOT else path + "/"
        with self.lock:
            return {
                found: entry.node
                for found, entry in sorted(self._entries.items())
                if found.startswith(prefix) and found != _ROOT and entry.node.data
            }

    def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted."""
        with self.lock:
            return sorted(self._entry(path).children)

    def missing_parents(self, path: str) -> list[Operation]:
        """What has to be created before `path` can be."""
        missing: list[Operation] = []
        with self.lock:
            parent = parent_of(path)
            while parent not in self._entries:
                missing.append(Create(parent))
                parent = parent_of(parent)
        return missing[::-1]

    # ---- writing

    def write(
        self, session: int, operations: Sequence[Operation], *, must_live: bool = True
    ) -> int:
        """Do all of it or nothing, and tell those who watch. Returns the number of the transaction."""
        with self.lock:
            if must_live and session not in self._sessions:
                raise SessionLost(f"session {session} is over")
            txn = self._last_txn + 1
            undo: list[Callable[[], object]] = []
            try:
                for operation in operations:
                    # One by one: what was done before a refusal has to be undone.
                    undo.append(self._apply(operation, session, txn))  # noqa: PERF401
            except BaseException:
                for step in reversed(undo):
                    step()
                raise
            self._last_txn = txn
            for store in self._sessions.values():
                store.changed(operations)
            return txn

    def _apply(self, operation: Operation, session: int, txn: int) -> Callable[[], object]:
        """Do one operation. Returns how it is undone."""
        match operation:
            case Create(path, data, ephemeral):
                return self._create(path, Node(data, 0, txn), session if ephemeral else None)
            case Set(path, data, version):
                entry = self._entry(path, version)
                before = entry.node
                entry.node = Node(data, before.version + 1, before.created_txn)
                return lambda: setattr(entry, "node", before)
            case Delete(path, version):
                entry = self._entry(path, version)
                if entry.children:
                    raise NotEmpty(path)
                self._unlink(path)
                return lambda: self._link(path, entry)
            case Check(path, version):
                self._entry(path, version)
                return lambda: None

    def _create(self, path: str, node: Node, owner: int | None) -> Callable[[], object]:
        parent = parent_of(path)
        if self._entry(parent).owner is not None:
            raise NoChildrenForEphemerals(parent)
        if path in self._entries:
            raise NodeExists(path)
        self._link(path, _Entry(node, owner))
        return lambda: self._unlink(path)

    def _link(self, path: str, entry: _Entry) -> None:
        self._entries[path] = entry
        self._entries[parent_of(path)].children.add(path.rpartition("/")[2])

    def _unlink(self, path: str) -> None:
        del self._entries[path]
        self._entries[parent_of(path)].children.discard(path.rpartition("/")[2])

    def _entry(self, path: str, version: int = ANY_VERSION) -> _Entry:
        entry = self._entries.get(path)
        if entry is None:
            raise NoNode(path)
        if version not in (ANY_VERSION, entry.node.version):
            raise BadVersion(path)
        return entry


class SharedStore:
    """A `Store` over a `SharedTree`: one session at a time."""

    def __init__(self, tree: SharedTree) -> None:
        self._tree = tree
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session = 0
        self._node_watches: dict[str, list[OnChange]] = {}
        self._children_watches: dict[str, list[OnChange]] = {}
        self._session_watches: list[OnSession] = []
        self._session_state = SessionState.LOST

    @property
    def session_state(self) -> SessionState:
        """CONNECTED from `open` to `close`, but for a moment after `expire`."""
        return self._session_state

    @property
    def max_multi_bytes(self) -> int | None:
        """Nothing limits a transaction."""
        return None

    async def open(self) -> None:
        """Begin a session."""
        assert self._loop is None, "opened twice"
        self._loop = asyncio.get_running_loop()
        self._begin()

    async def close(self) -> None:
        """End the session."""
        self._loop = None
        self._node_watches.clear()
        self._children_watches.clear()
        self._session_watches.clear()
        self._session_state = SessionState.LOST
        self._tree.end_session(self._session)

    def expire(self) -> None:
        """End the session as a server would that has not heard of it for long; another one follows. From any thread."""
        self._tree.end_session(self._session)
        self._soon(self._begin_again)

    def _begin(self) -> None:
        self._session = self._tree.begin_session(self)
        self._report(SessionState.CONNECTED)

    def _begin_again(self) -> None:
        self._report(SessionState.LOST)
        self._begin()
        for watches in (self._node_watches, self._children_watches):
            self._call(watches, list(watches))

    # ---- the tree

    async def get(self, path: str) -> Node | None:
        """Read a node."""
        await self._turn()
        return self._tree.get(path)

    async def get_tree(self, path: str, shortcut: Shortcut | None = None) -> dict[str, Node]:
        """Read every node below `path` that holds data."""
        await self._turn()
        return self._tree.get_tree(path)

    async def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted."""
        await self._turn()
        return self._tree.children(path)

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, parents: bool = False
    ) -> Node:
        """Create a node, if asked with its missing parents."""
        await self._turn()
        with self._tree.lock:
            operations = self._tree.missing_parents(path) if parents else []
            operations.append(Create(path, data, ephemeral))
            return Node(data, 0, self._tree.write(self._session, operations))

    async def set(self, path: str, data: bytes, *, version: int) -> int:
        """Replace a node's data and return its new version."""
        await self._turn()
        with self._tree.lock:
            self._tree.write(self._session, [Set(path, data, version)])
            node = self._tree.get(path)
            assert node is not None
            return node.version

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """Delete a node."""
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        """Do all of it or nothing."""
        await self._turn()
        self._tree.write(self._session, operations)

    async def _turn(self) -> None:
        # A store that never lets others go first would hide what goes wrong with one that does.
        await asyncio.sleep(0)
        if self._loop is None:
            raise StoreFailed("the store is not open")

    # ---- watches

    async def watch_node(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node is created, set or deleted."""
        return add_watch(self._node_watches.setdefault(path, []), on_change)

    async def watch_children(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node gains or loses a child."""
        if await self.get(path) is None:
            raise NoNode(path)
        return add_watch(self._children_watches.setdefault(path, []), on_change)

    def on_session(self, callback: OnSession) -> Cancel:
        """Call back with every change of the session's state."""
        return add_watch(self._session_watches, callback)

    def changed(self, operations: Sequence[Operation]) -> None:
        """The tree was written, by this session or another; called in the writer's thread."""
        nodes = {one.path for one in operations if not isinstance(one, Check)}
        parents = {parent_of(one.path) for one in operations if isinstance(one, (Create, Delete))}

        def call() -> None:
            self._call(self._node_watches, nodes)
            self._call(self._children_watches, parents)

        self._soon(call)

    def _call(self, watches: dict[str, list[OnChange]], paths: Iterable[str]) -> None:
        for path in paths:
            for callback in tuple(watches.get(path, ())):
                callback()

    def _soon(self, call: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(call)

    def _report(self, state: SessionState) -> None:
        self._session_state = state
        for callback in tuple(self._session_watches):
            callback(state)
