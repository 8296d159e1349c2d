"""kazoo's behaviour as a client of the virtual ensemble: `headrace.coordination.zookeeper_client.ZooKeeperClient`.

Runs on a thread of its process, as kazoo does: sends pings, gives up a silent server, dials again with a growing pause, opens
another session when the ensemble has ended the last one. What was sent and not answered when a connection breaks fails with
ConnectionLoss, whether or not the ensemble has done it; watches fire then, too. Requests wait while there is no connection.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, cast

from kazoo import exceptions
from kazoo.protocol.states import KazooState, WatchedEvent

from headrace.coordination.lease import OnConfirmed
from headrace.coordination.store import (
    Check,
    Create,
    Delete,
    Node,
    Operation,
    Set,
    Shortcut,
    StoreRefused,
)
from headrace.testing.virtual.process import VirtualProcess
from headrace.testing.virtual.zookeeper import (
    REFUSALS,
    ZOOKEEPER_HOST,
    ZOOKEEPER_PORT,
    Answer,
    Hello,
    Mailbox,
    Request,
    WatchFired,
    Welcome,
)

Watch = Callable[[WatchedEvent], None]

# As in `headrace.coordination.zookeeper_connection`, of the session time-out.
_ANSWER_SHARE: Final = 1 / 2
_CONNECT_SHARE: Final = 1 / 4
_SHORTEST_CONNECT_S: Final = 1.0
_PING_SHARE: Final = 1 / 3
_SEEN_BY_LEADER: Final = frozenset(("create", "delete", "set", "sync", "multi"))
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_CLOSE_S: Final = 10.0
_PING: Final = "ping"


class VirtualResult:
    """What a request will come to. Callbacks run on the client's thread."""

    def __init__(self, convert: Callable[[Any], Any] = lambda value: value) -> None:
        self._convert = convert
        self._is_done = False
        self._value: Any = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[VirtualResult], None]] = []

    def rawlink(self, callback: "Callable[[VirtualResult], None]") -> None:
        """Call back when it is there."""
        if self._is_done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def get(self) -> Any:
        """The value. Raises kazoo's exceptions."""
        assert self._is_done
        if self._error is not None:
            raise self._error
        return self._value

    def settle(self, answer: Answer) -> None:
        """The ensemble has answered."""
        if answer.refusal is None:
            self._value = self._convert(answer.value)
        else:
            self._error = refusal_of(answer.refusal)
        self._done()

    def fail(self, error: Exception) -> None:
        """Nobody knows what came of it."""
        self._error = error
        self._done()

    def _done(self) -> None:
        self._is_done = True
        for callback in self._callbacks:
            callback(self)
        self._callbacks.clear()


def refusal_of(refusal: StoreRefused) -> Exception:
    """kazoo's exception for a refusal."""
    return cast(Exception, getattr(exceptions, REFUSALS[type(refusal)])())


class _MultiResult(VirtualResult):
    """A refused transaction is a list of exceptions, not one."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def settle(self, answer: Answer) -> None:
        if answer.refusal is not None:
            results: list[object] = [exceptions.RolledBackError()] * answer.place
            results.append(refusal_of(answer.refusal))
            results += [exceptions.RuntimeInconsistency()] * (self._count - len(results))
            answer = Answer(results)
        super().settle(answer)


class VirtualTransaction:
    """kazoo's `TransactionRequest`."""

    def __init__(self, client: "VirtualZooKeeperClient") -> None:
        self._client = client
        self._operations: list[Operation] = []

    def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False) -> None:
        """Add a creation."""
        self._operations.append(Create(path, value, ephemeral))

    def delete(self, path: str, version: int = -1) -> None:
        """Add a deletion."""
        self._operations.append(Delete(path, version))

    def set_data(self, path: str, value: bytes, version: int = -1) -> None:
        """Add a replacement of data."""
        self._operations.append(Set(path, value, version))

    def check(self, path: str, version: int) -> None:
        """Add a condition."""
        self._operations.append(Check(path, version))

    def commit_async(self) -> VirtualResult:
        """Do all or none."""
        request = Request("multi", operations=tuple(self._operations))
        return self._client.submit(request, _MultiResult(len(self._operations)))


class _Waiting(NamedTuple):
    """A request that is to be sent, or has been sent and has no answer yet."""

    request: Request
    result: VirtualResult
    watch: Watch | None = None
    sent_s: float = 0.0


class _Connection(asyncio.Protocol):
    """One connection to the ensemble."""

    def __init__(self, client: "VirtualZooKeeperClient", mailbox: Mailbox) -> None:
        self._client = client
        self._mailbox = mailbox
        self._data = bytearray()
        self._transport: Any = None
        loop = asyncio.get_running_loop()
        self.welcome: asyncio.Future[Welcome] = loop.create_future()
        self.is_lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        for message in self._mailbox.take(self._data):
            if isinstance(message, Welcome):
                if not self.welcome.done():
                    self.welcome.set_result(message)
            elif not self.is_lost.is_set():
                self._client.received(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost.set()
        if not self.welcome.done():
            self.welcome.set_exception(ConnectionResetError())

    def send(self, message: object) -> None:
        """Send to the ensemble."""
        self._transport.write(self._mailbox.post(message))

    def drop(self) -> None:
        """Give up the connection."""
        self.is_lost.set()
        self._transport.abort()


class VirtualZooKeeperClient:
    """One client in a virtual process."""

    def __init__(
        self,
        process: VirtualProcess,
        mailbox: Mailbox,
        session_timeout_s: float,
        on_confirmed: OnConfirmed,
    ) -> None:
        self._thread = process.start_thread()
        self._loop = self._thread.loop
        self._owner_loop = process.loop
        self._mailbox = mailbox
        self._timeout_s = session_timeout_s
        self._on_confirmed = on_confirmed
        self._chance = process.scheduler.chance
        self._listeners: list[Callable[[str], None]] = []
        self._state = KazooState.LOST
        self._is_stopped = False
        self._session = 0
        self._granted_s = session_timeout_s
        self._connection: _Connection | None = None  # with a session on it
        self._queue: deque[_Waiting] = deque()
        self._pending: deque[_Waiting] = deque()
        self._watches: dict[tuple[str, bool], dict[Watch, None]] = {}
        self._last_send_s = 0.0
        self._is_ping_outstanding = False
        self._has_connected: asyncio.Future[None] = self._owner_loop.create_future()
        self._has_ended: asyncio.Future[None] = self._owner_loop.create_future()

    @property
    def session(self) -> int:
        """The session that the client has, or had last."""
        return self._session

    # ---- on the owner's event loop

    async def start(self, timeout_s: float, *, creates_chroot: bool) -> None:
        """Connect. The virtual ensemble has no chroots."""
        self._loop.call_soon_threadsafe(self._start)
        async with asyncio.timeout(timeout_s):
            await self._has_connected

    async def stop(self) -> None:
        """End the session, if the ensemble can be reached."""
        self._loop.call_soon_threadsafe(self._stop)
        try:
            async with asyncio.timeout(_CLOSE_S):
                await asyncio.shield(self._has_ended)
        except TimeoutError:
            pass

    async def read_tree(self, path: str, shortcut: Shortcut | None) -> dict[str, Node]:
        """Level by level, with all questions about a level under way."""
        found: dict[str, Node] = {}
        parents, paths = [path], [path][:0]
        while parents or paths:
            for parent, names in await self._all(self.get_children_async, parents):
                prefix = "/" if parent == "/" else parent + "/"
                paths.extend(prefix + name for name in names)
            level, paths, parents = paths, [], []
            for each, (data, stat) in await self._all(self.get_async, level):
                if data:
                    found[each] = Node(data, stat.version, stat.czxid)
                if stat.numChildren:
                    below = shortcut(each, data) if shortcut and data else None
                    if below is None:
                        parents.append(each)
                    else:
                        paths.extend(below)
        return found

    async def _all(self, ask: Callable[[str], Any], paths: list[str]) -> list[tuple[str, Any]]:
        answers = []
        for path, result in [(path, ask(path)) for path in paths]:
            done = self._owner_loop.create_future()
            result.rawlink(lambda _, done=done: self._tell(done))
            await done
            try:
                answers.append((path, result.get()))
            except exceptions.NoNodeError:
                continue
        return answers

    def _tell(self, waiting: "asyncio.Future[None]") -> None:
        def settle() -> None:
            if not waiting.done():
                waiting.set_result(None)

        self._owner_loop.call_soon_threadsafe(settle)

    def add_listener(self, listener: Callable[[str], None]) -> None:
        """Call back with every `KazooState`."""
        self._listeners.append(listener)

    def get_async(self, path: str) -> Any:
        """Read a node."""
        return self.submit(Request("get", path), VirtualResult())

    def exists_async(self, path: str, watch: Watch | None = None) -> Any:
        """Whether a node is there."""
        request = Request("exists", path, is_watched=watch is not None)
        return self.submit(request, VirtualResult(), watch)

    def get_children_async(self, path: str, watch: Watch | None = None) -> Any:
        """The names of a node's children."""
        request = Request("get_children", path, is_watched=watch is not None)
        return self.submit(request, VirtualResult(list), watch)

    def create_async(self, path: str, data: bytes, *, ephemeral: bool, makepath: bool) -> Any:
        """Create a node."""
        operations = (Create(path, data, ephemeral),)
        request = Request("create", path, operations, makes_parents=makepath)
        return self.submit(request, VirtualResult())

    def set_async(self, path: str, data: bytes, version: int) -> Any:
        """Replace a node's data."""
        return self.submit(Request("set", path, (Set(path, data, version),)), VirtualResult())

    def delete_async(self, path: str, version: int) -> Any:
        """Delete a node."""
        return self.submit(Request("delete", path, (Delete(path, version),)), VirtualResult())

    def sync_async(self, path: str) -> Any:
        """Ask the leader of the ensemble."""
        return self.submit(Request("sync", path), VirtualResult())

    def transaction(self) -> Any:
        """Several writes, all or none."""
        return VirtualTransaction(self)

    def submit(
        self, request: Request, result: VirtualResult, watch: Watch | None = None
    ) -> VirtualResult:
        """Hand a request to the client's thread."""
        self._loop.call_soon_threadsafe(self._enqueue, request, result, watch)
        return result

    # ---- on the client's thread

    def _start(self) -> None:
        self._spawn(self._keep_connected())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = self._loop.create_task(work)

    async def _keep_connected(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._is_stopped:
            if await self._attempt():
                pause_s = _FIRST_PAUSE_S
            if not self._is_stopped:
                await asyncio.sleep(pause_s * self._chance.uniform(0.6, 1.4))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        self._tell(self._has_ended)

    async def _attempt(self) -> bool:
        """One connection, to its end. Returns whether there was a session on it, or it is known to be over."""
        longest_s = max(_SHORTEST_CONNECT_S, self._timeout_s * _CONNECT_SHARE)
        try:
            async with asyncio.timeout(longest_s):
                _, connection = await self._loop.create_connection(
                    lambda: _Connection(self, self._mailbox), ZOOKEEPER_HOST, ZOOKEEPER_PORT
                )
        except OSError:
            return False
        sent_s = self._loop.time()
        connection.send(Hello(self._session, round(self._timeout_s * 1000)))
        try:
            async with asyncio.timeout(longest_s):
                welcome = await connection.welcome
        except OSError:
            connection.drop()
            return False
        if not welcome.timeout_ms:
            connection.drop()
            self._expired()
            return True
        self._session, self._granted_s = welcome.session, welcome.timeout_ms / 1000
        self._on_confirmed(self._session, sent_s, self._granted_s)
        self._connected(connection)
        await self._ping_while_alive(connection)
        self._disconnected()
        return True

    def _connected(self, connection: _Connection) -> None:
        self._connection = connection
        self._last_send_s = self._loop.time()
        self._is_ping_outstanding = False
        self._report(KazooState.CONNECTED)
        if not self._has_connected.done():
            self._tell(self._has_connected)
        self._flush()

    async def _ping_while_alive(self, connection: _Connection) -> None:
        while not connection.is_lost.is_set():
            due_s = self._last_send_s + self._granted_s * _PING_SHARE - self._chance.uniform(0, 0.1)
            try:
                async with asyncio.timeout_at(max(due_s, self._loop.time() + 0.01)):
                    await connection.is_lost.wait()
            except TimeoutError:
                if self._loop.time() < due_s:
                    continue
                if self._is_ping_outstanding:
                    connection.drop()
                else:
                    self._is_ping_outstanding = True
                    self._send(_PING)

    def _disconnected(self) -> None:
        self._connection = None
        self._fail_all(exceptions.ConnectionLoss)
        self._report(KazooState.SUSPENDED)
        self._fire_all()

    def _expired(self) -> None:
        self._report(KazooState.LOST)
        self._fail_all(exceptions.SessionExpiredError)
        self._fire_all()
        self._session = 0

    def _report(self, state: str) -> None:
        if state != self._state and not (
            state == KazooState.SUSPENDED and self._state == KazooState.LOST
        ):
            self._state = state
            for listener in self._listeners:
                listener(state)

    def _fail_all(self, error: type[Exception]) -> None:
        pending, self._pending = self._pending, deque()
        queue, self._queue = self._queue, deque()
        for waiting in (*pending, *queue):
            waiting.result.fail(error())

    def _fire_all(self) -> None:
        watches, self._watches = self._watches, {}
        event = WatchedEvent("NONE", self._state, None)
        for each in watches.values():
            for watch in each:
                watch(event)

    def _enqueue(self, request: Request, result: VirtualResult, watch: Watch | None) -> None:
        if self._is_stopped:
            result.fail(exceptions.ConnectionClosedError())
            return
        self._queue.append(_Waiting(request, result, watch))
        self._flush()

    def _flush(self) -> None:
        while self._queue and self._connection is not None:
            now_s = self._loop.time()
            if self._pending and now_s - self._pending[0].sent_s > self._granted_s * _ANSWER_SHARE:
                self._connection.drop()
                self._connection = None  # what waits fails when the drop is noticed
                return
            waiting = self._queue.popleft()
            self._pending.append(waiting._replace(sent_s=now_s))
            self._send(waiting.request)

    def _send(self, message: object) -> None:
        if self._connection is not None:
            self._last_send_s = self._loop.time()
            self._connection.send(message)

    def received(self, message: object) -> None:
        """The ensemble says something."""
        if isinstance(message, WatchFired):
            watches = self._watches.pop((message.path, message.is_children), {})
            for fired in watches:
                fired(WatchedEvent("CHANGED", self._state, message.path))
        elif isinstance(message, Answer):
            if not self._pending:  # of a connection that was given up
                return
            request, result, watch, sent_s = self._pending.popleft()
            if message.refusal is None:
                if request.kind in _SEEN_BY_LEADER:
                    self._on_confirmed(self._session, sent_s, self._granted_s)
                if watch is not None:
                    where = request.path, request.kind == "get_children"
                    self._watches.setdefault(where, {})[watch] = None
            result.settle(message)
        else:
            self._is_ping_outstanding = False

    def _stop(self) -> None:
        if self._connection is not None:
            request = Request("close")
            self._pending.append(_Waiting(request, VirtualResult(), sent_s=self._loop.time()))
            self._send(request)
            self._spawn_stop(self._connection)
        self._is_stopped = True
        if self._connection is None:
            self._tell(self._has_ended)

    def _spawn_stop(self, connection: _Connection) -> None:
        async def wait() -> None:
            try:
                async with asyncio.timeout(_CLOSE_S):
                    await connection.is_lost.wait()
            except TimeoutError:
                connection.drop()

        self._stopping = self._loop.create_task(wait())
