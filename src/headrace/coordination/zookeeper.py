"""The store of a cluster: a real ZooKeeper ensemble (3.5 or later), through kazoo.

Owns the session. Must not know what the nodes mean. kazoo brings threads; they end here: its
results and events are handed to the event loop, and nothing else of ours runs on its threads.
kazoo is imported when a session opens.

Reads survive a broken connection: they wait and ask again. Writes do not, for they may have happened.

The lease on the session ends before the servers can end the session: it is counted from when a request was sent that the leader
of the ensemble has seen (`zookeeper_connection`), and lasts three quarters of the session time-out that the servers granted. The
last quarter is for what the leader learns late of a session: a follower reports sessions to it once in half a tick, and a
session lasts two ticks at least. A sync every eighth of the time-out renews the lease. OVERDUE is reported when it is over.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from headrace.coordination.lease import SessionLease, clock
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
    StoreRefused,
    WriteUncertain,
    add_watch,
    parent_of,
)
from headrace.coordination.zookeeper_client import MakeClient, ZooKeeperClient, kazoo_client

if TYPE_CHECKING:
    from kazoo.client import Watch
    from kazoo.interfaces import IAsyncResult
    from kazoo.protocol.states import WatchedEvent

T = TypeVar("T")

# ZooKeeper refuses packets of 1 MiB (jute.maxbuffer); half of it leaves room for our estimate.
_MAX_MULTI_BYTES = 512 * 1024
# Of the session time-out.
_LEASE_SHARE = 3 / 4
_RENEWAL_SHARE = 1 / 8
_LEASE_LOOK_S = 0.001


class ZooKeeperStore:
    """A `Store` on an ensemble named as in `zookeeper.connect`: host:port,host:port/chroot."""

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = 18_000,
        connection_timeout_ms: int = 18_000,
        creates_chroot: bool = True,
        make_client: MakeClient = kazoo_client,
        clock: Callable[[], float] = clock,
    ) -> None:
        """Without `creates_chroot` a chroot that is missing is left alone: nothing is found below it.

        `clock` is the one by which the client tells when a session was confirmed.
        """
        self._connect = connect
        self._make_client = make_client
        self._creates_chroot = creates_chroot
        self._session_timeout_s = session_timeout_ms / 1000
        self._connection_timeout_s = connection_timeout_ms / 1000
        self._open_client: ZooKeeperClient | None = None
        self._session_state = SessionState.LOST
        self._session_watches: list[OnSession] = []
        self._connected = asyncio.Event()
        self.lease = SessionLease(clock)
        self._lease_session = 0  # the session that the lease is on; 0 for none
        self._confirmed = 0, -math.inf, self._session_timeout_s  # session, lease's end, time-out
        self._lease_timer: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._watch_tasks: set[asyncio.Task[None]] = set()

    @property
    def session_state(self) -> SessionState:
        """The state last reported."""
        return self._session_state

    @property
    def max_multi_bytes(self) -> int | None:
        """Half of what a ZooKeeper takes unless configured otherwise."""
        return _MAX_MULTI_BYTES

    async def open(self) -> None:
        """Connect and create the chroot. Raises StoreFailed."""
        from kazoo.protocol.states import KazooState

        assert self._open_client is None, "opened twice"
        loop = asyncio.get_running_loop()
        client = self._make_client(self._connect, self._session_timeout_s, self._on_confirmed)

        def listen(state: str) -> None:
            if state == KazooState.LOST:
                # At once: the next session may begin before the event loop hears of it.
                self._lease_session, self.lease.until = 0, -math.inf
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._heard, state, self._confirmed[0])

        client.add_listener(listen)
        try:
            await client.start(self._connection_timeout_s, creates_chroot=self._creates_chroot)
        except Exception as error:
            await client.stop()
            raise StoreFailed(f"no ZooKeeper answers at {self._connect}: {error}") from error
        self._open_client = client
        await self._connected.wait()
        self._renewal = loop.create_task(self._keep_lease(client))

    async def close(self) -> None:
        """End the session."""
        client, self._open_client = self._open_client, None
        if client is None:
            return
        self._session_watches.clear()
        tasks = [*self._watch_tasks]
        if self._renewal is not None:
            tasks.append(self._renewal)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.stop()
        self._stop_timer()
        self._lease_session, self.lease.until = 0, -math.inf
        self._session_state = SessionState.LOST

    async def get(self, path: str) -> Node | None:
        """Read a node."""
        client = self._client
        try:
            data, stat = await self._read(lambda: client.get_async(path), path)
        except NoNode:
            return None
        return Node(data, stat.version, stat.czxid)

    async def get_tree(self, path: str, shortcut: Shortcut | None = None) -> dict[str, Node]:
        """Read every node below `path` that holds data."""
        client = self._client
        return await self._until_connected(lambda: client.read_tree(path, shortcut), path)

    async def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted."""
        client = self._client
        names = await self._read(lambda: client.get_children_async(path), path)
        return sorted(names)

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, parents: bool = False
    ) -> Node:
        """Create a node, if asked with its missing parents."""
        result = self._client.create_async(path, data, ephemeral=ephemeral, makepath=parents)
        try:
            _, stat = await self._write(result, path)
        except StoreRefused as refusal:
            raise _of_creation(refusal, path) from None
        return Node(data, stat.version, stat.czxid)

    async def set(self, path: str, data: bytes, *, version: int) -> int:
        """Replace a node's data and return its new version."""
        return (await self._write(self._client.set_async(path, data, version), path)).version

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """Delete a node."""
        await self._write(self._client.delete_async(path, version), path)

    async def multi(self, operations: Sequence[Operation]) -> None:
        """Do all of it in one transaction, or nothing."""
        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case Create(path, data, ephemeral):
                    transaction.create(path, data, ephemeral=ephemeral)
                case Set(path, data, version):
                    transaction.set_data(path, data, version)
                case Delete(path, version):
                    transaction.delete(path, version)
                case Check(path, version):
                    transaction.check(path, version)
        results = await self._write(transaction.commit_async(), "multi")
        for operation, result in zip(operations, results, strict=False):
            if isinstance(result, Exception) and not _is_consequence(result):
                error = _translated(result, operation.path)
                is_creation = isinstance(operation, Create)
                raise _of_creation(error, operation.path) if is_creation else error

    async def watch_node(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node is created, set or deleted."""
        client = self._client
        return await self._watch(lambda watch: client.exists_async(path, watch), path, on_change)

    async def watch_children(self, path: str, on_change: OnChange) -> Cancel:
        """Call back when the node gains or loses a child."""
        client = self._client
        return await self._watch(
            lambda watch: client.get_children_async(path, watch), path, on_change
        )

    def on_session(self, callback: OnSession) -> Cancel:
        """Call back with every change of the session's state."""
        return add_watch(self._session_watches, callback)

    @property
    def _client(self) -> ZooKeeperClient:
        if self._open_client is None:
            raise StoreFailed("the store is not open")
        return self._open_client

    async def _read(self, ask: "Callable[[], IAsyncResult[T]]", path: str) -> T:
        return await self._until_connected(lambda: _outcome(ask()), path)

    async def _until_connected(self, ask: Callable[[], Awaitable[T]], path: str) -> T:
        while True:
            try:
                return await ask()
            except Exception as error:
                failure = _translated(error, path)
                if self._open_client is None or not isinstance(
                    failure, (WriteUncertain, SessionLost)
                ):
                    raise failure from error
            # kazoo reports its state a moment after it has failed the calls under way.
            await asyncio.sleep(0.01)
            await self._connected.wait()

    async def _write(self, result: "IAsyncResult[T]", path: str) -> T:
        try:
            return await _outcome(result)
        except Exception as error:
            raise _translated(error, path) from error

    async def _watch(
        self, ask: "Callable[[Watch], IAsyncResult[object]]", path: str, on_change: OnChange
    ) -> Cancel:
        loop = asyncio.get_running_loop()
        fired = asyncio.Event()

        def watch(_: "WatchedEvent") -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(fired.set)

        async def follow() -> None:
            # A watch of ZooKeeper fires once. It is set again before anyone reads, so that no
            # change falls between the reading and the watch.
            while True:
                await fired.wait()
                fired.clear()
                try:
                    await self._read(lambda: ask(watch), path)
                except NoNode:
                    on_change()
                    return
                on_change()

        await self._read(lambda: ask(watch), path)
        task = loop.create_task(follow())
        self._watch_tasks.add(task)
        task.add_done_callback(self._watch_tasks.discard)

        def cancel() -> None:
            task.cancel()

        return cancel

    # ---- the session and its lease

    def _on_confirmed(self, session: int, sent_at: float, timeout_s: float) -> None:
        """On kazoo's thread: the session was alive after this moment, and has this time-out."""
        until = sent_at + timeout_s * _LEASE_SHARE
        self._confirmed = session, until, timeout_s
        if session == self._lease_session:
            self.lease.until = until

    async def _keep_lease(self, client: ZooKeeperClient) -> None:
        loop = asyncio.get_running_loop()

        def answered(_: "IAsyncResult[object]") -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._look_at_lease)

        while True:
            await self._connected.wait()
            # Not awaited: with the next one the connection finds out that this one has no answer.
            client.sync_async("/").rawlink(answered)
            await asyncio.sleep(self._confirmed[2] * _RENEWAL_SHARE)

    def _look_at_lease(self) -> None:
        """Report a lease that ended, or that goes on after it had ended; look again when it is due."""
        self._stop_timer()
        if self._lease_session == 0:
            return
        if self.lease.is_over():
            if self._session_state in (SessionState.CONNECTED, SessionState.SUSPENDED):
                self._report(SessionState.OVERDUE)
            return
        if self._session_state is SessionState.OVERDUE and self._connected.is_set():
            self._report(SessionState.CONNECTED)
        self._lease_timer = asyncio.get_running_loop().call_later(
            max(self.lease.remaining_s(), _LEASE_LOOK_S), self._look_at_lease
        )

    def _heard(self, state: str, session: int) -> None:
        """What kazoo says of a session; `session` is the last one that was confirmed when it said so."""
        from kazoo.protocol.states import KazooState

        if state == KazooState.CONNECTED:
            confirmed, until, _ = self._confirmed
            if confirmed == session:  # else kazoo has more to say
                self._lease_session, self.lease.until = session, until
            self._connected.set()
            self._report(SessionState.CONNECTED)
            self._look_at_lease()
        elif state == KazooState.LOST:
            self._connected.clear()
            self._stop_timer()
            self._report(SessionState.LOST)
        else:
            self._connected.clear()
            if self._session_state is not SessionState.OVERDUE:
                self._report(SessionState.SUSPENDED)

    def _report(self, state: SessionState) -> None:
        self._session_state = state
        for callback in tuple(self._session_watches):
            callback(state)

    def _stop_timer(self) -> None:
        if self._lease_timer is not None:
            self._lease_timer.cancel()
            self._lease_timer = None


async def _outcome(result: "IAsyncResult[T]") -> T:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not done.done():
            done.set_result(None)

    def finished(_: "IAsyncResult[object]") -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(wake)

    result.rawlink(finished)
    await done
    return result.get()


def _is_consequence(error: Exception) -> bool:
    """Whether an operation of a multi failed only because another did."""
    from kazoo.exceptions import RolledBackError, RuntimeInconsistency

    return isinstance(error, (RolledBackError, RuntimeInconsistency))


def _translated(error: Exception, path: str) -> Exception:
    from kazoo import exceptions

    refusals: dict[type[Exception], type[StoreRefused]] = {
        exceptions.NoNodeError: NoNode,
        exceptions.NodeExistsError: NodeExists,
        exceptions.BadVersionError: BadVersion,
        exceptions.NotEmptyError: NotEmpty,
        exceptions.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
    }
    refusal = refusals.get(type(error))
    if refusal is not None:
        return refusal(path)
    match error:
        case exceptions.SessionExpiredError():
            return SessionLost(f"{path}: the session is over")
        case exceptions.ConnectionLoss() | exceptions.OperationTimeoutError():
            return WriteUncertain(f"{path}: the connection to ZooKeeper broke")
        case exceptions.KazooException():
            return StoreFailed(f"{path}: {error!r}")
    return error


def _of_creation(error: Exception, path: str) -> Exception:
    """A creation is refused for what its parent lacks."""
    if isinstance(error, (NoNode, NoChildrenForEphemerals)):
        return type(error)(parent_of(path))
    return error
