"""A session outlives a server that takes a connection and never answers it, as a lone ZooKeeper does that has just restarted.

The server here is scripted: it speaks as much of ZooKeeper's protocol as a connect needs, and ends a session as ZooKeeper would.
"""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

import pytest
from kazoo.protocol.states import KazooState

from headrace.coordination.zookeeper_connection import QuickDialer, measured_client

SESSION_S = 4.0
SESSION_ID = 0x1234
PASSWORD = b"p" * 16


@dataclass
class RestartingServer:
    """Answers the first connect, drops that connection, leaves the second connect without an answer, answers the third."""

    listener: socket.socket
    asked_for: list[int] = field(default_factory=list)  # session ids, one a connect
    granted_at: float = 0.0
    may_drop: threading.Event = field(default_factory=threading.Event)

    def play(self) -> None:
        with self._accept() as first:
            self._answer(first)
            # Kazoo's `start` takes a connection that is gone before it looked for a server that cannot be reached.
            assert self.may_drop.wait(60)
        with self._accept(), self._accept() as third:
            self._answer(third)
            while third.recv(4096):  # until the client has gone
                pass

    def _accept(self) -> socket.socket:
        connection, _ = self.listener.accept()
        connection.settimeout(60)
        length = struct.unpack(">i", _read(connection, 4))[0]
        _, _, _, session_id = struct.unpack_from(">iqiq", _read(connection, length))
        self.asked_for.append(session_id)
        return connection

    def _answer(self, connection: socket.socket) -> None:
        now = time.monotonic()
        is_over = self.granted_at > 0 and now - self.granted_at > SESSION_S
        self.granted_at = self.granted_at or now
        timeout_ms = 0 if is_over else int(SESSION_S * 1000)
        session_id = 0 if is_over else SESSION_ID
        answer = struct.pack(">iiqi16s?", 0, timeout_ms, session_id, 16, PASSWORD, False)
        connection.sendall(struct.pack(">i", len(answer)) + answer)


def _read(connection: socket.socket, size: int) -> bytes:
    return connection.recv(size, socket.MSG_WAITALL)


@contextmanager
def _listening(backlog: int) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        listener.settimeout(60)
        yield listener


def test_a_session_outlives_a_connect_without_an_answer() -> None:
    with _listening(backlog=5) as listener:
        server = RestartingServer(listener)
        thread = threading.Thread(target=server.play)
        thread.start()
        port = listener.getsockname()[1]
        client = measured_client(f"127.0.0.1:{port}", SESSION_S, lambda *_: None)
        states: list[str] = []
        confirmed_twice = threading.Event()

        def changed(state: str) -> None:
            states.append(state)
            if states[1:] and state in (KazooState.CONNECTED, KazooState.LOST):
                confirmed_twice.set()

        client.add_listener(changed)
        try:
            client.start(timeout=20)
            server.may_drop.set()
            assert confirmed_twice.wait(20)
        finally:
            server.may_drop.set()
            client.stop()
            client.close()
            thread.join(20)
    assert states[:3] == [KazooState.CONNECTED, KazooState.SUSPENDED, KazooState.CONNECTED]
    assert server.asked_for == [0, SESSION_ID, SESSION_ID]


def test_dialling_ends_in_time_for_another_attempt() -> None:
    with _listening(backlog=0) as listener, ExitStack() as waiting:
        address = listener.getsockname()
        waiting.enter_context(closing(socket.create_connection(address, timeout=5)))
        dialler = QuickDialer(SESSION_S)
        began = time.monotonic()
        # Nobody accepts and the queue of connections is full, so the kernel does not answer.
        with pytest.raises(TimeoutError):
            dialler.create_connection(address=address, timeout=SESSION_S)
        assert time.monotonic() - began < SESSION_S / 2
