"""A virtual ZooKeeper ensemble, seen as one server: sessions that time out, connections, watches that fire once.

The tree of nodes is `MemoryTree`. Requests of one connection are answered in order, and a watch fires before the answer
to any later request. A session lives as long as packets arrive within the time-out that the ensemble granted, which may be
shorter than the one asked for. Leaves what a client makes of it to `zookeeper_client`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NamedTuple

from headrace.coordination.store import (
    BadVersion,
    Create,
    NoChildrenForEphemerals,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    StoreRefused,
    parent_of,
)
from headrace.testing.memory_store import MemoryTree, OnWrite
from headrace.testing.virtual.process import VirtualProcess
from headrace.testing.virtual.scheduler import MILLISECOND_US

ZOOKEEPER_HOST: Final = "zookeeper"
ZOOKEEPER_PORT: Final = 2181
_LEAST_FORGOTTEN_US: Final = 3_000 * MILLISECOND_US
_MESSAGE_BYTES: Final = 8  # on the wire a message is its number


class Hello(NamedTuple):
    """The first request on a connection. Session 0 asks for a new one."""

    session: int
    timeout_ms: int


class Welcome(NamedTuple):
    """The answer to it. A time-out of 0 says that the session is over."""

    session: int
    timeout_ms: int


class Request(NamedTuple):
    """A question or a write. `kind` is a kazoo method's name without `_async`."""

    kind: str
    path: str = ""
    operations: tuple[Operation, ...] = ()
    is_watched: bool = False
    makes_parents: bool = False


class Answer(NamedTuple):
    """What came of a request: a value, or a refusal with the place of the refused operation."""

    value: Any = None
    refusal: StoreRefused | None = None
    place: int = 0


class WatchFired(NamedTuple):
    """A node, or the children of one, have changed."""

    path: str
    is_children: bool


class NodeStat(NamedTuple):
    """What is asked of a node beside its data."""

    czxid: int
    version: int
    numChildren: int  # noqa: N815 (ZooKeeper's name)


@dataclass(slots=True)
class _Session:
    timeout_ms: int
    expires_us: int
    connection: "_ServedConnection | None" = None


class Mailbox:
    """The messages that are on their way, by number: the virtual network carries bytes."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._messages: dict[int, object] = {}

    def post(self, message: object) -> bytes:
        """Returns what stands for a message on the wire."""
        number = next(self._numbers)
        self._messages[number] = message
        return number.to_bytes(_MESSAGE_BYTES)

    def take(self, data: bytearray) -> list[Any]:
        """The messages that have arrived whole; takes their bytes out."""
        found = []
        while len(data) >= _MESSAGE_BYTES:
            found.append(self._messages.pop(int.from_bytes(data[:_MESSAGE_BYTES])))
            del data[:_MESSAGE_BYTES]
        return found


class VirtualEnsemble:
    """The ensemble. `process` is where it runs: paused, it is an ensemble that does not answer."""

    def __init__(self, process: VirtualProcess, on_write: OnWrite, longest_timeout_ms: int) -> None:
        """`on_write` hears every change of a node; a session lasts `longest_timeout_ms` at most."""
        self.process = process
        self.mailbox = Mailbox()
        self.longest_timeout_ms = longest_timeout_ms
        self.timed_out: set[int] = set()  # sessions of which nothing was heard for too long
        self._on_write = on_write
        self._sessions: dict[int, _Session] = {}
        self._node_watches: dict[str, dict[_ServedConnection, None]] = {}
        self._children_watches: dict[str, dict[_ServedConnection, None]] = {}
        self.tree = MemoryTree(self._written)
        self._lost_tree: MemoryTree | None = None
        self._forgot_us = 0
        process.loop.create_task(self._serve())

    async def _serve(self) -> None:
        await asyncio.get_running_loop().create_server(
            lambda: _ServedConnection(self), None, ZOOKEEPER_PORT
        )

    # ---- sessions

    def greet(self, hello: Hello, connection: "_ServedConnection") -> Welcome:
        """Open a session, or take one up that lives."""
        number = hello.session or self.tree.open_session()
        session = self._sessions.get(number)
        if session is None:
            if hello.session:
                return Welcome(number, 0)
            timeout_ms = min(hello.timeout_ms, self.longest_timeout_ms)
            session = self._sessions[number] = _Session(timeout_ms, 0)
            self._expire_later(number, session)
        elif session.connection is not None:
            session.connection.close()
        session.connection = connection
        self.heard(number)
        return Welcome(number, session.timeout_ms)

    def heard(self, number: int) -> bool:
        """A packet of a session has arrived. Returns whether the session lives."""
        session = self._sessions.get(number)
        if session is None:
            return False
        timeout_us = session.timeout_ms * MILLISECOND_US
        session.expires_us = self.process.scheduler.now_us + timeout_us
        return True

    def _expire_later(self, number: int, session: _Session) -> None:
        scheduler = self.process.scheduler
        # The ensemble looks for expired sessions once in a tick, of which a session lasts two at least.
        tick_us = session.timeout_ms * MILLISECOND_US // 2

        def look() -> None:
            if self._sessions.get(number) is not session:
                return
            if self.process.state.value != "running":
                session.expires_us = scheduler.now_us + session.timeout_ms * MILLISECOND_US
            if scheduler.now_us > session.expires_us:
                self.timed_out.add(number)
                self.end_session(number)
            else:
                scheduler.at(session.expires_us + scheduler.draw_us(1, tick_us // 4), look)

        scheduler.after(session.timeout_ms * MILLISECOND_US, look)

    def end_session(self, number: int) -> None:
        """Expire a session, or close it: its ephemeral nodes go."""
        session = self._sessions.pop(number, None)
        if session is not None:
            self.tree.end_session(number)
            if session.connection is not None:
                session.connection.close()

    def sessions(self) -> list[int]:
        """Those that live, oldest first."""
        return list(self._sessions)

    def disconnected(self, number: int, connection: "_ServedConnection") -> None:
        """A connection is gone; its watches go with it, its session waits for another."""
        session = self._sessions.get(number)
        if session is not None and session.connection is connection:
            session.connection = None
        for watches in (self._node_watches, self._children_watches):
            for connections in watches.values():
                connections.pop(connection, None)

    # ---- a store that forgets

    @property
    def lasting_tree(self) -> MemoryTree:
        """What the ensemble holds, or held before it forgot everything and will hold again."""
        return self.tree if self._lost_tree is None else self._lost_tree

    @property
    def has_forgotten(self) -> bool:
        """Whether `tree` is not the cluster's."""
        return self._lost_tree is not None

    def forget(self, creations: Sequence[Create] = ()) -> None:
        """Lose every node and session, as if its data directories had been wiped; `creations` make it another cluster's store."""
        self._end_all_sessions()
        self._forgot_us = self.process.scheduler.now_us
        self._lost_tree = self.tree
        self.tree = MemoryTree(self._fire_watches)
        self.tree.last_session = self._lost_tree.last_session
        if creations:
            self.tree.write(list(creations), 0)

    def remember(self) -> None:
        """Hold again what was forgotten, without any session; not before the time that operators need for it."""
        scheduler = self.process.scheduler
        if scheduler.now_us < self._forgot_us + _LEAST_FORGOTTEN_US:
            scheduler.at(self._forgot_us + _LEAST_FORGOTTEN_US, self.remember)
        elif self._lost_tree is not None:
            self._end_all_sessions()
            self._lost_tree.last_session = self.tree.last_session
            self.tree, self._lost_tree = self._lost_tree, None

    def _end_all_sessions(self) -> None:
        for number in self.sessions():
            self.end_session(number)

    # ---- requests

    def answer(self, request: Request, number: int, connection: "_ServedConnection") -> Answer:
        """Do what is asked, for a session that lives."""
        kind, path, tree = request.kind, request.path, self.tree
        try:
            if request.operations:
                return self._write(request, number)
            if kind == "get":
                return Answer((self._required(path).data, self._stat(path)))
            if kind == "exists":
                if request.is_watched:
                    self._node_watches.setdefault(path, {})[connection] = None
                return Answer(None if tree.get(path) is None else self._stat(path))
            if kind == "get_children":
                names = tree.children(path)
                if request.is_watched:
                    self._children_watches.setdefault(path, {})[connection] = None
                return Answer(names)
        except StoreRefused as refusal:
            return Answer(refusal=refusal)
        return Answer(path)  # sync

    def _write(self, request: Request, number: int) -> Answer:
        operations = list(request.operations)
        if request.makes_parents:
            parent = parent_of(request.path)
            while parent != "/" and self.tree.get(parent) is None:
                operations.insert(0, Create(parent))
                parent = parent_of(parent)
        refused = self.tree.first_refused(operations)
        if refused is not None:
            return Answer(refusal=refused[1], place=refused[0])
        self.tree.write(operations, number)
        if request.kind == "multi":
            return Answer([True] * len(operations))
        if request.kind == "create":
            return Answer((request.path, self._stat(request.path)))
        return Answer(self._stat(request.path) if request.kind == "set" else True)

    def _required(self, path: str) -> Node:
        node = self.tree.get(path)
        if node is None:
            raise NoNode(path)
        return node

    def _stat(self, path: str) -> NodeStat:
        node = self._required(path)
        return NodeStat(node.created_txn, node.version, len(self.tree.children(path)))

    def _written(self, path: str, before: Node | None, after: Node | None) -> None:
        self._on_write(path, before, after)
        self._fire_watches(path, before, after)

    def _fire_watches(self, path: str, before: Node | None, after: Node | None) -> None:
        self._fire(self._node_watches, path, is_children=False)
        if before is None or after is None:
            self._fire(self._children_watches, parent_of(path), is_children=True)
        if after is None:
            self._fire(self._children_watches, path, is_children=True)

    @staticmethod
    def _fire(
        watches: "dict[str, dict[_ServedConnection, None]]", path: str, *, is_children: bool
    ) -> None:
        for connection in watches.pop(path, ()):
            connection.send(WatchFired(path, is_children))


class _ServedConnection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, ensemble: VirtualEnsemble) -> None:
        self._ensemble = ensemble
        self._data = bytearray()
        self._session = 0
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        for message in self._ensemble.mailbox.take(self._data):
            if not self._transport.is_closing():
                self._received(message)

    def _received(self, message: object) -> None:
        ensemble = self._ensemble
        if isinstance(message, Hello):
            welcome = ensemble.greet(message, self)
            self._session = welcome.session if welcome.timeout_ms else 0
            self.send(welcome)
        elif not ensemble.heard(self._session):
            self.close()
        elif isinstance(message, Request):
            if message.kind == "close":
                session, self._session = self._session, 0
                self.send(Answer(True))
                ensemble.end_session(session)
            else:
                self.send(ensemble.answer(message, self._session, self))
        else:  # a ping
            self.send(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ensemble.disconnected(self._session, self)

    def send(self, message: object) -> None:
        """Tell the client something."""
        self._transport.write(self._ensemble.mailbox.post(message))

    def close(self) -> None:
        """Close after what was sent."""
        self._transport.close()


REFUSALS: Final[dict[type[StoreRefused], str]] = {
    NoNode: "NoNodeError",
    NodeExists: "NodeExistsError",
    BadVersion: "BadVersionError",
    NotEmpty: "NotEmptyError",
    NoChildrenForEphemerals: "NoChildrenForEphemeralsError",
}
"""kazoo's names of what a store refuses."""
