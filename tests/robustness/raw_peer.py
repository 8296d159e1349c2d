"""A peer that sends whatever bytes it likes, over a plain socket."""

import socket
import time
from contextlib import closing

from headrace.wire.framing import FrameReader
from tests.robustness.attack import ping

ANSWER_S = 30.0


def dial(port: int, *, source: str = "127.0.0.1", receive_bytes: int = 0) -> socket.socket:
    """Connect from an address of the loopback net; `receive_bytes` makes the receiving side small."""
    peer = socket.socket()
    peer.settimeout(ANSWER_S)
    if receive_bytes:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    peer.bind((source, 0))
    peer.connect(("127.0.0.1", port))
    return peer


def is_served(peer: socket.socket) -> bool:
    """Does the broker answer here, or has it closed the connection?"""
    try:
        peer.sendall(ping(1))
        return len(peer.recv(65536)) > 0
    except OSError:
        return False


def is_closed(peer: socket.socket, *, within_s: float = ANSWER_S) -> bool:
    """Whether the broker closes the connection in that time; what it still says is read."""
    deadline = time.monotonic() + within_s
    try:
        while (left := deadline - time.monotonic()) > 0:
            peer.settimeout(left)
            if not peer.recv(65536):
                return True
    except TimeoutError:
        return False
    except OSError:
        return True
    return False


def receive_frames(peer: socket.socket, count: int) -> list[memoryview]:
    """That many answers."""
    frames: list[memoryview] = []
    reader = FrameReader()
    while len(frames) < count:
        data = peer.recv(1024 * 1024)
        assert data, f"closed after {len(frames)} of {count} answers"
        frames += reader.feed(data)
    return frames


def can_connect(port: int, *, source: str = "127.0.0.1") -> bool:
    """Is somebody who connects now, from this address, served?"""
    with closing(dial(port, source=source)) as peer:
        return is_served(peer)
