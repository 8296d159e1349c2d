"""One connection over a transport that only notes what it is told: order, back-pressure, memory, closing."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from headrace.broker.net.buffer_pool import BufferPool
from headrace.broker.net.busy_poll import BusyPoll
from headrace.broker.net.connection import Answer, AnyAnswer, Connection, Dispatch
from headrace.broker.net.frame_buffer import Frame
from headrace.broker.net.memory_budget import MemoryBudget
from headrace.broker.net.read_budget import ReadBudget
from headrace.errors import MalformedMessage
from headrace.wire.codec import Piece
from tests.support.broker_link import Link

LARGE = bytes(300_000)


class Later:
    """An answer that is finished by a test."""

    def __init__(self) -> None:
        self._answer: bytes | None = None
        self._callback: Callable[[], None] = lambda: None

    def finish(self, answer: bytes) -> None:
        self._answer = answer
        self._callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def answer(self) -> Answer:
        if self._answer == b"fails":
            raise AssertionError("an answer that cannot be made")
        return None if self._answer is None else [self._answer]

    async def awaited(self) -> Answer:
        finished = asyncio.Event()
        self.when_done(finished.set)
        await finished.wait()
        return self.answer()


class Owner:
    """Frames are commands: `answer`, `later` (answered by `finish`), `ordered` (likewise, and the next waits), `bad`,
    `long` (a second goes by), `large` (answered with 300,000 bytes).

    Two of the command `pair` are answered together.
    """

    listener_name = "PLAINTEXT"
    max_frame_bytes = 10_000_000

    def __init__(self, budget_bytes: int = 1_000_000) -> None:
        self.receive_area = memoryview(bytearray(4096))
        self.busy_poll = BusyPoll(lambda turn: None, 0, clock=lambda: 0.0, cpu_clock=lambda: 0.0)
        self.resumes: list[Callable[[], None]] = []
        self.clock_s = 0.0
        self.read_budget = ReadBudget(self.resumes.append, lambda: self.clock_s)
        self.buffer_pool = BufferPool()
        self.budget = MemoryBudget(budget_bytes)
        self.handled: list[bytes] = []
        self.pieces = 1
        self.large_answers = 0
        self.dispatch: Dispatch = Commands(self)
        self.is_inter_broker = True
        self._later: list[Later] = []

    def handle(self, frame: Frame) -> AnyAnswer:
        command = bytes(frame[:6]).strip()
        self.handled.append(command)
        if command == b"long":
            self.clock_s += 1
        if command == b"bad":
            raise MalformedMessage("bad")
        if command == b"pair":
            raise AssertionError("not one by one")
        if command in (b"later", b"order"):
            later = Later()
            self._later.append(later)
            return later if command == b"later" else later.awaited()
        if command == b"large":
            self.large_answers += 1
            return [LARGE]
        return [command] * self.pieces

    def finish(self, answer: bytes) -> None:
        self._later.pop(0).finish(answer)

    def next_connection_id(self) -> int:
        return 1

    def opened(self, connection: Connection) -> bool:
        return True

    def closed(self, connection: Connection) -> None:
        pass

    def start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work)

    def now(self) -> float:
        return 0.0


class Commands:
    """What an owner's connections are answered with."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def __call__(self, connection: Connection, frames: Sequence[Frame]) -> Sequence[AnyAnswer]:
        pair = [bytes(frame) for frame in frames][:2]
        if pair != [b"pair"] * 2:
            return [self._owner.handle(frames[0])]
        self._owner.handled += pair
        return [[b"left"], [b"right"]]


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
        assert link.connection.waiting_requests == 2
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
        assert link.connection.waiting_answers == 2
        assert len(owner.handled) == 4
        owner.finish(b"first")
        await asyncio.sleep(0)
        assert link.transport.sent == b"firsttwo"
        owner.finish(b"third")
        await asyncio.sleep(0)
        assert link.transport.sent == b"firsttwothirdfour"
        assert owner.budget.used_bytes == 0

    run(story())


def test_answers_that_are_done_together_leave_in_one_write() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(b"later", b"later", b"later")
        for answer in (b"one", b"two", b"six"):
            owner.finish(answer)
        assert link.transport.sent == b"", "whoever finishes them is in the middle of something"
        await asyncio.sleep(0)
        assert link.transport.sent == b"onetwosix"
        assert link.transport.most_pieces == 3

    run(story())


def test_an_answer_that_cannot_be_made_closes_its_connection_only() -> None:
    async def story() -> None:
        owner = Owner()
        link, other = Link(owner), Link(owner)
        link.frames(b"later")
        other.frames(b"later")
        owner.finish(b"fails")
        owner.finish(b"good")
        await asyncio.sleep(0)
        assert (link.transport.end, link.transport.sent) == ("closed", b"")
        assert (other.transport.end, other.transport.sent) == ("open", b"good")

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


def test_views_of_files_are_not_touched_when_many_pieces_are_merged() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        views: list[Piece] = [memoryview(b"a"), memoryview(b"b")]
        link.connection._send([*[b"x"] * 2000, *views, *[b"y"] * 2000])
        assert link.transport.sent == b"x" * 2000 + b"ab" + b"y" * 2000
        assert link.transport.most_pieces == 4

    run(story())


def test_small_pieces_are_joined_where_they_are_very_many() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(*[b"answer"] * 60)
        owner.pieces = 5000
        link.frames(*[b"answer"] * 2)
        assert link.transport.sent == b"answer" * (60 + 2 * 5000)
        assert link.transport.most_pieces == 60

    run(story())


def test_no_more_answers_are_made_than_the_peer_takes() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.transport.takes_bytes = 2_000_000
        link.frames(*[b"large"] * 60)
        assert owner.large_answers * len(LARGE) < 4_000_000
        link.transport.takes_bytes = 10**9
        link.connection.resume_writing()
        assert owner.large_answers == 60
        assert len(link.transport.sent) == 60 * len(LARGE)
        assert owner.budget.used_bytes == 0

    run(story())


def test_no_more_answers_are_made_than_may_wait_behind_an_earlier_request() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(b"later", *[b"large"] * 60)
        assert owner.large_answers * len(LARGE) < 2_000_000
        owner.finish(b"first")
        await asyncio.sleep(0)
        assert link.transport.sent == b"first" + LARGE * 60
        assert owner.budget.used_bytes == 0

    run(story())


def test_records_among_very_many_pieces_are_not_copied() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        owner.pieces = 5000
        link.frames(b"small", b"large", b"small")
        assert link.transport.most_pieces == 3

    run(story())


def test_many_requests_that_take_long_let_others_in_between() -> None:
    async def story() -> None:
        owner = Owner()
        link, other = Link(owner), Link(owner)
        link.frames(*[b"long"] * 40)
        handled_at_first = len(owner.handled)
        assert handled_at_first < 5
        other.frames(b"answer")
        assert other.transport.sent == b"answer"
        for _ in range(100):
            for resume in owner.resumes[:]:
                owner.resumes.remove(resume)
                resume()
        assert link.transport.sent == b"long" * 40
        assert owner.budget.used_bytes == 0

    run(story())


def test_requests_that_are_answered_together_keep_their_places_among_the_others() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(b"one", b"pair", b"pair", b"later", b"pair", b"pair", b"six")
        assert link.transport.sent == b"oneleftright"
        owner.finish(b"four")
        await asyncio.sleep(0)
        assert link.transport.sent == b"oneleftrightfourleftrightsix"
        assert owner.budget.used_bytes == 0

    run(story())


@pytest.mark.parametrize("is_larger_than_the_area", [False, True])
def test_who_was_read_from_for_long_lets_others_in_before_it_is_read_from_again(
    is_larger_than_the_area: bool,
) -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        size = 3 * 4096 if is_larger_than_the_area else 4096
        link.frames(b"long".ljust(size - 4))
        assert link.transport.sent == b"long"
        assert link.transport.reading == "paused"
        (resume,) = owner.resumes
        resume()
        assert link.transport.reading == "on"

    run(story())


def test_who_sends_little_is_read_from_until_there_is_no_more() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(b"long")
        link.frames(b"long")
        assert link.transport.reading == "on"
        assert not owner.resumes

    run(story())


def test_who_is_gone_before_it_is_read_from_again_stays_so() -> None:
    async def story() -> None:
        owner = Owner()
        link = Link(owner)
        link.frames(b"long".ljust(4092))
        link.connection.connection_lost(None)
        (resume,) = owner.resumes
        resume()
        assert link.transport.reading == "paused"

    run(story())
