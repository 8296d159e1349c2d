"""The store of a single broker: the tree in a SQLite file, no other process needed.

Owns the file. Must not know what the nodes mean. Every call runs on one worker thread, in order:
that is the only lock, and it keeps the file's fsync off the event loop. A write returns when it
is on disk (write-ahead log, synchronous=FULL). The file is locked for as long as it is open, and
the session is that time: ephemeral nodes that a crash left behind vanish when it is opened again.

Room for changes on a full disk is taken in advance, in both files of the database: free pages in the one, and the length of
the write-ahead log, which is written from its start again after a checkpoint. So topics can be deleted and configs changed
when nothing else can be written. Transactions that mostly add nodes do not get that room.
"""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

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
    SessionState,
    Set,
    Shortcut,
    StoreFailed,
    StoreInUse,
    add_watch,
    parent_of,
)

_logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_LEAST_RESERVED_BYTES = 1024 * 1024

_LAST_CHARACTER = "\U0010ffff"
_SCHEMA_VERSION = 1
_SCHEMA = (
    "CREATE TABLE nodes (path TEXT PRIMARY KEY, data BLOB NOT NULL, version INTEGER NOT NULL,"
    " created_txn INTEGER NOT NULL, ephemeral INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE clock (last_txn INTEGER NOT NULL)",
    "INSERT INTO clock VALUES (0)",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)


class EmbeddedStore:
    """A `Store` in a SQLite file, or in memory when no path is given."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._tree: _Tree | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._node_watches: dict[str, list[OnChange]] = {}
        self._children_watches: dict[str, list[OnChange]] = {}
        self._session_watches: list[OnSession] = []
        self._session_state = SessionState.LOST

    @property
    def session_state(self) -> SessionState:
        """CONNECTED from `open` to `close`."""
        return self._session_state

    @property
    def lease(self) -> SessionLease:
        """The session is as long as the process has the file open."""
        return ENDLESS

    @property
    def max_multi_bytes(self) -> int | None:
        """Nothing limits a transaction."""
        return None

    async def open(self) -> None:
        """Open or create the file. Raises StoreInUse, StoreFailed."""
        assert self._worker is None, "opened twice"
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="headrace-store")
        try:
            self._tree = await asyncio.get_running_loop().run_in_executor(
                self._worker, _Tree, self._path
            )
        except BaseException:
            self._worker.shutdown(wait=False)
            self._worker = None
            raise
        self._report(SessionState.CONNECTED)

    async def close(self) -> None:
        """Close the file, after every write begun before."""
        if self._worker is None or self._tree is None:
            return
        worker, tree = self._worker, self._tree
        self._worker = self._tree = None
        self._node_watches.clear()
        self._children_watches.clear()
        self._session_watches.clear()
        self._session_state = SessionState.LOST
        await asyncio.get_running_loop().run_in_executor(worker, tree.close)
        worker.shutdown()

    async def get(self, path: str) -> Node | None:
        """Read a node."""
        return await self._call(_tree(self).get, path)

    async def get_tree(self, path: str, shortcut: Shortcut | None = None) -> dict[str, Node]:
        """Read every node below `path` that holds data. One scan, no need for shortcuts."""
        return await self._call(_tree(self).get_tree, path)

    async def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted."""
        return await self._call(_tree(self).children, path)

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, parents: bool = False
    ) -> Node:
        """Create a node, if asked with its missing parents."""
        operations: list[Operation] = [Create(path, data, ephemeral)]
        if parents:
            operations[:0] = await self._call(_tree(self).missing_parents, path)
        txn = await self._write(operations)
        return Node(data, 0, txn)

    async def set(self, path: str, data: bytes, *, version: int) -> int:
        """Replace a node's data and return its new version."""
        await self._write([Set(path, data, version)])
        if version != ANY_VERSION:
            return version + 1
        node = await self.get(path)
        return -1 if node is None else node.version

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """Delete a node."""
        await self._write([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        """Do all of it in one transaction, or nothing."""
        await self._write(operations)

    async def watch_node(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node is created, set or deleted."""
        return add_watch(self._node_watches.setdefault(path, []), on_change)

    async def watch_children(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node gains or loses a child."""
        if path != "/" and await self.get(path) is None:
            raise NoNode(path)
        return add_watch(self._children_watches.setdefault(path, []), on_change)

    def on_session(self, callback: OnSession) -> Cancel:
        """Call back with every change of the session's state."""
        return add_watch(self._session_watches, callback)

    async def _write(self, operations: Sequence[Operation]) -> int:
        txn = await self._call(_tree(self).write, operations)
        self._notify(operations)
        return txn

    async def _call(self, function: Callable[P, R], *args: P.args, **_: P.kwargs) -> R:
        # Not cancelled half-way: the thread would go on writing while the caller believes otherwise.
        return await asyncio.shield(
            asyncio.get_running_loop().run_in_executor(self._worker, function, *args)
        )

    def _notify(self, operations: Sequence[Operation]) -> None:
        if not self._node_watches and not self._children_watches:
            return
        callbacks: dict[OnChange, None] = {}
        for operation in operations:
            if isinstance(operation, Check):
                continue
            callbacks.update(dict.fromkeys(self._node_watches.get(operation.path, ())))
            if not isinstance(operation, Set):
                watches = self._children_watches.get(parent_of(operation.path), ())
                callbacks.update(dict.fromkeys(watches))
        for callback in callbacks:
            callback()

    def _report(self, state: SessionState) -> None:
        self._session_state = state
        for callback in tuple(self._session_watches):
            callback(state)


def _tree(store: EmbeddedStore) -> "_Tree":
    tree = store._tree
    if tree is None:
        raise StoreFailed("the embedded store is not open")
    return tree


class _Tree:
    """The file itself. Every method runs on the worker thread."""

    def __init__(self, path: Path | None) -> None:
        name = ":memory:" if path is None else str(path)
        self._directory = None if path is None else path.parent
        self._last_txn = 0
        try:
            self._db = sqlite3.connect(
                name, timeout=0, isolation_level=None, check_same_thread=False
            )
        except sqlite3.OperationalError as error:
            raise StoreFailed(f"cannot open {name}: {error}") from error
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self._db.close()
            if "locked" in str(error):
                raise StoreInUse(f"{name} is open in another process") from error
            raise StoreFailed(f"{name}: {error}") from error

    def _prepare(self) -> None:
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._transact(self._create_schema)
        self._transact(self._delete_ephemerals)
        (self._last_txn,) = self._db.execute("SELECT last_txn FROM clock").fetchone()
        pages, page_bytes = self._pragma("page_count"), self._pragma("page_size")
        in_use = (pages - self._pragma("freelist_count")) * page_bytes
        # A transaction changes each page once at most: a log as long as the database holds any.
        self._reserve(max(_LEAST_RESERVED_BYTES, in_use))

    def _create_schema(self) -> None:
        version = self._pragma("user_version")
        if version == 0:
            for statement in _SCHEMA:
                self._db.execute(statement)
        elif version != _SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"layout {version} of a later release")

    def _delete_ephemerals(self) -> None:
        self._db.execute("DELETE FROM nodes WHERE ephemeral")

    def _pragma(self, name: str) -> int:
        value: int = self._db.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    def close(self) -> None:
        try:
            self._transact(self._delete_ephemerals)
            self._db.close()
        except sqlite3.Error as error:
            # Nothing is lost: what was written is in the log, and ephemeral nodes go when the file is opened again.
            _logger.warning("the embedded store could not be tidied up at its end: %s", error)

    # ---- room

    def _reserve(self, size: int) -> None:
        """Take room in both files. On a disk that is too full for it, do without."""
        if self._directory is None:
            return

        def take() -> None:
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS reserve (bytes BLOB)"
            )  # a crash may leave it
            self._db.execute("INSERT INTO reserve VALUES (zeroblob(?))", (size,))

        try:
            self._attempt(take)
            self._attempt(lambda: self._db.execute("DROP TABLE reserve"))
            self._start_log_over()
        except sqlite3.Error as error:
            _logger.warning(
                "the embedded store could not take room in advance (%s): once the disk is full, topics can be"
                " deleted and configs changed only after room was made by other means",
                error,
            )

    def _renew_reserve(self) -> None:
        """Take new room for free pages that were used up while there was more of it."""
        free_bytes = self._pragma("freelist_count") * self._pragma("page_size")
        if free_bytes < _LEAST_RESERVED_BYTES // 2 and self._has_room():
            self._reserve(_LEAST_RESERVED_BYTES)

    def _has_room(self) -> bool:
        """Whether the volume has room beside what is reserved here."""
        if self._directory is None:
            return True
        try:
            volume = os.statvfs(self._directory)
        except OSError:
            return True  # the write itself will say what is wrong with the disk
        free_blocks = volume.f_bavail if os.geteuid() else volume.f_bfree
        return free_blocks * volume.f_frsize > 2 * _LEAST_RESERVED_BYTES

    def _start_log_over(self) -> None:
        self._db.execute("PRAGMA wal_checkpoint(RESTART)")

    # ---- transactions

    def _transact(self, change: Callable[[], object]) -> None:
        """Commit what `change` does, on a full disk in the room that was reserved."""
        try:
            self._attempt(change)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
            self._start_log_over()
            self._attempt(change)

    def _attempt(self, change: Callable[[], object]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            change()
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    # ---- nodes

    def get(self, path: str) -> Node | None:
        row = self._db.execute(
            "SELECT data, version, created_txn FROM nodes WHERE path = ?", (path,)
        ).fetchone()
        return None if row is None else Node(*row)

    def get_tree(self, path: str) -> dict[str, Node]:
        # "0" follows "/" in ASCII: the range holds exactly the paths that start with `path` + "/".
        prefix = "" if path == "/" else path
        rows = self._db.execute(
            "SELECT path, data, version, created_txn FROM nodes"
            " WHERE path > ? AND path < ? AND data != x''",
            (prefix + "/", prefix + "0"),
        )
        return {found: Node(data, version, txn) for found, data, version, txn in rows}

    def children(self, path: str) -> list[str]:
        if path != "/" and self.get(path) is None:
            raise NoNode(path)
        names: list[str] = []
        prefix = "/" if path == "/" else path + "/"
        end = prefix[:-1] + "0"
        after = prefix
        # Skips from child to child, so that a subtree costs one look-up and not a scan.
        while True:
            row = self._db.execute(
                "SELECT path FROM nodes WHERE path > ? AND path < ? ORDER BY path LIMIT 1",
                (after, end),
            ).fetchone()
            if row is None:
                return names
            name = row[0][len(prefix) :]
            if "/" not in name:
                names.append(name)
                after = row[0]
            else:
                after = prefix + name.partition("/")[0] + "/" + _LAST_CHARACTER

    def missing_parents(self, path: str) -> list[Operation]:
        missing: list[Operation] = []
        parent = parent_of(path)
        while parent != "/" and self.get(parent) is None:
            missing.append(Create(parent))
            parent = parent_of(parent)
        return missing[::-1]

    def write(self, operations: Sequence[Operation]) -> int:
        txn = self._last_txn + 1

        def change() -> None:
            for operation in operations:
                self._apply(operation, txn)
            self._db.execute("UPDATE clock SET last_txn = ?", (txn,))

        if _mostly_adds(operations) and not self._has_room():
            raise StoreFailed(f"{self._directory}: no space for new nodes is left on the disk")
        try:
            self._transact(change)
        except sqlite3.Error as error:
            raise StoreFailed(f"the embedded store failed: {error}") from error
        self._last_txn = txn
        self._renew_reserve()
        return txn

    def _apply(self, operation: Operation, txn: int) -> None:
        match operation:
            case Create(path, data, ephemeral):
                self._create(path, data, ephemeral=ephemeral, txn=txn)
            case Set(path, data, version):
                statement = "UPDATE nodes SET data = ?, version = version + 1 WHERE path = ?"
                self._conditional(statement, (data, path), version, path)
            case Delete(path, version):
                if self._has_children(path):
                    raise NotEmpty(path)
                self._conditional("DELETE FROM nodes WHERE path = ?", (path,), version, path)
            case Check(path, version):
                node = self.get(path)
                if node is None:
                    raise NoNode(path)
                if version not in (ANY_VERSION, node.version):
                    raise BadVersion(path)

    def _create(self, path: str, data: bytes, *, ephemeral: bool, txn: int) -> None:
        parent = parent_of(path)
        if parent != "/":
            row = self._db.execute(
                "SELECT ephemeral FROM nodes WHERE path = ?", (parent,)
            ).fetchone()
            if row is None:
                raise NoNode(parent)
            if row[0]:
                raise NoChildrenForEphemerals(parent)
        try:
            self._db.execute(
                "INSERT INTO nodes VALUES (?, ?, 0, ?, ?)", (path, data, txn, ephemeral)
            )
        except sqlite3.IntegrityError:
            raise NodeExists(path) from None

    def _conditional(
        self, statement: str, values: tuple[object, ...], version: int, path: str
    ) -> None:
        if version != ANY_VERSION:
            statement += " AND version = ?"
            values = (*values, version)
        if self._db.execute(statement, values).rowcount == 0:
            raise NoNode(path) if self.get(path) is None else BadVersion(path)

    def _has_children(self, path: str) -> bool:
        row = self._db.execute(
            "SELECT 1 FROM nodes WHERE path > ? AND path < ? LIMIT 1", (path + "/", path + "0")
        ).fetchone()
        return row is not None


def _mostly_adds(operations: Sequence[Operation]) -> bool:
    """Whether a transaction is of the kind that fills the store: a new topic, and not a deletion or a new config.

    Ephemeral nodes do not count: a broker must be able to register on a full disk, and takes its nodes away again.
    """
    added = sum(isinstance(each, Create) and not each.ephemeral for each in operations)
    return added > 1 + sum(isinstance(operation, Delete) for operation in operations)
