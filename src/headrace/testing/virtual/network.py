"""A virtual network of hosts: who can dial whom, how long bytes take, and what is lost on the way.

Owns listening ports, the weather and the faults of each way from one host to another. A connection is a pair of byte streams
(`stream`) that never lose or reorder bytes, as TCP: a way that is cut holds bytes back until it is whole again or the connection
times out. A process that ends has its connections closed by the kernel of its host. A host without power is silent.
"""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NoReturn

from headrace.testing.virtual.process_interface import Handle, Process, ProtocolFactory
from headrace.testing.virtual.scheduler import SECOND_US, Scheduler
from headrace.testing.virtual.stream import VirtualTransport

_FIRST_PORT: Final = 30_000
_SYN_RETRIES_S: Final = (1, 2, 4, 8, 16, 32, 64)  # between two of them, as Linux has it
_LOOPBACK_US: Final = 30


@dataclass(frozen=True, slots=True)
class Weather:
    """How long bytes are on their way. A share of them is late, as after a lost packet."""

    delay_us: int = 300
    late_share: float = 0.0
    late_us: int = 0
    split_share: float = 0.0  # of writes that arrive in two parts
    bytes_per_ms: int = 100_000


class VirtualServer(asyncio.AbstractServer):
    """A listening port."""

    def __init__(
        self,
        network: "VirtualNetwork",
        process: Process,
        port: int,
        factory: ProtocolFactory,
    ) -> None:
        self._network = network
        self.process = process
        self.port = port
        self.factory = factory
        self._is_serving = False
        self._unaccepted: dict[VirtualTransport, None] = {}
        self.sockets = (_ListeningSocket(process.host, port),)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.process.loop

    def is_serving(self) -> bool:
        return self._is_serving

    async def start_serving(self) -> None:
        self._is_serving = True

    def close(self) -> None:
        """Take no more connections; those that nobody accepted yet are reset."""
        self._is_serving = False
        self._network.unbind(self)
        for transport in list(self._unaccepted):
            transport.reject()
        self._unaccepted.clear()

    async def wait_closed(self) -> None:
        return

    async def serve_forever(self) -> NoReturn:
        raise NotImplementedError

    def connected(self, transport: VirtualTransport) -> None:
        """The kernel has made a connection; the process accepts it when it has the time."""
        self._unaccepted[transport] = None

        def accept() -> None:
            if transport in self._unaccepted:
                del self._unaccepted[transport]
                transport.start(self.factory())

        self.process.enqueue(Handle(accept, (), transport.context))


class _ListeningSocket:
    """What is asked of the socket of a server."""

    __slots__ = ("_address",)

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def setsockopt(self, *_: object) -> None:
        """Buffers are those of the virtual network."""


class VirtualNetwork:
    """The hosts and the ways between them. A fault is set and taken back by its owner."""

    def __init__(self, scheduler: Scheduler, weather: Weather | None = None) -> None:
        self.scheduler = scheduler
        self.weather = weather or Weather()
        self.hosts: set[str] = set()
        self.silent_hosts: set[str] = set()  # without power
        self.cut: set[tuple[str, str]] = set()  # ways (from, to) on which bytes vanish
        self.refused: set[tuple[str, str]] = set()  # ways on which no connection can be made
        self.slow_us: dict[str, int] = {}  # a host whose bytes take that much longer
        self._servers: dict[tuple[str, int], VirtualServer] = {}
        self._transports: dict[Process, dict[VirtualTransport, None]] = {}
        self._ports = count(_FIRST_PORT)

    # ---- ways

    def passes(self, source: str, target: str) -> bool:
        """Whether bytes get from one host to another now."""
        return (source, target) not in self.cut and not (
            self.silent_hosts and (source in self.silent_hosts or target in self.silent_hosts)
        )

    def delay_us(self, source: str, target: str, size: int = 0) -> int:
        """How long some bytes take, drawn from the weather."""
        if source == target:
            return _LOOPBACK_US
        weather, chance = self.weather, self.scheduler.chance.random()
        delay_us = 20 + int(chance * weather.delay_us) + 1_000 * size // weather.bytes_per_ms
        if chance < weather.late_share:
            delay_us += int(self.scheduler.chance.random() * weather.late_us)
        if self.slow_us:
            delay_us += self.slow_us.get(source, 0) + self.slow_us.get(target, 0)
        return delay_us

    def reset(self, host: str, other: str) -> None:
        """End every connection between two hosts; both ends hear of it."""
        for transports in list(self._transports.values()):
            for transport in list(transports):
                if transport.is_between(host, other):
                    transport.reset()

    def addresses(self, host: str, port: int) -> list[tuple[Any, Any, int, str, Any]]:
        """What a name stands for. Raises gaierror."""
        if host not in self.hosts:
            raise socket.gaierror(socket.EAI_NONAME, f"{host!r}: no such host")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]

    # ---- listening

    def bind(
        self, process: Process, host: str | None, port: int, factory: ProtocolFactory
    ) -> VirtualServer:
        """Take a port of the process's host, without serving yet. OSError if another process has it."""
        self.hosts.add(process.host)
        port = port or next(self._ports)
        if (process.host, port) in self._servers:
            raise OSError(98, f"{process.host}:{port}: address already in use")
        server = VirtualServer(self, process, port, factory)
        self._servers[process.host, port] = server
        return server

    def unbind(self, server: VirtualServer) -> None:
        """Give back a port."""
        if self._servers.get((server.process.host, server.port)) is server:
            del self._servers[server.process.host, server.port]

    # ---- dialling

    def dial(
        self, process: Process, host: str, port: int, factory: ProtocolFactory
    ) -> "asyncio.Future[VirtualTransport]":
        """Connect. ConnectionRefusedError at once where nobody listens, TimeoutError after two minutes of silence."""
        self.addresses(host, port)
        self.hosts.add(process.host)
        dialled: asyncio.Future[VirtualTransport] = process.loop.create_future()
        call = _Call(self, process, host, port, factory, dialled)
        self.scheduler.after(self.delay_us(process.host, host), call.arrive)
        return dialled

    def listening(self, source: str, host: str, port: int) -> VirtualServer | None:
        """Who serves a port for this source."""
        server = self._servers.get((host, port))
        if server is None or not server.is_serving() or (source, host) in self.refused:
            return None
        return server

    def new_port(self) -> int:
        """A port for an outgoing connection."""
        return next(self._ports)

    # ---- lives

    def opened(self, transport: VirtualTransport) -> None:
        """A process has one more connection."""
        self._transports.setdefault(transport.process, {})[transport] = None

    def closed(self, transport: VirtualTransport) -> None:
        """A process has one connection less."""
        self._transports.get(transport.process, {}).pop(transport, None)

    def connections(self, process: Process) -> int:
        """How many connections a process has."""
        return len(self._transports.get(process, ()))

    def process_ended(self, process: Process, *, with_host: bool) -> None:
        """The kernel closes the connections of a process that has ended. A host that loses power tells nobody."""
        for server in [each for each in self._servers.values() if each.process is process]:
            self.unbind(server)
        for transport in list(self._transports.pop(process, ())):
            transport.process_ended(is_silent=with_host)


class _Call:
    """One attempt to connect."""

    def __init__(
        self,
        network: VirtualNetwork,
        process: Process,
        host: str,
        port: int,
        factory: ProtocolFactory,
        dialled: "asyncio.Future[VirtualTransport]",
    ) -> None:
        self._network = network
        self._process = process
        self._host = host
        self._port = port
        self._factory = factory
        self._dialled = dialled
        self._retries = iter(_SYN_RETRIES_S)

    def arrive(self) -> None:
        """The first packet reaches the other host, if it does."""
        network, process = self._network, self._process
        if process.has_ended or self._dialled.done():
            return
        here = process.host
        if not (network.passes(here, self._host) and network.passes(self._host, here)):
            self._try_again()
            return
        server = network.listening(here, self._host, self._port)
        if server is None:
            refused = ConnectionRefusedError(111, f"{self._host}:{self._port} refuses connections")
            self._answer(lambda: self._fail(refused))
            return
        ours = VirtualTransport(process, network.new_port())
        theirs = VirtualTransport(server.process, self._port)
        ours.join(theirs)
        theirs.join(ours)
        server.connected(theirs)
        self._answer(lambda: self._succeed(ours))

    def _try_again(self) -> None:
        wait_s = next(self._retries, None)
        if wait_s is None:
            self._answer(lambda: self._fail(TimeoutError(110, f"{self._host} does not answer")))
        else:
            self._network.scheduler.after(wait_s * SECOND_US, self.arrive)

    def _answer(self, act: Callable[[], None]) -> None:
        process, network = self._process, self._network

        def enqueue() -> None:
            if not process.has_ended:
                process.loop.call_soon(act)

        network.scheduler.after(network.delay_us(self._host, process.host), enqueue)

    def _fail(self, error: OSError) -> None:
        if not self._dialled.done():
            self._dialled.set_exception(error)

    def _succeed(self, transport: VirtualTransport) -> None:
        if self._dialled.done():  # who dialled has given up
            transport.abort()
        else:
            transport.start(self._factory())
            self._dialled.set_result(transport)
