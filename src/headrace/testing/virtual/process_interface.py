"""What event loop, streams and network need of a virtual process, as protocols, and the callbacks that a process queues.

`process` and `network` implement the protocols. With these, no module imports `process` that `process` itself needs.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from headrace.testing.virtual.scheduler import Scheduler

ProtocolFactory = Callable[[], Any]


class Handle:
    """A callback that is to run once."""

    __slots__ = ("args", "callback", "context")

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context
    ) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context

    def cancel(self) -> None:
        """Do not run the callback."""
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self.callback is None


class StepPace(Protocol):
    """How late the timers of a process may be."""

    @property
    def timer_late_us(self) -> int: ...


class Weather(Protocol):
    """How writes are split on the way."""

    @property
    def split_share(self) -> float: ...


class Network(Protocol):
    """The network that the host of a process is in."""

    @property
    def weather(self) -> Weather: ...

    def passes(self, source: str, target: str) -> bool:
        """Whether bytes get from one host to another now."""

    def delay_us(self, source: str, target: str, size: int = 0) -> int:
        """How long some bytes take."""

    def opened(self, transport: Any) -> None:
        """A process has one more connection."""

    def closed(self, transport: Any) -> None:
        """A process has one connection less."""

    def addresses(self, host: str, port: int) -> list[tuple[Any, Any, int, str, Any]]:
        """The addresses of a host name. Raises gaierror."""

    def bind(
        self, process: "Process", host: str | None, port: int, factory: ProtocolFactory
    ) -> asyncio.AbstractServer:
        """Bind a port of the process's host, without serving yet. Raises OSError if it is in use."""

    def dial(
        self, process: "Process", host: str, port: int, factory: ProtocolFactory
    ) -> Awaitable[asyncio.Transport]:
        """Connect. Raises ConnectionRefusedError or TimeoutError."""


class Process(Protocol):
    """A virtual process, as its event loop and its connections use it."""

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def network(self) -> Network: ...

    @property
    def host(self) -> str: ...

    @property
    def pace(self) -> StepPace: ...

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    @property
    def failures(self) -> list[dict[str, Any]]: ...

    @property
    def has_ended(self) -> bool: ...

    def enqueue(self, handle: Handle) -> None:
        """Run a callback after those that are ready already."""

    def run_in_thread(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Call `work` as a worker thread would. `done` gets what it returns, on the event loop."""
