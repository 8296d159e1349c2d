"""The network as a broker uses it: listening, dialling, and whether an address refuses connections. A rim module.

Every socket of a broker is opened here, so that a simulation can put another network in its place.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from headrace.client.async_connection import AsyncConnection, connect

AcceptStream: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]

_DIAL_S: Final = 0.5


class ListeningSocket(Protocol):
    """A socket that is bound to an address."""

    @property
    def port(self) -> int:
        """Chosen by the operating system if none was given."""

    async def serve(self) -> None:
        """Accept connections from now on."""

    def close(self) -> None:
        """Accept no more connections; open ones stay open."""


class Network(Protocol):
    """What a broker needs of a network."""

    async def listen(
        self,
        new_connection: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        backlog: int,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
    ) -> ListeningSocket:
        """Bind an address (all interfaces without a host). Raises OSError if it is in use. A buffer size of -1 is the operating system's."""

    async def listen_for_streams(
        self, accept: AcceptStream, host: str, port: int, *, max_line_bytes: int
    ) -> ListeningSocket:
        """The same for connections that are read as streams; serves at once."""

    async def connect(self, host: str, port: int, *, client_id: str) -> AsyncConnection:
        """A connection to another broker. Raises Disconnected."""

    async def refuses_connections(self, host: str, port: int) -> bool:
        """Whether every address of a host refuses connections to a port. Any other failure says nothing."""

    def host_name(self) -> str:
        """A name by which others can dial this machine."""


class _Server:
    """A server of the event loop."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def serve(self) -> None:
        await self._server.start_serving()

    def close(self) -> None:
        self._server.close()


class SocketNetwork:
    """TCP, by the event loop."""

    async def listen(
        self,
        new_connection: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        backlog: int,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
    ) -> ListeningSocket:
        server = await asyncio.get_running_loop().create_server(
            new_connection, host or None, port, backlog=backlog, start_serving=False
        )
        for option, size in (
            (socket.SO_SNDBUF, send_buffer_bytes),
            (socket.SO_RCVBUF, receive_buffer_bytes),
        ):
            for listening in server.sockets if size > 0 else ():
                listening.setsockopt(socket.SOL_SOCKET, option, size)  # its connections inherit it
        return _Server(server)

    async def listen_for_streams(
        self, accept: AcceptStream, host: str, port: int, *, max_line_bytes: int
    ) -> ListeningSocket:
        return _Server(await asyncio.start_server(accept, host or None, port, limit=max_line_bytes))

    async def connect(self, host: str, port: int, *, client_id: str) -> AsyncConnection:
        return await connect(host, port, client_id=client_id)

    async def refuses_connections(self, host: str, port: int) -> bool:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_DIAL_S):
                addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                for *_, address in addresses:
                    if not await _refuses(loop, str(address[0]), port):
                        return False
        except (
            OSError,
            ValueError,
            OverflowError,
        ):  # also time-outs and malformed addresses
            return False
        return bool(addresses)

    def host_name(self) -> str:
        return socket.gethostname()


async def _refuses(loop: asyncio.AbstractEventLoop, address: str, port: int) -> bool:
    # By the event loop alone, without a socket of ours, because a simulation replaces the event loop.
    try:
        transport, _ = await loop.create_connection(asyncio.Protocol, address, port)
    except ConnectionRefusedError:
        return True
    transport.abort()
    return False
