"""Long work beside everything else, with a clock that only the work itself moves."""

import asyncio
from threading import get_ident
from time import perf_counter
from typing import Any

import pytest

from headrace.broker.requests.long_work import SLICE_S, LongWork
from headrace.broker.workers import Threads
from headrace.errors import CorruptBatch
from headrace.log.steps import Steps
from tests.support.in_place import InPlace


class Clock:
    """Each step of the work takes a quarter of a slice."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.steps: list[str] = []

    def work(self, name: str, count: int) -> Steps[str]:
        for _ in range(count):
            self.steps.append(name)
            self.now_s += SLICE_S / 4
            yield None
        return f"{name} is done"


def test_others_are_served_after_each_slice() -> None:
    async def story() -> None:
        clock = Clock()
        long_work = LongWork(InPlace(), lambda: clock.now_s)
        task = asyncio.create_task(long_work.run(clock.work("long", 100)))
        rounds = 0
        while not task.done():
            before = len(clock.steps)
            await asyncio.sleep(0)
            assert len(clock.steps) - before <= 5
            rounds += 1
        assert task.result() == "long is done"
        assert rounds >= 20

    asyncio.run(story())


def test_long_work_goes_one_after_the_other_and_short_work_does_not_wait() -> None:
    async def story() -> None:
        clock = Clock()
        long_work = LongWork(InPlace(), lambda: clock.now_s)
        first = asyncio.create_task(long_work.run(clock.work("first", 100)))
        second = asyncio.create_task(long_work.run(clock.work("second", 100)))
        await asyncio.sleep(0)
        assert await long_work.run(clock.work("short", 2)) == "short is done"
        await first
        at_first_end = clock.steps.count("second")
        assert at_first_end <= 5
        assert await second == "second is done"

    asyncio.run(story())


def test_a_codec_works_in_a_thread_and_its_result_comes_back() -> None:
    def steps() -> Steps[Any]:
        there = yield get_ident
        return there, get_ident()

    there, here = asyncio.run(_run(steps()))
    assert there != here


def test_what_fails_fails_for_the_caller_and_lets_the_next_one_in() -> None:
    def failing() -> Steps[None]:
        yield get_ident
        raise CorruptBatch("bad")

    async def story() -> None:
        long_work = LongWork(Threads(perf_counter), perf_counter)
        for _ in range(2):
            with pytest.raises(CorruptBatch):
                await long_work.run(failing())

    asyncio.run(story())


async def _run(steps: Steps[Any]) -> Any:
    return await LongWork(Threads(perf_counter), perf_counter).run(steps)
