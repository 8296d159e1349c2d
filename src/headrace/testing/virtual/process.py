"""A virtual process: one event loop and its worker threads, on a host of the virtual network.

Owns the queue of callbacks that are ready, and whether the process runs, is paused (SIGSTOP) or has ended (SIGKILL). One step runs
one callback and takes some of the process's own time, so that processes interleave in an order that comes from the seed.
Callbacks of one event loop run in the order of their scheduling, which asyncio promises. A process that has ended runs
nothing any more: whoever gave it files, connections or a session makes them refuse (`on_end`).
"""

import asyncio
import contextvars
import sys
from asyncio.events import _set_running_loop
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

from headrace.testing.virtual.event_loop import VirtualEventLoop
from headrace.testing.virtual.network import VirtualNetwork
from headrace.testing.virtual.process_interface import Handle
from headrace.testing.virtual.scheduler import Action, Scheduler

_THREAD_US: Final = (20, 400)  # until a worker thread has begun, and until its result is noticed


_MOST_WAITS_IN_FINALLY: Final = 50
_START_US: Final = 1_800_000_000_000_000  # wall clocks begin in 2027


class ProcessState(Enum):
    """Whether the callbacks of a process run."""

    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"


@dataclass(slots=True)
class Pace:
    """How long the steps of a process take. A stall is one long step: a collection of garbage, a busy machine."""

    step_us: int = 30
    stall_share: float = 0.0
    stall_us: int = 0
    thread_us: int = 0  # on top, for each job in a worker thread: a slow disk
    timer_late_us: int = 300  # a timer may ring that much after its time


class VirtualProcess:
    """One process. Its parts see nothing but `loop`, which is an `asyncio` event loop."""

    def __init__(
        self,
        scheduler: Scheduler,
        network: VirtualNetwork,
        host: str,
        *,
        pace: Pace | None = None,
        after_step: Callable[["VirtualProcess"], None] | None = None,
    ) -> None:
        """`after_step` is called after each callback and each job in a worker thread."""
        self.scheduler = scheduler
        self.network = network
        self.host = host
        self.pace = pace or Pace()
        self.state = ProcessState.RUNNING
        self.wall_offset_us = 0  # of the host's wall clock
        self.failures: list[dict[str, Any]] = []  # what the loop's exception handler was told
        self.on_end: list[Action] = []
        self.loop = VirtualEventLoop(self)  # type: ignore[abstract]  # what is missing is not offered
        self._after_step = after_step
        self._ready: deque[Handle] = deque()
        self._waiting_jobs: list[Action] = []  # of worker threads, while the process is paused
        self._is_step_scheduled = False
        self._busy_until_us = 0
        self._survivors: list[object] = []  # kept until the end of the run, see `end`
        self._threads: list[VirtualProcess] = []

    def wall_clock_ms(self) -> int:
        """The host's wall clock, in milliseconds since 1970."""
        return (_START_US + self.scheduler.now_us + self.wall_offset_us) // 1_000

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state is ProcessState.ENDED

    # ---- callbacks

    def enqueue(self, handle: Handle) -> None:
        """Run a callback after those that are ready already."""
        self._ready.append(handle)
        if not self._is_step_scheduled and self.state is ProcessState.RUNNING:
            self._is_step_scheduled = True
            self.scheduler.at(self._busy_until_us, self._step)

    def _step(self) -> None:
        self._is_step_scheduled = False
        if self.state is not ProcessState.RUNNING:
            return
        ready = self._ready
        while ready:
            handle = ready.popleft()
            callback = handle.callback
            if callback is not None:
                self._run(handle, callback)
                break
        if ready and self.state is ProcessState.RUNNING:
            self._is_step_scheduled = True
            self.scheduler.at(self._busy_until_us, self._step)
        if self._after_step is not None:
            self._after_step(self)

    def _run(self, handle: Handle, callback: Callable[..., object]) -> None:
        scheduler, pace = self.scheduler, self.pace
        chance = scheduler.chance.random()
        cost_us = 1 + int(chance * pace.step_us)
        if chance < pace.stall_share:
            cost_us += int(scheduler.chance.random() * pace.stall_us)
        self._busy_until_us = scheduler.now_us + cost_us
        loop = self.loop
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=loop.finalize_generator)
        _set_running_loop(loop)
        try:
            handle.context.run(callback, *handle.args)
        except Exception as error:  # noqa: BLE001 (as asyncio's own loop)
            loop.call_exception_handler(
                {"message": f"exception in callback {callback!r}", "exception": error}
            )
        finally:
            _set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    # ---- worker threads

    def run_in_thread(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Call `work` at a moment drawn from the seed, outside the event loop. `done` gets what it returns, on the event loop."""
        scheduler = self.scheduler

        def job() -> None:
            if self.state is ProcessState.PAUSED:
                self._waiting_jobs.append(job)
            elif self.state is ProcessState.RUNNING:
                result = work()
                context = contextvars.Context()
                handle = Handle(done, (result,), context)
                scheduler.after(scheduler.draw_us(*_THREAD_US), lambda: self.enqueue(handle))
                if self._after_step is not None:
                    self._after_step(self)

        slowness_us = self.pace.thread_us
        delay_us = scheduler.draw_us(*_THREAD_US)
        if slowness_us:
            delay_us += int(scheduler.chance.random() * slowness_us)
        scheduler.after(delay_us, job)

    def start_thread(self) -> "VirtualProcess":
        """A thread with an event loop of its own, which is paused and ends with this process."""
        thread = VirtualProcess(self.scheduler, self.network, self.host, pace=self.pace)
        self._threads.append(thread)
        return thread

    def post(self, work: Action) -> None:
        """Run something now as a thread of the process would: when it goes on, if it is paused; never, if it has ended."""
        if self.state is ProcessState.RUNNING:
            work()
        elif self.state is ProcessState.PAUSED:
            self._waiting_jobs.append(work)

    # ---- signals

    def pause(self) -> None:
        """SIGSTOP: nothing runs, and the kernel goes on taking connections and bytes for it."""
        if self.state is ProcessState.RUNNING:
            self.state = ProcessState.PAUSED
            for thread in self._threads:
                thread.pause()

    def resume(self) -> None:
        """SIGCONT."""
        if self.state is not ProcessState.PAUSED:
            return
        self.state = ProcessState.RUNNING
        for thread in self._threads:
            thread.resume()
        jobs, self._waiting_jobs = self._waiting_jobs, []
        for job in jobs:
            self.scheduler.after(self.scheduler.draw_us(*_THREAD_US), partial(self.post, job))
        if self._ready and not self._is_step_scheduled:
            self._is_step_scheduled = True
            self.scheduler.at(self._busy_until_us, self._step)

    def end(self, *, with_host: bool = False) -> None:
        """SIGKILL, or with its host: loss of power. Nothing of the process runs again.

        Its objects are kept until `forget`, because deallocating a coroutine runs its `finally` blocks.
        """
        if self.state is ProcessState.ENDED:
            return
        self.state = ProcessState.ENDED
        self._survivors = [*asyncio.all_tasks(self.loop), *self._ready, *self._waiting_jobs]
        self._ready = deque()
        self._waiting_jobs = []
        for thread in self._threads:
            thread.end(with_host=with_host)
        for action in self.on_end:
            action()
        self.network.process_ended(self, with_host=with_host)

    def forget(self) -> None:
        """Let go of the objects of a process that has ended. Coroutines are closed here, however often they wait in `finally`."""
        for survivor in self._survivors:
            if isinstance(survivor, asyncio.Task):
                _close(survivor.get_coro())
        self._survivors.clear()
        self.on_end.clear()
        for thread in self._threads:
            thread.forget()


def _close(coroutine: Any) -> None:
    for _ in range(_MOST_WAITS_IN_FINALLY):
        try:
            coroutine.close()
        except BaseException:  # noqa: BLE001, S112 (what a dead process meets is nobody's)
            continue
        return
