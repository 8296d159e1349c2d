"""An HTTP load generator: connections that send one request after the other and measure each."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Final, NamedTuple, cast

_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: chunked\r\n", re.IGNORECASE)
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"  # JSON never has it
_CLOSE_S: Final = 10


class Load(NamedTuple):
    """What was measured."""

    requests: int  # answered in time
    all_requests: int  # with those that were under way when the time was up
    seconds: float
    p99_ms: float
    failures: int

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


def end_of_answer(data: bytes) -> int:
    """Where the first answer in these bytes ends; -1 while it is not complete. Raises ValueError."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return -1
    length = _LENGTH.search(data, 0, head + 4)
    if length is not None:
        end = head + 4 + int(length[1])
        return end if len(data) >= end else -1
    if _CHUNKED.search(data, 0, head + 4) is None:
        raise ValueError("an answer with neither a length nor chunks")
    last = data.find(_LAST_CHUNK, head + 2)
    return -1 if last < 0 else last + len(_LAST_CHUNK)


class Connection(asyncio.Protocol):
    """Sends a request again as soon as it is answered. An answer without `expected` in it is a failure."""

    def __init__(self, request: bytes, expected: bytes) -> None:
        self._request = request
        self._expected = expected
        self._buffer = b""
        self._sent_at = 0.0
        self._transport: asyncio.Transport | None = None
        self.seconds: list[float] = []
        self.failures = 0
        self.is_stopping = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        end = end_of_answer(self._buffer)
        if end < 0:
            return
        self.seconds.append(time.perf_counter() - self._sent_at)
        if self._expected not in self._buffer[:end]:
            self.failures += 1
        self._buffer = self._buffer[end:]
        if self.is_stopping:
            assert self._transport is not None
            self._transport.close()
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_stopping:
            self.failures += 1
        if not self.ended.done():
            self.ended.set_result(None)

    def _send(self) -> None:
        assert self._transport is not None
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)


def request_bytes(method: str, path: str, body: bytes = b"") -> bytes:
    """A request with a JSON body."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


async def load(
    port: int, request: bytes, *, connections: int, seconds: float, expected: bytes
) -> Load:
    """Send a request again and again. An answer without `expected` in it is a failure."""
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    clients: list[Connection] = []
    for _ in range(connections):
        _, client = await loop.create_connection(
            lambda: Connection(request, expected), "127.0.0.1", port
        )
        clients.append(client)
    await asyncio.sleep(seconds)
    for client in clients:
        client.is_stopping = True
    took = time.perf_counter() - started
    done = sum(len(each.seconds) for each in clients)
    times = sorted(second for each in clients for second in each.seconds)
    _, unanswered = await asyncio.wait([each.ended for each in clients], timeout=_CLOSE_S)
    failures = sum(each.failures for each in clients) + len(unanswered)
    answered = sum(len(each.seconds) for each in clients)
    p99 = times[int(len(times) * 0.99)] if times else float("inf")
    return Load(done, answered, took, p99 * 1000, failures)
