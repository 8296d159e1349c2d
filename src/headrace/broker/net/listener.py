"""Accepts connections and holds their limits."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from headrace.broker.net.buffer_pool import BufferPool
from headrace.broker.net.busy_poll import BusyPoll
from headrace.broker.net.connection import Connection, Dispatch
from headrace.broker.net.memory_budget import MemoryBudget
from headrace.broker.net.network import ListeningSocket, Network
from headrace.broker.net.read_budget import ReadBudget
from headrace.settings.definitions.value_type import INT_MAX
from headrace.settings.listener import Listener

_logger = logging.getLogger(__name__)

_RECEIVE_BYTES: Final = 64 * 1024
_LONGEST_STALL_S: Final = 5.0
_SLOWEST_RATE: Final = 0.01  # connections a second; a rate of 0 would accept none ever again


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Kafka's settings of the same names."""

    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: dict[str, int] = field(default_factory=dict)
    connections_max_idle_ms: int
    max_frame_bytes: int
    backlog: int
    max_connection_creation_rate: int = INT_MAX
    send_buffer_bytes: int = -1  # left to the operating system
    receive_buffer_bytes: int = -1


class ConnectionCounts:
    """Open connections of all listeners, in total and by the peer's address, and their limits."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.open: dict[Connection, None] = {}  # in the order of their arrival
        self._by_host: Counter[str] = Counter()
        self.refused = 0
        self._next_turn = 0.0  # when one more connection is within max.connection.creation.rate
        self._ids = count(1)

    def next_id(self) -> int:
        """A number for a connection that no other one has or had."""
        return next(self._ids)

    def add(self, connection: Connection) -> bool:
        """Count a connection in, or refuse it."""
        host = connection.peer_host
        limits = self.limits
        allowed = limits.max_connections_per_ip_overrides.get(host, limits.max_connections_per_ip)
        if len(self.open) >= limits.max_connections or self._by_host[host] >= allowed:
            self.refused += 1
            _logger.warning("refusing a connection of %s: the limit is reached", host)
            return False
        self.open[connection] = None
        self._by_host[host] += 1
        return True

    def wait_s(self, now: float) -> float:
        """How long a new connection has to wait, so that max.connection.creation.rate is kept."""
        rate = self.limits.max_connection_creation_rate
        if rate == INT_MAX:
            return 0.0
        # The connections of one second may come at once.
        turn = max(self._next_turn, now - 1.0)
        self._next_turn = turn + 1.0 / max(rate, _SLOWEST_RATE)
        return max(0.0, self._next_turn - now)

    def remove(self, connection: Connection) -> None:
        """Count it out."""
        if connection in self.open:
            del self.open[connection]
            self._by_host[connection.peer_host] -= 1
            if not self._by_host[connection.peer_host]:
                del self._by_host[connection.peer_host]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerContext:
    """Dispatcher, limits and system services that all listeners of a broker use."""

    network: Network
    dispatch: Dispatch
    budget: MemoryBudget
    counts: ConnectionCounts
    busy_poll: BusyPoll
    monotonic: Callable[[], float]
    tasks: asyncio.TaskGroup


class OpenListener:
    """One address that is being listened on: the owner of its connections."""

    def __init__(
        self, listener: Listener, context: ListenerContext, *, is_inter_broker: bool
    ) -> None:
        """`is_inter_broker` if other brokers connect here: internal APIs are offered to them."""
        self.listener = listener
        self.listener_name = listener.name
        self.is_inter_broker = is_inter_broker
        self.dispatch = context.dispatch
        self.budget = context.budget
        self.max_frame_bytes = context.counts.limits.max_frame_bytes
        self.busy_poll = context.busy_poll
        self.buffer_pool = BufferPool()
        self.receive_area = memoryview(bytearray(_RECEIVE_BYTES))
        self._counts = context.counts
        self._tasks = context.tasks
        self._loop = asyncio.get_running_loop()
        self.read_budget = ReadBudget(self._loop.call_soon, context.monotonic)
        self._network = context.network
        self._socket: ListeningSocket | None = None
        self._now = self._loop.time()

    async def bind(self) -> int:
        """Bind the address without accepting yet. Returns the port, which the operating system chose if none was given."""
        limits = self._counts.limits
        self._socket = await self._network.listen(
            lambda: Connection(self),
            self.listener.host,
            self.listener.port,
            backlog=limits.backlog,
            send_buffer_bytes=limits.send_buffer_bytes,
            receive_buffer_bytes=limits.receive_buffer_bytes,
        )
        return self._socket.port

    async def serve(self) -> None:
        """Accept connections from now on."""
        assert self._socket is not None
        await self._socket.serve()

    def stop_accepting(self) -> None:
        """Accept no new connections; open ones stay open."""
        if self._socket is not None:
            self._socket.close()

    def close_connections(self) -> None:
        """Close every connection of this listener."""
        for connection in list(self._counts.open):
            if connection.listener_name == self.listener_name:
                connection.close()

    def abort_connections(self) -> None:
        """Abort connections that are still open, because their peers do not read the remaining answers."""
        for connection in list(self._counts.open):
            if connection.listener_name == self.listener_name:
                connection.abort()

    def close_idle(self) -> None:
        """Close connections that were silent for too long; also moves the coarse clock."""
        # Connections store the coarse time of the previous round as `last_active`, so they are compared with that.
        last_round, self._now = self._now, self._loop.time()
        self._end_stall()
        limit_s = self._counts.limits.connections_max_idle_ms / 1000
        for connection in list(self._counts.open):
            if connection.is_idle and last_round - connection.last_active > limit_s:
                _logger.info(
                    "closing the connection of %s: idle for too long", connection.peer_host
                )
                connection.abort()

    def _end_stall(self) -> None:
        """Abort the favoured connection if it is silent while the memory budget is exhausted, because all others wait for it."""
        favoured = self.budget.favoured
        if (
            isinstance(favoured, Connection)
            and self.budget.is_exhausted
            and favoured.is_peers_turn
            and self._now - favoured.last_active > _LONGEST_STALL_S
        ):
            _logger.warning(
                "closing the connection of %s: memory is short and it is silent", favoured.peer_host
            )
            favoured.abort()

    # ---- what connections ask of their owner

    def next_connection_id(self) -> int:
        return self._counts.next_id()

    def opened(self, connection: Connection) -> bool:
        if not self._counts.add(connection):
            return False
        wait_s = self._counts.wait_s(self._loop.time())
        if wait_s > 0:
            connection.hold()
            self._loop.call_later(wait_s, connection.release)
        return True

    def closed(self, connection: Connection) -> None:
        self._counts.remove(connection)

    def start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return self._tasks.create_task(work)

    def now(self) -> float:
        return self._now
