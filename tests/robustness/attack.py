"""Sends inputs to a broker over many connections, in batches, and judges what became of each.

A batch ends with an ApiVersions request: when that is answered, so is everything before it, or it never will be. When the
broker closes the connection, the first input without an answer is to blame and those behind it are sent again: an input
counts once it was dealt with, not when it was sent. A well-formed input that seems to have cost the connection is tried
again alone, because a reset may swallow the answers before it.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from headrace.errors import HeadraceError, MalformedMessage
from headrace.wire.api_keys import ApiKey, response_class
from headrace.wire.codec import decode
from headrace.wire.framing import FrameReader
from headrace.wire.headers import (
    RequestHeader,
    decode_correlation_id,
    encode_request_header,
    response_body_offset,
)
from tests.robustness.fuzz_inputs import Input, Kind, with_correlation_id, with_length

BATCH = 40
LONGEST_WAIT_S = 0.3  # then the sender of a request that may wait goes away
PATIENCE_S = 30.0
READ_BYTES = 256 * 1024
DESYNC_WAIT_S = 0.01


class Fate(Enum):
    ANSWERED = "answered"
    CLOSED = "closed"
    SILENT = "silent"
    LEFT_WAITING = "left waiting"


@dataclass
class Toll:
    """What became of the inputs."""

    fates: Counter[tuple[Kind, Fate]] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)

    @property
    def judged(self) -> int:
        return self.fates.total()

    def of(self, fate: Fate) -> int:
        return sum(count for (_, found), count in self.fates.items() if found is fate)


class Attack:
    """One run over `inputs` from a number of connections at a time."""

    def __init__(self, port: int, inputs: Iterator[Input], *, connections: int) -> None:
        self._port = port
        self._inputs = inputs
        self._connections = connections
        self.toll = Toll()

    async def run(self) -> Toll:
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._connections):
                tasks.create_task(self._one_after_the_other(number))
        return self.toll

    async def _one_after_the_other(self, number: int) -> None:
        again: deque[Input] = deque()
        peer = Peer(self._port, source=f"127.0.0.{number + 2}")
        while batch := self._next_batch(again):
            if batch[0].kind is Kind.DESYNC:
                await self._lie(peer, batch[0])
            else:
                await self._send_batch(peer, batch, again)
        peer.close()

    def _next_batch(self, again: deque[Input]) -> list[Input]:
        batch: list[Input] = []
        while len(batch) < BATCH:
            each = again.popleft() if again else next(self._inputs, None)
            if each is None:
                break
            if each.kind is Kind.DESYNC and batch:
                again.appendleft(each)
                break
            batch.append(each)
            if each.kind is not Kind.WELL_FORMED:
                break  # it may well cost the connection, and what came behind it would have to be sent again
        return batch

    async def _lie(self, peer: "Peer", desync: Input) -> None:
        await peer.send(desync.frame)
        closed = await peer.wait_for_close(DESYNC_WAIT_S)
        self.toll.fates[desync.kind, Fate.CLOSED if closed else Fate.SILENT] += 1
        peer.close()

    async def _send_batch(self, peer: "Peer", batch: list[Input], again: deque[Input]) -> None:
        answers, end = await peer.exchange(batch)
        last = max(answers, default=-1)
        judged = batch if end is Fate.ANSWERED else batch[: last + 2]
        for position, each in enumerate(judged):
            if position in answers:
                self._check(each, answers[position])
                fate = Fate.ANSWERED
            else:
                fate = Fate.SILENT if position < last or end is Fate.ANSWERED else end
            if fate is not Fate.ANSWERED and each.must_be_answered:
                fate = await self._ask_again_alone(each, fate)
            self.toll.fates[each.kind, fate] += 1
        again.extend(batch[len(judged) :])

    async def _ask_again_alone(self, each: Input, fate: Fate) -> Fate:
        alone = Peer(self._port, source="127.0.0.1")
        answers, end = await alone.exchange([each])
        alone.close()
        if 0 in answers:
            self._check(each, answers[0])
            return Fate.ANSWERED
        if end is Fate.LEFT_WAITING and each.may_wait:
            return end
        self.toll.complaints.append(f"{describe(each)}: {end.value}")
        return end

    def _check(self, each: Input, answer: memoryview) -> None:
        if each.kind is not Kind.WELL_FORMED:
            return
        offset = response_body_offset(answer, each.key, each.version)
        try:
            decode(response_class(each.key), each.version, answer, offset)
        except MalformedMessage as error:
            self.toll.complaints.append(f"{describe(each)}: its answer is malformed: {error}")


class Peer:
    """A connection that is opened again when it is needed after a close."""

    def __init__(self, port: int, *, source: str) -> None:
        self._port = port
        self._source = source
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._frames = FrameReader()
        self._next_id = 1

    async def send(self, data: bytes) -> asyncio.StreamReader:
        if self._streams is None:
            self._frames = FrameReader()
            self._streams = await asyncio.open_connection(
                "127.0.0.1", self._port, local_addr=(self._source, 0), limit=READ_BYTES
            )
        reader, writer = self._streams
        writer.write(data)
        return reader

    async def exchange(self, batch: list[Input]) -> tuple[dict[int, memoryview], Fate]:
        """Answers by position, and whether all is answered, the connection closed, or something waits."""
        first_id, self._next_id = self._next_id, self._next_id + len(batch) + 1
        frames = [
            with_correlation_id(each.frame, first_id + position)
            for position, each in enumerate(batch)
        ]
        reader = await self.send(b"".join(frames) + ping(first_id + len(batch)))
        patience_s = LONGEST_WAIT_S if any(each.may_wait for each in batch) else PATIENCE_S
        answers: dict[int, memoryview] = {}
        try:
            while len(batch) not in answers:
                data = await asyncio.wait_for(reader.read(READ_BYTES), patience_s)
                if not data:
                    raise ConnectionResetError
                for frame in self._frames.feed(data):
                    answers[decode_correlation_id(frame) - first_id] = frame
        except TimeoutError:
            self.close()
            return answers, Fate.LEFT_WAITING
        except (OSError, HeadraceError):
            self.close()
            return answers, Fate.CLOSED
        del answers[len(batch)]
        return answers, Fate.ANSWERED

    async def wait_for_close(self, seconds: float) -> bool:
        assert self._streams is not None
        reader, _ = self._streams
        try:
            async with asyncio.timeout(seconds):
                while await reader.read(READ_BYTES):
                    pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


def ping(correlation_id: int) -> bytes:
    """An ApiVersions request."""
    return with_length(
        encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 0, correlation_id, "ping"))
    )


def describe(each: Input) -> str:
    name = ApiKey(each.key).title if each.key in set(ApiKey) else f"API {each.key}"
    return f"input {each.number} ({each.kind.value} {name} v{each.version})"
