"""A connection to a broker on the event loop, with any number of requests under way.

It owns its transport and the futures of the requests that wait; they are answered in the order of
sending. A caller that gives up leaves its place in the queue, and the answer is dropped when it comes.
When the connection is lost, everything that waits fails with Disconnected.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol, cast

from headrace.client.exchange import (
    Disconnected,
    Exchange,
    R,
    VersionRanges,
    api_versions_request,
    highest_common_version,
    next_api_versions_version,
    offered_versions,
)
from headrace.errors import MalformedMessage
from headrace.wire.framing import MAX_FRAME_BYTES
from headrace.wire.message import Request, Response
from headrace.wire.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    import ssl


class AsyncConnection(asyncio.Protocol):
    """A transport and the exchange on it. Made by `connect`."""

    def __init__(self, client_id: str | None, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._exchange = Exchange(client_id, max_frame_bytes)
        self._answers: deque[asyncio.Future[Response]] = deque()
        self._transport: asyncio.Transport | None = None
        self._lost: Disconnected | None = None
        self._is_given_up = False  # by us
        self._closed = asyncio.get_running_loop().create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._offered: VersionRanges | None = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self._lost is None

    @property
    def was_broken_off(self) -> bool:
        """Whether it ended without our doing."""
        return self._lost is not None and not self._is_given_up

    async def send(self, request: Request[R], version: int | None = None) -> R:
        """Sends a request and waits for its answer; without a version, in the highest both know."""
        if version is None:
            version = highest_common_version(request, await self.negotiate())
        await self._writable.wait()
        transport = self._open_transport()
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        transport.writelines(self._exchange.ask(request, version))
        self._answers.append(answer)
        return cast(R, await answer)

    async def tell(self, request: Request[R], version: int) -> None:
        """Sends a request that is not answered: Produce with acks=0."""
        await self._writable.wait()
        self._open_transport().writelines(self._exchange.tell(request, version))

    async def negotiate(self) -> VersionRanges:
        """The versions the peer offers, by API key; asked once per connection."""
        if self._offered is None:
            version: int | None = ApiVersionsRequest.VERSIONS[1]
            while version is not None:
                answer = await self.send(api_versions_request(), version)
                version = next_api_versions_version(answer, version)
            self._offered = offered_versions(answer)
        return self._offered

    async def close(self) -> None:
        """Closes and waits until nothing of the connection is left."""
        if self._transport is not None:
            self._give_up()
            self._transport.close()
            await self._closed

    def abort(self) -> None:
        """Drops the connection at once; everything that waits fails with Disconnected."""
        if self._transport is not None:
            self._give_up()
            self._transport.abort()

    def _give_up(self) -> None:
        if self._lost is None:
            self._is_given_up = True

    def _open_transport(self) -> asyncio.Transport:
        if self._lost is not None:
            raise Disconnected(str(self._lost))
        if self._transport is None or self._transport.is_closing():
            raise Disconnected("the connection is closed")
        return self._transport

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            answers = self._exchange.feed(data)
        except MalformedMessage as broken:
            self._give_up()
            self._lost = Disconnected(f"the peer does not speak the protocol: {broken}")
            if self._transport is not None:
                self._transport.abort()
            return
        for answer in answers:
            future = self._answers.popleft()
            if not future.done():
                future.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = self._lost or Disconnected(str(error or "the peer closed the connection"))
        self._writable.set()
        while self._answers:
            future = self._answers.popleft()
            if not future.done():
                future.set_exception(Disconnected(str(self._lost)))
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()


class Connect(Protocol):
    """Opens connections: `connect`, or what a test puts in its place."""

    async def __call__(self, host: str, port: int, *, client_id: str) -> AsyncConnection:
        """Raises Disconnected."""


async def connect(
    host: str,
    port: int,
    *,
    client_id: str | None = "headrace",
    ssl_context: ssl.SSLContext | None = None,
    max_frame_bytes: int = MAX_FRAME_BYTES,
) -> AsyncConnection:
    """Opens a connection. Bound it in time with `asyncio.timeout`. Raises Disconnected, also for an impossible address."""
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_connection(
            lambda: AsyncConnection(client_id, max_frame_bytes), host, port, ssl=ssl_context
        )
    except (OSError, ValueError, OverflowError) as refused:
        # An address that somebody else advertised need not be one: a host that no name can be, a port out of range.
        raise Disconnected(f"{host}:{port}: {refused}") from refused
    return connection
