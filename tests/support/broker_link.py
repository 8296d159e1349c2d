"""A broker's end of a connection without a socket: what a client sends goes in, what it would get is noted."""

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.broker.net.connection import Connection, ConnectionOwner


class NotedTransport(asyncio.Transport):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.most_pieces = 0
        self.takes_bytes = 10**9  # before the writing is paused
        self.pause_writing: Callable[[], None] = lambda: None
        self.reading = "on"
        self.end = "open"

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1234)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def writelines(self, list_of_data: Any) -> None:
        assert self.end == "open"
        self.most_pieces = max(self.most_pieces, len(list_of_data))
        self.sent += b"".join(list_of_data)
        if len(self.sent) > self.takes_bytes:
            self.pause_writing()

    def pause_reading(self) -> None:
        self.reading = "paused"

    def resume_reading(self) -> None:
        self.reading = "on"

    def close(self) -> None:
        self.end = "closed"

    def abort(self) -> None:
        self.end = "closed"


class Link:
    """A connection with its transport."""

    def __init__(self, owner: ConnectionOwner) -> None:
        self._owner = owner
        self.transport = NotedTransport()
        self.connection = Connection(owner)
        self.transport.pause_writing = self.connection.pause_writing
        self.connection.connection_made(self.transport)

    def feed(self, data: bytes) -> None:
        while data:
            area = self.connection.get_buffer(-1)
            count = min(len(area), len(data))
            area[:count] = data[:count]
            del area
            data = data[count:]
            self.connection.buffer_updated(count)

    def frames(self, *commands: bytes) -> None:
        self.feed(b"".join(len(each).to_bytes(4) + each for each in commands))
