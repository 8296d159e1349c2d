"""Runs long work (`log.steps`) while the event loop serves clients: in short slices on the event loop, codecs in a thread.

Work that is done within its first slice delays nobody. Longer work waits for other long work, so that a connection waits for one
slice at most, however many clients ask for such work at once.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from headrace.broker.workers import Workers
from headrace.log.steps import Steps

T = TypeVar("T")

SLICE_S: Final = 0.002


class LongWork:
    """One for a broker."""

    __slots__ = ("_clock", "_one_at_a_time", "_workers")

    def __init__(self, workers: Workers, clock: Callable[[], float]) -> None:
        self._workers = workers
        self._clock = clock
        self._one_at_a_time = asyncio.Semaphore(1)

    def slices(self) -> "Slices":
        """Slices for a long loop that runs on the event loop."""
        return Slices(self._clock)

    async def run(self, steps: Steps[T]) -> T:
        """Run the steps. Returns what they return; raises what they raise."""
        try:
            work = self._slice(steps, None)
            async with self._one_at_a_time:
                while True:
                    if work is None:
                        await asyncio.sleep(0)
                        work = self._slice(steps, None)
                    else:
                        work = self._slice(steps, await self._workers.run(work))
        except _Done as done:
            return done.result  # type: ignore[no-any-return]  # what the generator returns
        finally:
            steps.close()

    def _slice(self, steps: Steps[T], result: object) -> Callable[[], Any] | None:
        """Go on until the time is up (None) or something is worth a thread. Raises _Done at the end."""
        until = self._clock() + SLICE_S
        try:
            work = steps.send(result)
            while work is None and self._clock() < until:
                work = steps.send(None)
        except StopIteration as end:
            raise _Done(end.value) from None
        return work


class Slices:
    """Divides a loop over many short pieces of work: other connections are served after each slice of it."""

    __slots__ = ("_clock", "_until")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = clock() + SLICE_S

    async def pause(self) -> None:
        """Call it between two pieces. Returns at once while the slice lasts."""
        if self._clock() >= self._until:
            await asyncio.sleep(0)
            self._until = self._clock() + SLICE_S


class _Done(Exception):
    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result
