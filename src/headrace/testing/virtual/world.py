"""A virtual world: one scheduler, one network and all processes that were ever started in it.

Owns the end of everything. Objects of processes are deallocated in `dispose` only, when all processes have ended, because a
coroutine that is deallocated runs its `finally` blocks. Python's garbage collector does not run before, because when it runs does
not depend on the seed.
"""

import asyncio
import gc
import sys
import warnings
from collections.abc import Callable, Coroutine
from random import Random
from types import TracebackType
from typing import Any, Self, TypeVar

from headrace.testing.virtual.network import VirtualNetwork, Weather
from headrace.testing.virtual.process import Pace, VirtualProcess
from headrace.testing.virtual.scheduler import SECOND_US, Scheduler

T = TypeVar("T")


class VirtualWorld:
    """Enter it to use it; nothing of it is left behind."""

    def __init__(self, seed: int, weather: Weather | None = None) -> None:
        self.scheduler = Scheduler(Random(seed))
        self.network = VirtualNetwork(self.scheduler, weather)
        self._processes: list[VirtualProcess] = []
        self._was_collecting = False

    def __enter__(self) -> Self:
        self._was_collecting = gc.isenabled()
        gc.disable()
        gc.freeze()  # what was there before need not be looked through when this world is disposed of
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.dispose()
        if self._was_collecting:
            gc.enable()

    def process(
        self,
        host: str,
        *,
        pace: Pace | None = None,
        after_step: Callable[[VirtualProcess], None] | None = None,
    ) -> VirtualProcess:
        """A new process on a host."""
        process = VirtualProcess(
            self.scheduler, self.network, host, pace=pace, after_step=after_step
        )
        self._processes.append(process)
        return process

    def run_for(self, seconds: float) -> None:
        """Let so much time pass."""
        scheduler = self.scheduler
        until_us = scheduler.now_us + int(seconds * SECOND_US)
        while (next_us := scheduler.next_us()) is not None and next_us <= until_us:
            scheduler.step()
        scheduler.now_us = until_us

    def run(self, host: str, program: Coroutine[Any, Any, T]) -> T:
        """Run a program in a process of its own to its end, and return what it returns."""
        process = self.process(host)
        running: asyncio.Task[T] = process.loop.create_task(program)
        while not running.done():
            if not self.scheduler.step():
                raise AssertionError("everybody waits, and nothing will happen any more")
        return running.result()

    def dispose(self) -> None:
        """End every process and let go of its objects; what they do when they are deallocated is not heard."""
        hook = sys.unraisablehook
        sys.unraisablehook = lambda _: None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for process in self._processes:
                    process.end()
                for process in self._processes:
                    process.forget()
                self._processes.clear()
                self.scheduler.clear()
                gc.collect()
        finally:
            gc.unfreeze()
            sys.unraisablehook = hook
