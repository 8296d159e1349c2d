"""A client that does almost nothing: it sends ready frames over sockets and counts the answers.

Everything is one thread. `pump` keeps a window of requests in flight on each connection and is bounded by time;
`pump_bytes` sends a given number of large requests on one connection; `call_one_by_one` waits for every answer before the
next request and keeps the times. Refused requests end the run.
"""

import select
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct

from bench.beside_kafka.wire_frames import ProduceFrame

TIMEOUT_S = 60.0
LEADER_S = 30.0
RECEIVE_BYTES = 256 * 1024
_LENGTH = Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pumped:
    """What went through."""

    requests: int
    seconds: float


@contextmanager
def dialled(port: int, count: int) -> Iterator[list[socket.socket]]:
    """That many connections, closed at the end."""
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            opened = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sockets.append(opened)
        yield sockets
    finally:
        for opened in sockets:
            opened.close()


def receive_frame(opened: socket.socket) -> bytes:
    """One whole frame with its length, when no other can follow it."""
    data = opened.recv(RECEIVE_BYTES)
    while len(data) < 4 or len(data) < 4 + _LENGTH.unpack_from(data)[0]:
        more = opened.recv(RECEIVE_BYTES)
        if not more:
            raise ConnectionError("the server closed the connection")
        data += more
    return data


def _answer_bytes(opened: socket.socket, request: ProduceFrame) -> int:
    """Send one request; how long the answer is. Answers to equal requests are equally long.

    A broker may tell of a new leader a moment before it is one, so the first request has a few chances.
    """
    deadline = time.monotonic() + LEADER_S
    while True:
        opened.sendall(request.frame)
        answer = receive_frame(opened)
        if not request.is_refused(answer) or time.monotonic() > deadline:
            request.check(answer)
            return len(answer)
        time.sleep(0.02)


class _Answers:
    """Counts the equally long answers in a stream."""

    __slots__ = ("_held", "_length", "_request")

    def __init__(self, request: ProduceFrame, length: int) -> None:
        self._request = request
        self._length = length
        self._held = b""

    def feed(self, data: bytes) -> int:
        if not data:
            raise ConnectionError("the server closed the connection")
        if self._held:
            data = self._held + data
        count, rest = divmod(len(data), self._length)
        for index in range(count):
            self._request.check(data, index * self._length)
        self._held = data[len(data) - rest :] if rest else b""
        return count


def pump(port: int, requests: Sequence[ProduceFrame], *, window: int, seconds: float) -> Pumped:
    """One connection for each request, which is sent again and again, `window` of them in flight, for that long."""
    with dialled(port, len(requests)) as sockets, select.epoll() as epoll:
        answers: dict[int, _Answers] = {}
        by_number = {opened.fileno(): opened for opened in sockets}
        frames = {}
        for opened, request in zip(sockets, requests, strict=True):
            number = opened.fileno()
            answers[number] = _Answers(request, _answer_bytes(opened, request))
            frames[number] = request.frame
            epoll.register(number, select.EPOLLIN)
        began = time.perf_counter()
        for number, opened in by_number.items():
            opened.sendall(frames[number] * window)
        done, deadline = 0, began + seconds
        while time.perf_counter() < deadline:
            for number, _ in epoll.poll(TIMEOUT_S):
                opened = by_number[number]
                count = answers[number].feed(opened.recv(RECEIVE_BYTES))
                if count:
                    opened.sendall(frames[number] * count)
                    done += count
        return Pumped(requests=done, seconds=time.perf_counter() - began)


def pump_bytes(port: int, request: ProduceFrame, *, window: int, count: int) -> Pumped:
    """Send one large request `count` times on one connection, `window` of them in flight."""
    with dialled(port, 1) as (opened,):
        answers = _Answers(request, _answer_bytes(opened, request))
        began = time.perf_counter()
        in_flight = 0
        for _ in range(count):
            opened.sendall(request.frame)
            in_flight += 1
            while in_flight >= window:
                in_flight -= answers.feed(opened.recv(RECEIVE_BYTES))
        while in_flight:
            in_flight -= answers.feed(opened.recv(RECEIVE_BYTES))
        return Pumped(requests=count, seconds=time.perf_counter() - began)


def call_one_by_one(port: int, request: ProduceFrame, *, seconds: float) -> list[float]:
    """Send, wait for the answer, send again: the time of each, in seconds."""
    times: list[float] = []
    clock = time.perf_counter
    with dialled(port, 1) as (opened,):
        answer_bytes = _answer_bytes(opened, request)
        deadline = clock() + seconds
        began = clock()
        while began < deadline:
            opened.sendall(request.frame)
            answer = opened.recv(RECEIVE_BYTES)
            if len(answer) < answer_bytes:
                answer += receive_frame(opened)
            ended = clock()
            request.check(answer)
            times.append(ended - began)
            began = ended
    return times
