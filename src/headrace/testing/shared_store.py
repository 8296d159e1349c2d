"""A coordination store in memory that several brokers of one process share, each in a thread of its own.

    tree = SharedTree()
    store = SharedStore(tree)        # one for each broker, used from that broker's event loop

Owns what threads add to `memory_store`: every look at the tree and every change of it happens under one lock, and watches are
called on the event loop of whoever set them. A test can end a session from any thread with `expire`.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from headrace.coordination.lease import ENDLESS, SessionLease
from headrace.coordination.store import (
    ANY_VERSION,
    Cancel,
    Create,
    Delete,
    Node,
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
from headrace.testing.memory_store import MemoryTree

T = TypeVar("T")


class SharedTree:
    """The nodes, and the lock that goes with them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.nodes = MemoryTree()


class _Watch:
    """A callback on its way from the thread of a writer to the event loop of the watcher."""

    __slots__ = ("_loop", "_on_change", "is_cancelled")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: OnChange) -> None:
        self._loop = loop
        self._on_change = on_change
        self.is_cancelled = False

    def __call__(self) -> None:
        self._loop.call_soon_threadsafe(self._arrive)

    def _arrive(self) -> None:
        if not self.is_cancelled:
            self._on_change()


class SharedStore:
    """A `Store` over a `SharedTree`: one session at a time."""

    def __init__(self, tree: SharedTree) -> None:
        self._tree = tree
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session = 0
        self._watches: dict[_Watch, Cancel] = {}
        self._session_watches: list[OnSession] = []
        self._session_state = SessionState.LOST

    @property
    def session_state(self) -> SessionState:
        """CONNECTED from `open` to `close`, but for a moment after `expire`."""
        return self._session_state

    @property
    def lease(self) -> SessionLease:
        """Sessions end by `expire` only, which is told at once."""
        return ENDLESS

    @property
    def max_multi_bytes(self) -> int | None:
        """Nothing limits a write."""
        return None

    # ---- the session

    async def open(self) -> None:
        """Begin a session."""
        assert self._loop is None, "opened twice"
        self._loop = asyncio.get_running_loop()
        self._begin()

    async def close(self) -> None:
        """End the session."""
        with self._tree.lock:
            self._loop = None
            for watch in list(self._watches):
                self._cancel(watch)
            self._session_watches.clear()
            self._session_state = SessionState.LOST
            self._tree.nodes.end_session(self._session)

    def expire(self) -> None:
        """End the session as a server would that has not heard of it for long; another follows. From any thread."""
        with self._tree.lock:
            self._tree.nodes.end_session(self._session)
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._begin_again)

    def _begin(self) -> None:
        with self._tree.lock:
            self._session = self._tree.nodes.open_session()
        self._report(SessionState.CONNECTED)

    def _begin_again(self) -> None:
        if self._loop is not None:
            self._report(SessionState.LOST)
            self._begin()
            for watch in tuple(self._watches):
                watch()

    def _report(self, state: SessionState) -> None:
        self._session_state = state
        for callback in tuple(self._session_watches):
            callback(state)

    # ---- the tree

    async def get(self, path: str) -> Node | None:
        """Read a node."""
        return await self._call(lambda nodes: nodes.get(path))

    async def get_tree(self, path: str, shortcut: Shortcut | None = None) -> dict[str, Node]:
        """Read every node below `path` that holds data."""
        return await self._call(lambda nodes: nodes.get_tree(path))

    async def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted."""
        return await self._call(lambda nodes: nodes.children(path))

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, parents: bool = False
    ) -> Node:
        """Create a node, if asked with its missing parents."""

        def create(nodes: MemoryTree) -> Node:
            operations: list[Operation] = [Create(path, data, ephemeral)]
            parent = parent_of(path)
            while parents and parent != "/" and nodes.get(parent) is None:
                operations.insert(0, Create(parent))
                parent = parent_of(parent)
            return Node(data, 0, nodes.write(operations, self._session))

        return await self._call(create)

    async def set(self, path: str, data: bytes, *, version: int) -> int:
        """Replace a node's data and return its new version."""

        def set_data(nodes: MemoryTree) -> int:
            nodes.write([Set(path, data, version)], self._session)
            node = nodes.get(path)
            assert node is not None
            return node.version

        return await self._call(set_data)

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """Delete a node."""
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        """Do all of it or nothing."""
        await self._call(lambda nodes: nodes.write(operations, self._session))

    async def _call(self, work: Callable[[MemoryTree], T]) -> T:
        session = self._session
        # A store that never lets others go first would hide what goes wrong with one that does.
        await asyncio.sleep(0)
        with self._tree.lock:
            if self._loop is None:
                raise StoreFailed("the store is not open")
            if not self._tree.nodes.is_alive(session):
                raise SessionLost(f"session {session} is over")
            return work(self._tree.nodes)

    # ---- watches

    async def watch_node(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node is created, set or deleted."""
        return await self._watch(on_change, lambda nodes, watch: nodes.watch_node(path, watch))

    async def watch_children(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node gains or loses a child."""
        return await self._watch(on_change, lambda nodes, watch: nodes.watch_children(path, watch))

    async def _watch(
        self, on_change: OnChange, add: Callable[[MemoryTree, OnChange], Cancel]
    ) -> Cancel:
        watch = _Watch(asyncio.get_running_loop(), on_change)
        self._watches[watch] = await self._call(lambda nodes: add(nodes, watch))
        return lambda: self._cancel(watch)

    def _cancel(self, watch: _Watch) -> None:
        watch.is_cancelled = True
        with self._tree.lock:
            take_out = self._watches.pop(watch, None)
            if take_out is not None:
                take_out()

    def on_session(self, callback: OnSession) -> Cancel:
        """Call back with every change of the session's state."""
        return add_watch(self._session_watches, callback)
