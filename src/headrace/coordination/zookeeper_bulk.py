"""Thousands of nodes read from ZooKeeper at once, on a connection of their own.

kazoo asks for one node at a time, with a thread, a lock and two system calls for each answer: a second for a thousand nodes on a
busy broker, just when everybody waits for a new controller. A server of version 3.6 or later answers for a thousand in
one message (multiRead), which kazoo does not know of. Blocking. Before the questions stands a sync: this server may be
another than the one that took our last write.
"""

import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headrace.errors import HeadraceError

_GET_DATA: Final = 4
_SYNC: Final = 9
_MULTI_READ: Final = 22
_CLOSE: Final = -11
_OF_ERROR: Final = -1
_NO_NODE: Final = -101

_LENGTH: Final = struct.Struct(">i")
# Version of the protocol, last transaction seen, session timeout, session id, password, read-only.
_CONNECT: Final = struct.Struct(">iqiqi16s?")
_CONNECTED: Final = struct.Struct(">iiq")  # version, session timeout, session id
_ASK: Final = struct.Struct(">ii")  # number, operation
_ANSWER: Final = struct.Struct(">iqi")  # number, transaction, error
_PART: Final = struct.Struct(">i?i")  # of many: operation, whether this is the end, error
# Created and changed by transaction, at; version, of children, of rights; owner, length, children, changed by transaction.
_STAT: Final = struct.Struct(">qqqqiiiqiiq")

_SESSION_TIMEOUT_MS: Final = 10_000
_RECEIVE_BYTES: Final = 1 << 18
_NODES_AT_A_TIME: Final = 1_000


class BulkReadFailed(HeadraceError):
    """No server answers, or not in a way that makes sense."""


class FoundNode(NamedTuple):
    """A node with what its stat tells."""

    data: bytes
    version: int
    created_txn: int
    child_count: int


def read_nodes(
    hosts: Sequence[tuple[str, int]], chroot: str, paths: Sequence[str], *, timeout_s: float
) -> dict[str, FoundNode]:
    """Those of the nodes that exist. Raises BulkReadFailed."""
    refusals = []
    for host, port in hosts:
        try:
            with socket.create_connection((host, int(port)), timeout_s) as connection:
                return _Reading(connection, chroot).read(paths)
        except (OSError, ValueError, struct.error, BulkReadFailed) as error:
            refusals.append(f"{host}:{port}: {error}")
    raise BulkReadFailed("; ".join(refusals))


class _Reading:
    """One short session."""

    def __init__(self, connection: socket.socket, chroot: str) -> None:
        self._connection = connection
        self._chroot = chroot
        self._frames = self._received()

    def read(self, paths: Sequence[str]) -> dict[str, FoundNode]:
        hello = _CONNECT.pack(0, 0, _SESSION_TIMEOUT_MS, 0, 16, bytes(16), False)
        self._connection.sendall(_framed(hello))
        _, _, session_id = _CONNECTED.unpack_from(self._next_frame())
        if session_id == 0:
            raise BulkReadFailed("the server gives no session")
        self._ask(_SYNC, self._path("/"))
        self._answer()
        found: dict[str, FoundNode] = {}
        for start in range(0, len(paths), _NODES_AT_A_TIME):
            some = paths[start : start + _NODES_AT_A_TIME]
            parts = [_PART.pack(_GET_DATA, False, -1) + self._path(path) + b"\0" for path in some]
            self._ask(_MULTI_READ, b"".join(parts) + _PART.pack(-1, True, -1))
            answers = zip(some, _nodes(self._answer()), strict=True)
            found.update((path, node) for path, node in answers if node is not None)
        self._ask(_CLOSE, b"")
        return found

    def _ask(self, operation: int, body: bytes) -> None:
        self._connection.sendall(_framed(_ASK.pack(1, operation) + body))

    def _answer(self) -> bytes:
        frame = self._next_frame()
        _, _, error = _ANSWER.unpack_from(frame)
        if error:
            raise BulkReadFailed(f"the server answers with error {error}")
        return frame[_ANSWER.size :]

    def _path(self, path: str) -> bytes:
        whole = self._chroot + path if path != "/" else self._chroot or "/"
        return _framed(whole.encode())

    def _next_frame(self) -> bytes:
        frame = next(self._frames, None)
        if frame is None:
            raise BulkReadFailed("the server has hung up")
        return frame

    def _received(self) -> Iterator[bytes]:
        buffer = bytearray()
        while received := self._connection.recv(_RECEIVE_BYTES):
            buffer += received
            start = 0
            while len(buffer) - start >= _LENGTH.size:
                (size,) = _LENGTH.unpack_from(buffer, start)
                end = start + _LENGTH.size + size
                if len(buffer) < end:
                    break
                yield bytes(buffer[start + _LENGTH.size : end])
                start = end
            del buffer[:start]


def _framed(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _nodes(answer: bytes) -> Iterator[FoundNode | None]:
    """The parts of an answer to many questions; None where there is no such node."""
    position = 0
    while True:
        operation, is_end, _ = _PART.unpack_from(answer, position)
        position += _PART.size
        if is_end:
            return
        if operation == _OF_ERROR:
            (error,) = _LENGTH.unpack_from(answer, position)
            position += _LENGTH.size
            if error != _NO_NODE:  # a node that cannot be read must not pass for none
                raise BulkReadFailed(f"the server answers with error {error}")
            yield None
            continue
        (size,) = _LENGTH.unpack_from(answer, position)
        start = position + _LENGTH.size
        end = start + max(size, 0)  # -1 is a node without data
        stat = _STAT.unpack_from(answer, end)
        yield FoundNode(answer[start:end], stat[4], stat[0], stat[9])
        position = end + _STAT.size
