"""Runs long work (`log.steps`) beside everything else: on the loop in short slices, codecs in a thread.

Work that is done within its first slice delays nobody. The rest goes one after the other, so that others wait for one
slice at most, however many clients ask for such work at once.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, TypeVar

from headrace.log.steps import Steps

T = TypeVar("T")

SLICE_S: Final = 0.002


class LongWork:
    """One for a broker."""

    __slots__ = ("_clock", "_one_at_a_time")

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._one_at_a_time = asyncio.Semaphore(1)

    async def run(self, steps: Steps[T]) -> T:
        """What the steps return, or raise."""
        try:
            work = self._slice(steps, None)
            async with self._one_at_a_time:
                while True:
                    if work is None:
                        await asyncio.sleep(0)
                        work = self._slice(steps, None)
                    else:
                        work = self._slice(steps, await asyncio.to_thread(work))
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


class _Done(Exception):
    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result
