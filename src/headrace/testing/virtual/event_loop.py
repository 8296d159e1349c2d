"""An asyncio event loop on virtual time: what a program in a virtual process gets from `asyncio.get_running_loop()`.

Callbacks are queued at the process, timers at the scheduler, connections are made by the virtual network, and jobs for worker
threads run in the one real thread at a moment drawn from the seed. Signals, subprocesses, files and TLS are not offered: a program
that needs them gets them passed in.
"""

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable, Coroutine
from itertools import count
from typing import Any, TypeVar, cast

from headrace.testing.virtual.process_interface import Handle, Process
from headrace.testing.virtual.scheduler import Scheduled

T = TypeVar("T")


class VirtualTimerHandle(Handle):
    """A callback that is to run at a moment."""

    __slots__ = ("_loop", "_when_s", "scheduled")

    def __init__(
        self,
        loop: "VirtualEventLoop",
        when_s: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context,
    ) -> None:
        super().__init__(callback, args, context)
        self._loop = loop
        self._when_s = when_s
        self.scheduled: Scheduled | None = None

    def when(self) -> float:
        """The moment, by the clock of the event loop."""
        return self._when_s

    def cancel(self) -> None:
        """Do not run the callback."""
        super().cancel()
        if self.scheduled is not None:
            self.scheduled.cancel()
            self.scheduled = None
            self._loop.timers -= 1


class VirtualTask(asyncio.Task[T]):
    """A task whose hash does not depend on its address, because asyncio keeps tasks in sets and iterates over them."""

    _numbers = count()

    def __init__(self, coro: Coroutine[Any, Any, T], **options: Any) -> None:
        self._number = next(VirtualTask._numbers)
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class VirtualEventLoop(asyncio.AbstractEventLoop):
    """The event loop of one virtual process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._scheduler = process.scheduler
        self.host = process.host
        self.timers = 0  # that are set

    # ---- time and callbacks

    def time(self) -> float:
        return self._scheduler.now_us / 1_000_000

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, context or contextvars.copy_context())
        self._process.enqueue(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> VirtualTimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> VirtualTimerHandle:
        process, scheduler = self._process, self._scheduler
        handle = VirtualTimerHandle(
            self, when, callback, args, context or contextvars.copy_context()
        )
        when_us = (
            int(when * 1_000_000) + 1 + int(scheduler.chance.random() * process.pace.timer_late_us)
        )

        def ring() -> None:
            handle.scheduled = None
            self.timers -= 1
            if not process.has_ended:
                process.enqueue(handle)

        handle.scheduled = scheduler.at(when_us, ring)
        self.timers += 1
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> "asyncio.Task[Any]":
        return VirtualTask(coro, loop=self, name=name, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: None, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """Call a function as a worker thread would. It is not called off when the future is cancelled: a thread cannot be."""
        future = self.create_future()

        def work() -> tuple[T | None, Exception | None]:
            try:
                return func(*args), None
            except Exception as error:  # noqa: BLE001 (the future's)
                return None, error

        def done(outcome: tuple[T | None, Exception | None]) -> None:
            if future.done():
                return
            result, error = outcome
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self._process.run_in_thread(work, done)
        return future

    # ---- the network

    async def getaddrinfo(
        self, host: Any, port: Any, **hints: Any
    ) -> list[tuple[Any, Any, int, str, Any]]:
        return self._process.network.addresses(host, port)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], T], host: str, port: int, *, ssl: None = None
    ) -> tuple[asyncio.Transport, T]:
        _refuse_tls(ssl)
        transport = await self._process.network.dial(self._process, host, port, protocol_factory)
        return transport, cast(T, transport.get_protocol())

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int = 0,
        *,
        ssl: None = None,
        backlog: int = 100,
        start_serving: bool = True,
    ) -> asyncio.AbstractServer:
        _refuse_tls(ssl)
        server = self._process.network.bind(self._process, host, port, protocol_factory)
        if start_serving:
            await server.start_serving()
        return server

    # ---- what asyncio's own parts ask of a loop

    def is_running(self) -> bool:
        return not self._process.has_ended

    def is_closed(self) -> bool:
        return self._process.has_ended

    def get_debug(self) -> bool:
        return False

    def get_task_factory(self) -> None:
        return None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what nobody handled; a process that has ended has nothing to say."""
        if not self._process.has_ended:
            self._process.failures.append(context)

    def finalize_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Close an asynchronous generator that was left in the middle."""
        if not self._process.has_ended:
            self.call_soon(self.create_task, generator.aclose())


def _refuse_tls(ssl: None) -> None:
    if ssl is not None:
        raise NotImplementedError("the virtual network has no TLS")
