"""A small HTTP/1.1 server for pages about the broker. A rim module.

Knows nothing of the pages: a route is a function that returns an answer. Answers GET and HEAD, one request to a
connection. A page in pieces is sent chunk by chunk, and the event loop gets its turn between two of them. Whoever is
slow, many or wrong costs a connection of this server and nothing else.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Final, Protocol, Self, TypeAlias

from headrace.settings.listener import Listener

_logger = logging.getLogger(__name__)

_METHODS: Final = ("GET", "HEAD")
_LINGER_BYTES: Final = 64 * 1024
_LINGER_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A page. A body in pieces is made while it is sent; an empty piece is but a pause."""

    status: HTTPStatus
    content_type: str
    body: str | Iterator[str]


Route: TypeAlias = Callable[[], HttpAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What one peer, and all of them, may take."""

    max_connections: int = 64
    max_head_bytes: int = 8 * 1024
    head_timeout_s: float = 10.0
    answer_timeout_s: float = 30.0


class ListeningSocket(Protocol):
    """An address that is listened on."""

    @property
    def port(self) -> int:
        """Chosen by the operating system where none was given."""

    def close(self) -> None:
        """Listen no more."""


class Listen(Protocol):
    """Listens on an address for connections that are read as streams."""

    async def __call__(
        self,
        accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None],
        host: str,
        port: int,
        *,
        max_line_bytes: int,
    ) -> ListeningSocket:
        """OSError if the address is taken."""


class HttpEndpoint:
    """Listens between `start` and `stop`, or for the length of an `async with`."""

    def __init__(
        self,
        listeners: Sequence[Listener],
        routes: Mapping[str, Route],
        listen: Listen,
        limits: HttpLimits | None = None,
    ) -> None:
        self._listeners = listeners
        self._routes = routes
        self._listen = listen
        self._limits = limits or HttpLimits()
        self._servers: list[ListeningSocket] = []
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> tuple[int, ...]:
        """Listen. Returns the ports, which the operating system chose where none was given. OSError if one is taken."""
        try:
            for listener in self._listeners:
                server = await self._listen(
                    self._accept,
                    listener.host,
                    listener.port,
                    max_line_bytes=self._limits.max_head_bytes,
                )
                self._servers.append(server)
        except OSError:
            await self.stop()
            raise
        return self.ports

    @property
    def ports(self) -> tuple[int, ...]:
        """One for each listener, in their order."""
        return tuple(server.port for server in self._servers)

    async def stop(self) -> None:
        """Stop listening and cut off whoever is being answered."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    # ---- one connection

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self._limits.max_connections:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve_one(reader, writer)
        except (ConnectionError, TimeoutError):
            writer.transport.abort()
        except Exception:
            # Cut off, not ended: the peer must not take half a page for a whole one.
            _logger.exception("a page could not be made")
            writer.transport.abort()
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._limits.head_timeout_s):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            answer, request_line = _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), ""
        except asyncio.IncompleteReadError:
            return
        else:
            request_line = head.partition(b"\r\n")[0].decode("latin-1")
            answer = self._answer(request_line)
        async with asyncio.timeout(self._limits.answer_timeout_s):
            await _send(writer, answer, request_line)
            await _linger(reader, writer)

    def _answer(self, request_line: str) -> HttpAnswer:
        words = request_line.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            return _refusal(HTTPStatus.BAD_REQUEST)
        method, target, version = words
        if not version.startswith("HTTP/1."):
            return _refusal(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        route = self._routes.get(target.partition("?")[0])
        if route is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        if method not in _METHODS:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        return route()


def _refusal(status: HTTPStatus) -> HttpAnswer:
    return HttpAnswer(status, "text/plain; charset=utf-8", f"{status.phrase}\n")


async def _send(writer: asyncio.StreamWriter, answer: HttpAnswer, request_line: str) -> None:
    body = answer.body
    # An HTTP/1.0 client knows no chunks: for it the body ends with the connection.
    in_chunks = not isinstance(body, str) and request_line.endswith("HTTP/1.1")
    fields = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if isinstance(body, str):
        fields.append(f"Content-Length: {len(_encoded(body))}")
    elif in_chunks:
        fields.append("Transfer-Encoding: chunked")
    if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
        fields.append(f"Allow: {', '.join(_METHODS)}")
    writer.write("\r\n".join((*fields, "", "")).encode("latin-1"))
    if not request_line.startswith("HEAD "):
        for piece in (body,) if isinstance(body, str) else body:
            if data := _encoded(piece):
                writer.writelines((b"%x\r\n" % len(data), data, b"\r\n") if in_chunks else (data,))
                await writer.drain()
            # `drain` returns at once while there is room; others want their turn all the same.
            await asyncio.sleep(0)
        if in_chunks:
            writer.write(b"0\r\n\r\n")
    await writer.drain()


def _encoded(text: str) -> bytes:
    """Paths may hold bytes that are no text."""
    return text.encode("utf-8", "replace")


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Wait for the peer to close: bytes that nobody read would make the system throw our answer away."""
    if writer.can_write_eof():
        writer.write_eof()
    try:
        async with asyncio.timeout(_LINGER_S):
            left = _LINGER_BYTES
            while left > 0 and (data := await reader.read(left)):
                left -= len(data)
    except TimeoutError:
        pass
