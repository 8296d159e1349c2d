"""Interface of a coordination store: a tree of versioned nodes with conditional writes.

Owns the vocabulary (nodes, operations, failures, session states) and the contract; knows no
implementation. Both implementations pass the same contract tests.

Rules of the contract:
- A path is absolute, its parts joined by "/"; a node may hold data and have children.
- A node's version starts at 0 and grows by one with each `set`. `ANY_VERSION` waives the condition.
- `created_txn` grows over the whole store with each write: a node that was deleted and created anew
  has a greater one. It serves as the epoch of a broker's registration.
- `multi` is all or nothing, in order; the failure it raises is that of the first operation refused.
- An ephemeral node lives as long as the session that created it and has no children.
- A watch says "read again", never what changed: it is called at least once after each change made
  since it was set, several changes may share a call, and a re-established connection calls it too.
- All callbacks run on the event loop of the caller of `open`, and must not block.
- `WriteUncertain` means that the write may or may not have happened: read again before deciding.
"""

import enum
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from headrace.coordination.lease import SessionLease
from headrace.errors import HeadraceError

W = TypeVar("W")

ANY_VERSION = -1


class Node(NamedTuple):
    """A node as it was read."""

    data: bytes
    version: int
    created_txn: int


class Create(msgspec.Struct, frozen=True):
    """Create a node whose parent exists."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


class Set(msgspec.Struct, frozen=True):
    """Replace a node's data if it still has this version."""

    path: str
    data: bytes
    version: int


class Delete(msgspec.Struct, frozen=True):
    """Delete a node without children if it still has this version."""

    path: str
    version: int = ANY_VERSION


class Check(msgspec.Struct, frozen=True):
    """Refuse the whole multi unless the node has this version."""

    path: str
    version: int


Operation = Create | Set | Delete | Check


class StoreRefused(HeadraceError):
    """An expected refusal of one operation; `path` says where."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{type(self).__name__}: {path}")
        self.path = path


class NoNode(StoreRefused):
    """The node, or the parent of a node to be created, does not exist."""


class NodeExists(StoreRefused):
    """The node to be created exists."""


class BadVersion(StoreRefused):
    """The node has another version than the one expected."""


class NotEmpty(StoreRefused):
    """The node to be deleted has children."""


class NoChildrenForEphemerals(StoreRefused):
    """The parent of the node to be created is ephemeral."""


class StoreFailed(HeadraceError):
    """The store could not do its work; nothing was refused by rule."""


class WriteUncertain(StoreFailed):
    """The connection broke while a write was under way: it may or may not have happened."""


class SessionLost(StoreFailed):
    """The session is over: its ephemeral nodes are gone, and so is every right built on them."""


class StoreInUse(StoreFailed):
    """Another process has the embedded store open."""


class SessionState(enum.Enum):
    """How far the session may be trusted."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # not connected; the session still lives on the servers
    OVERDUE = "overdue"  # the lease is over: the servers may have ended the session
    LOST = "lost"  # ended; the store opens another by itself and reports CONNECTED


OnChange = Callable[[], None]
OnSession = Callable[[SessionState], None]
# Tells from a node's path and data which nodes below it hold data, or None if only asking can tell.
# A store that reads node by node saves two questions out of three with it.
Shortcut = Callable[[str, bytes], Sequence[str] | None]
Cancel = Callable[[], None]


class Store(Protocol):
    """A connection to the tree. One owner; used from one event loop."""

    @property
    def session_state(self) -> SessionState:
        """The state last reported."""
        ...

    @property
    def lease(self) -> SessionLease:
        """Until when the session cannot have ended."""
        ...

    @property
    def max_multi_bytes(self) -> int | None:
        """How much one `multi` may weigh (see `weight`), or None where nothing limits it."""
        ...

    async def open(self) -> None:
        """Connect. Raises StoreFailed."""
        ...

    async def close(self) -> None:
        """End the session; ephemeral nodes vanish. No callback is called afterwards."""
        ...

    async def get(self, path: str) -> Node | None:
        """Read a node."""
        ...

    async def get_tree(self, path: str, shortcut: Shortcut | None = None) -> dict[str, Node]:
        """Read every node below `path` that holds data, by path. Not a snapshot: nodes may change while others are read."""
        ...

    async def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted. Raises NoNode."""
        ...

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, parents: bool = False
    ) -> Node:
        """Create a node, if asked with its missing parents. Raises NodeExists, NoNode."""
        ...

    async def set(self, path: str, data: bytes, *, version: int) -> int:
        """Replace a node's data and return its new version. Raises NoNode, BadVersion."""
        ...

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """Delete a node. Raises NoNode, BadVersion, NotEmpty."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> None:
        """Do all of it or nothing. Raises what the first refused operation would."""
        ...

    async def watch_node(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node is created, set or deleted."""
        ...

    async def watch_children(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node gains or loses a child. Raises NoNode."""
        ...

    def on_session(self, callback: OnSession) -> Cancel:
        """Call back with every change of the session's state."""
        ...


def add_watch(watches: list[W], callback: W) -> Cancel:
    """Add a callback to a list; the result takes it out again, once or more often."""
    watches.append(callback)

    def cancel() -> None:
        if callback in watches:
            watches.remove(callback)

    return cancel


def parent_of(path: str) -> str:
    """The path one level up; "/" for a path of the first level."""
    return path.rpartition("/")[0] or "/"


def weight(operation: Operation) -> int:
    """A generous estimate of what an operation weighs on the wire, for `max_multi_bytes`."""
    data = 0 if isinstance(operation, (Delete, Check)) else len(operation.data)
    return 96 + len(operation.path.encode()) + data
