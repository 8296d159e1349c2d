"""A blocking connection to a broker: one request, one answer.

It owns its socket and is used by one thread. After an error on the way (a timeout too: the answer may
still come) it is closed and stays so.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

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
from headrace.wire.framing import FrameReader, length_prefix
from headrace.wire.message import Request, Response
from headrace.wire.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    import ssl

RECEIVE_BYTES = 256 * 1024


class Connection:
    """A socket and the exchange on it."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str | None = "headrace",
        timeout_s: float = 30.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._exchange = Exchange(client_id)
        self._frames = FrameReader()
        self._raw_frames: list[memoryview] = []
        self._offered: VersionRanges | None = None
        self._peer = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), timeout=timeout_s)
        except OSError as refused:
            raise Disconnected(f"{self._peer}: {refused}") from refused
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if ssl_context is not None:
            self._socket = ssl_context.wrap_socket(self._socket, server_hostname=host)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, request: Request[R], version: int | None = None) -> R:
        """Sends a request and waits for its answer; without a version, in the highest both know."""
        self.begin(request, version)
        return cast(R, self.finish())

    def begin(self, request: Request[R], version: int | None = None) -> None:
        """Sends a request; `finish` waits for its answer. Nothing else may be sent in between."""
        if version is None:
            version = highest_common_version(request, self.negotiate())
        self._send(b"".join(self._exchange.ask(request, version)))

    def finish(self) -> Response:
        """The answer to the request that was begun."""
        answers: list[Response] = []
        while not answers:
            answers = self._feed(self._receive())
        return answers[0]

    def tell(self, request: Request[R], version: int) -> None:
        """Sends a request that is not answered: Produce with acks=0."""
        self._send(b"".join(self._exchange.tell(request, version)))

    def negotiate(self) -> VersionRanges:
        """The versions the peer offers, by API key; asked once per connection."""
        if self._offered is None:
            version: int | None = ApiVersionsRequest.VERSIONS[1]
            while version is not None:
                answer = self.send(api_versions_request(), version)
                version = next_api_versions_version(answer, version)
            self._offered = offered_versions(answer)
        return self._offered

    def send_frame(self, payload: bytes) -> None:
        """Sends bytes as a frame, whatever they are."""
        self._send(length_prefix([payload]) + payload)

    def receive_frame(self) -> memoryview:
        """The next frame, undecoded, after `send_frame` or `tell`."""
        while not self._raw_frames:
            self._raw_frames += self._frames.feed(self._receive())
        return self._raw_frames.pop(0)

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as broken:
            self.close()
            raise Disconnected(f"{self._peer}: {broken}") from broken

    def _receive(self) -> bytes:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except OSError as broken:
            self.close()
            raise Disconnected(f"{self._peer}: {broken}") from broken
        if not data:
            self.close()
            raise Disconnected(f"{self._peer} closed the connection")
        return data

    def _feed(self, data: bytes) -> list[Response]:
        try:
            return self._exchange.feed(data)
        except MalformedMessage:
            self.close()
            raise
