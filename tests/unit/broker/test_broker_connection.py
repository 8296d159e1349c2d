"""One connection over a transport that only notes what it is told: order, back-pressure, memory, closing."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from headrace.broker.busy_poll import BusyPoll
from headrace.broker.connection import Answer, Connection, Dispatch
from headrace.broker.frame_buffer import Frame
from headrace.broker.memory_budget import MemoryBudget
from headrace.broker.spare_memory import SpareMemory
from headrace.errors import MalformedMessage


class NotedTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.most_pieces = 0
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

    def pause_reading(self) -> None:
        self.reading = "paused"

    def resume_reading(self) -> None:
        self.reading = "on"

    def close(self) -> None:
        self.end = "closed"

    def abort(self) -> None:
        self.end = "closed"


class Owner:
    """Frames are commands: `answer`, `later` (answered by `finish`), `ordered` (likewise, and the next waits), `bad`."""

    listener_name = "PLAINTEXT"
    max_frame_bytes = 10_000_000

    def __init__(self, budget_bytes: int = 1_000_000) -> None:
        self.receive_area = memoryview(bytearray(4096))
        self.busy_poll = BusyPoll(lambda turn: None, 0)
        self.spares = SpareMemory()
        self.budget = MemoryBudget(budget_bytes)
        self.handled: list[bytes] = []
        self.pieces = 1
        self.dispatch: Dispatch = self._dispatch
        self._later: list[asyncio.Future[Answer]] = []

    def _dispatch(
        self, connection: Connection, frame: Frame
    ) -> "Answer | asyncio.Future[Answer] | Coroutine[Any, Any, Answer]":
        command = bytes(frame[:6]).strip()
        self.handled.append(command)
        if command == b"bad":
            raise MalformedMessage("bad")
        if command in (b"later", b"order"):
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            self._later.append(future)
            return future if command == b"later" else self._wait(future)
        return [command] * self.pieces

    async def _wait(self, future: "asyncio.Future[Answer]") -> Answer:
        return await future

    def finish(self, answer: bytes) -> None:
        self._later.pop(0).set_result([answer])

    def opened(self, connection: Connection) -> bool:
        return True

    def closed(self, connection: Connection) -> None:
        pass

    def start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work)

    def now(self) -> float:
        return 0.0


class Link:
    """A connection with its transport."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.transport = NotedTransport()
        self.connection = Connection(owner)
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


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_answers_before_a_broken_request_are_sent_and_nothing_behind_it_is_handled() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(b"one", b"two", b"bad", b"never")
        assert link.transport.sent == b"onetwo"
        assert link.transport.end == "closed"
        assert owner.handled == [b"one", b"two", b"bad"]
        link.connection.connection_lost(None)
        assert owner.budget.used_bytes == 0

    run(story())


def test_a_broken_request_behind_one_that_waits_closes_when_its_turn_comes() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(b"order", b"bad", b"never")
        await asyncio.sleep(0)
        assert link.transport.end == "open"
        owner.finish(b"answer")
        for _ in range(5):
            await asyncio.sleep(0)
        assert link.transport.end == "closed"
        assert link.transport.sent == b"answer"
        assert owner.handled == [b"order", b"bad"]

    run(story())


def test_answers_leave_in_the_order_of_the_requests() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(b"later", b"two", b"later", b"four")
        assert link.transport.sent == b""
        assert len(owner.handled) == 4
        owner.finish(b"first")
        await asyncio.sleep(0)
        assert link.transport.sent == b"firsttwo"
        owner.finish(b"third")
        await asyncio.sleep(0)
        assert link.transport.sent == b"firsttwothirdfour"
        assert owner.budget.used_bytes == 0

    run(story())


def test_a_peer_that_takes_no_answers_is_not_read_for_ever() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.connection.pause_writing()
        link.frames(*[b"answer"] * 100)
        assert owner.handled == []
        assert link.transport.reading == "paused"
        assert link.connection.is_idle
        link.connection.resume_writing()
        assert len(owner.handled) == 100
        assert link.transport.reading == "on"
        assert owner.budget.used_bytes == 0

    run(story())


@pytest.mark.parametrize("is_first_silent", [False, True])
def test_two_halves_that_fill_the_memory_are_finished_one_after_the_other(
    is_first_silent: bool,
) -> None:
    async def story() -> None:
        owner = Owner(budget_bytes=100_000)
        first, second = Link(owner), Link(owner)
        frame = (90_000).to_bytes(4) + bytes(90_000)
        first.feed(frame[:80_000])
        second.feed(frame[:80_000])
        assert owner.budget.is_exhausted
        assert owner.budget.favoured is second.connection
        first.feed(frame[80_000:80_001])
        assert first.transport.reading == "paused"
        if is_first_silent:
            second.connection.connection_lost(None)
        else:
            second.feed(frame[80_000:])
        assert first.transport.reading == "on"
        first.feed(frame[80_001:])
        assert owner.budget.used_bytes == 0
        assert owner.budget.favoured is None

    run(story())


def test_a_queue_that_was_full_goes_on_when_memory_is_free_again() -> None:
    async def story() -> None:
        owner = Owner(budget_bytes=50_000)
        other, link = Link(owner), Link(owner)
        link.frames(b"order", *[b"later" + b" " * 100] * 70)
        await asyncio.sleep(0)
        assert link.transport.reading == "paused"
        other.feed((90_000).to_bytes(4) + bytes(80_000))
        assert owner.budget.is_exhausted
        for _ in range(71):
            owner.finish(b"x")
            for _ in range(4):
                await asyncio.sleep(0)
        other.connection.connection_lost(None)
        assert link.transport.reading == "on"
        assert owner.budget.used_bytes == 0

    run(story())


def test_an_answer_in_very_many_pieces_is_joined_before_it_is_sent() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(*[b"answer"] * 60)
        owner.pieces = 5000
        link.frames(*[b"answer"] * 2)
        assert link.transport.sent == b"answer" * (60 + 2 * 5000)
        assert link.transport.most_pieces == 60

    run(story())
