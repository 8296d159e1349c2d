"""One end of a virtual connection: an asyncio transport for the process, a TCP socket for its peer.

Owns what was written and is not on its way yet, what is on its way to the peer, and what arrived and was not read yet. Bytes
arrive whole and in order, but in other pieces than they were written. Not more than a window of them is on its way or unread; what
was written beyond that waits, and the protocol is told to pause.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from headrace.testing.virtual.process_interface import Handle, Process
from headrace.testing.virtual.scheduler import MILLISECOND_US, SECOND_US

Bytes = bytes | bytearray | memoryview

_WINDOW_BYTES: Final = 256 * 1024
_READ_BYTES: Final = 256 * 1024
_HIGH_WATER_BYTES: Final = 64 * 1024
_FIRST_RESEND_US: Final = 200 * MILLISECOND_US
_LONGEST_RESEND_US: Final = 2 * SECOND_US
_GIVE_UP_US: Final = 60 * SECOND_US  # resending what nobody acknowledges

_END: Final = b""  # in a stream: the peer writes no more


class VirtualTransport(asyncio.Transport):
    """Made in pairs by the network; `start` when the process has it."""

    def __init__(self, process: Process, port: int) -> None:
        super().__init__()
        self.process = process
        self.context = contextvars.Context()
        self._network = process.network
        self._scheduler = process.scheduler
        self._address = process.host, port
        self._peer: VirtualTransport
        self._protocol: Any = None
        self._is_buffered = False
        # Towards the peer.
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._high_bytes, self._low_bytes = _HIGH_WATER_BYTES, _HIGH_WATER_BYTES // 4
        self._is_protocol_paused = False
        self._transit: deque[tuple[int, bytes]] = deque()  # (when it arrives, bytes)
        self._outstanding_bytes = 0  # on their way, or arrived and not read
        self._stalled_since_us = -1  # the way is cut
        self._resend_us = _FIRST_RESEND_US
        self._has_ended_stream = False
        # From the peer.
        self._unread: deque[bytes] = deque()
        self._is_reading_paused = False
        self._is_read_scheduled = False
        self._has_read_end = False
        # Life.
        self._is_closing = False
        self._is_lost = False  # the protocol was or will be told
        self._error: Exception | None = None
        self._is_socket_closed = False
        self._is_process_dead = False

    def join(self, peer: "VirtualTransport") -> None:
        """The kernels have connected."""
        self._peer = peer
        self._network.opened(self)

    def start(self, protocol: Any) -> None:
        """The process has the connection: on its event loop."""
        self.set_protocol(protocol)
        protocol.connection_made(self)
        if self._is_lost:  # it broke before the process had it
            error = self._error
            self._call_soon(lambda: protocol.connection_lost(error))
        self._schedule_read()

    # ---- asyncio.Transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "peername":
            return self._peer._address
        return self._address if name == "sockname" else default

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> Any:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not (self._is_reading_paused or self._is_closing)

    def pause_reading(self) -> None:
        self._is_reading_paused = True

    def resume_reading(self) -> None:
        self._is_reading_paused = False
        self._schedule_read()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        high = _HIGH_WATER_BYTES if high is None else high
        self._high_bytes, self._low_bytes = high, high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low_bytes, self._high_bytes

    def write(self, data: Bytes) -> None:
        if self._is_closing or self._is_lost or not len(data):
            return
        self._unsent.append(bytes(data))
        self._unsent_bytes += len(data)
        self._send()
        if self._unsent_bytes > self._high_bytes and not self._is_protocol_paused:
            self._is_protocol_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Bytes]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._has_ended_stream:
            self._has_ended_stream = True
            self._unsent.append(_END)
            self._send()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            if not self._unsent:
                self._lose(None)

    def abort(self) -> None:
        self._is_closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        """Tell the protocol that the connection is over, and close the socket."""
        if self._is_lost:
            return
        self._is_lost = self._is_closing = True
        self._error = error
        self._unsent.clear()
        self._unsent_bytes = 0
        protocol = self._protocol
        if protocol is not None:
            self._call_soon(lambda: protocol.connection_lost(error))
        self._close_socket()

    def _call_soon(self, callback: Callable[[], object]) -> None:
        if not self.process.has_ended:
            self.process.enqueue(Handle(callback, (), self.context))

    # ---- writing

    def _send(self) -> None:
        """Put on the way what the window has room for."""
        unsent = self._unsent
        while unsent and self._outstanding_bytes < _WINDOW_BYTES:
            data = unsent.popleft()
            self._unsent_bytes -= len(data)
            self._put_on_way(data)
        if self._is_protocol_paused and self._unsent_bytes <= self._low_bytes:
            self._is_protocol_paused = False
            protocol = self._protocol
            self._call_soon(protocol.resume_writing)
        if not unsent and self._is_closing and not self._is_lost:
            self._lose(None)

    def _put_on_way(self, data: bytes) -> None:
        network, scheduler = self._network, self._scheduler
        weather = network.weather
        self._outstanding_bytes += len(data)
        if (
            weather.split_share
            and len(data) > 1
            and scheduler.chance.random() < weather.split_share
        ):
            middle = 1 + int(scheduler.chance.random() * (len(data) - 1))
            parts = [data[:middle], data[middle:]]
        else:
            parts = [data]
        for part in parts:
            arrival_us = scheduler.now_us + network.delay_us(
                self._address[0], self._peer._address[0], len(part)
            )
            if self._transit:
                arrival_us = max(arrival_us, self._transit[-1][0])
            self._transit.append((arrival_us, part))
            if self._stalled_since_us < 0:
                scheduler.at(arrival_us, self._arrive)

    def _arrive(self) -> None:
        """What is due reaches the host of the peer, unless the way is cut."""
        transit, scheduler = self._transit, self._scheduler
        now_us = scheduler.now_us
        if not transit or self._stalled_since_us >= 0 or transit[0][0] > now_us:
            return
        if not self._network.passes(self._address[0], self._peer._address[0]):
            self._stalled_since_us, self._resend_us = now_us, _FIRST_RESEND_US
            scheduler.after(self._resend_us, self._resend)
            return
        while transit and transit[0][0] <= now_us:
            self._peer._receive(transit.popleft()[1])

    def _resend(self) -> None:
        transit, scheduler = self._transit, self._scheduler
        if not transit:
            self._stalled_since_us = -1
            return
        if self._network.passes(self._address[0], self._peer._address[0]):
            self._stalled_since_us = -1
            self._arrive()
            for arrival_us, _ in transit:
                scheduler.at(arrival_us, self._arrive)
            return
        if scheduler.now_us - self._stalled_since_us > _GIVE_UP_US:
            transit.clear()
            self._fail(TimeoutError(110, "the connection has timed out"))
            return
        self._resend_us = min(2 * self._resend_us, _LONGEST_RESEND_US)
        scheduler.after(self._resend_us, self._resend)

    # ---- reading

    def _receive(self, data: bytes) -> None:
        """Bytes of the peer reach this host."""
        self._scheduler.note(data)
        if self._is_socket_closed:
            if data:
                self._answer_with_reset()
            return
        self._unread.append(data)
        self._schedule_read()

    def _schedule_read(self) -> None:
        if (
            self._unread
            and not self._is_read_scheduled
            and not self._is_reading_paused
            and not self._is_lost
            and self._protocol is not None
        ):
            self._is_read_scheduled = True
            self._call_soon(self._read)

    def _read(self) -> None:
        """Give the protocol what is there, up to one read of a socket."""
        self._is_read_scheduled = False
        if self._is_reading_paused or self._is_closing or not self._unread:
            return
        if not self._unread[0]:
            self._unread.popleft()
            self._read_end()
            return
        if self._is_buffered:
            area = self._protocol.get_buffer(-1)
            data = self._take(len(area))
            area[: len(data)] = data
            self._protocol.buffer_updated(len(data))
        else:
            self._protocol.data_received(self._take(_READ_BYTES))
        self._schedule_read()

    def _take(self, most_bytes: int) -> bytes:
        unread = self._unread
        data = unread.popleft()
        if len(data) > most_bytes:
            unread.appendleft(data[most_bytes:])
            data = data[:most_bytes]
        elif unread and unread[0]:
            parts, size = [data], len(data)
            while unread and unread[0] and size + len(unread[0]) <= most_bytes:
                size += len(unread[0])
                parts.append(unread.popleft())
            data = b"".join(parts)
        self._peer._acknowledged(len(data))
        return data

    def _acknowledged(self, size: int) -> None:
        self._outstanding_bytes -= size
        if self._unsent and not self._is_process_dead:
            delay_us = self._network.delay_us(self._peer._address[0], self._address[0])
            self._scheduler.after(delay_us, self._go_on)

    def _go_on(self) -> None:
        if self._unsent and not self._is_process_dead:
            self._call_soon(self._send)

    def _read_end(self) -> None:
        self._has_read_end = True
        if not self._protocol.eof_received():
            self.close()

    # ---- the end

    def _close_socket(self) -> None:
        """The kernel takes over: it delivers what is on its way, and tells the peer."""
        if self._is_socket_closed:
            return
        self._is_socket_closed = True
        self._network.closed(self)
        if self._unread and self._unread[0]:
            self._answer_with_reset()  # the peer's bytes will never be read
        elif not self._has_ended_stream:
            self._put_on_way(_END)
        self._unread.clear()

    def _answer_with_reset(self) -> None:
        peer, network = self._peer, self._network
        here, there = self._address[0], peer._address[0]

        def arrive() -> None:
            if network.passes(here, there):
                peer._fail(ConnectionResetError(104, "connection reset by peer"))

        self._scheduler.after(network.delay_us(here, there), arrive)

    def _fail(self, error: OSError) -> None:
        """The connection is over for this end."""
        self._unread.clear()
        self._transit.clear()
        if self._is_socket_closed:
            return
        self._is_socket_closed = True
        self._network.closed(self)
        if not self._is_process_dead:
            self._lose(error)

    def is_between(self, host: str, other: str) -> bool:
        """Whether it joins these two hosts."""
        return {self._address[0], self._peer._address[0]} == {host, other}

    def reject(self) -> None:
        """Nobody accepts the connection."""
        self._is_socket_closed = self._is_lost = True
        self._network.closed(self)
        self._answer_with_reset()

    def reset(self) -> None:
        """Something on the way ends the connection."""
        self._fail(ConnectionResetError(104, "connection reset by peer"))

    def process_ended(self, *, is_silent: bool) -> None:
        """The process has ended. Its host's kernel closes the connection, unless the host ended, too."""
        self._is_process_dead = True
        self._unsent.clear()
        if is_silent:
            self._transit.clear()
            self._is_socket_closed = True
        else:
            self._close_socket()
