"""Admin clients for many requests at once, each used by one thread at a time. A rim module.

A broker that does not answer holds up a thread, and only requests that need that broker. When all threads wait, new
requests are refused instead of queueing behind them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from headrace.client.admin.admin import Admin
from headrace.client.brokers import Address
from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected, VersionNotOffered
from headrace.errors import MalformedMessage
from headrace.rest import errors
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused

T = TypeVar("T")

_ATTEMPTS: Final = 3
_THREADS: Final = 64
_WAITING: Final = 256  # requests beyond those that have a thread
_IDLE_CLIENTS: Final = 8


class AdminPool:
    """Runs work with an admin client on a thread."""

    def __init__(self, bootstrap_servers: str, *, timeout_s: float) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="rest-admin")
        self._idle: list[Admin] = []  # the one used last comes last
        self._lock = threading.Lock()
        self._busy = 0

    @property
    def busy(self) -> int:
        """How many requests have a thread or wait for one."""
        return self._busy

    async def run(self, work: Callable[[Admin], T]) -> T:
        """The result of `work`. Raises RestError where Kafka refuses or cannot be reached."""
        if self._busy >= _THREADS + _WAITING:
            raise errors.overloaded("Too many requests wait for answers of brokers.")
        self._busy += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._run, work)
        except Refused as refused:
            raise errors.of_kafka(refused.error_code, str(refused)) from refused
        except Disconnected as lost:
            raise errors.try_again(f"No answer of the brokers: {lost}") from lost
        except VersionNotOffered as wanting:
            raise errors.of_kafka(ErrorCode.UNSUPPORTED_VERSION, str(wanting)) from wanting
        except MalformedMessage as broken:
            raise errors.kafka_failed(str(broken)) from broken
        finally:
            self._busy -= 1

    async def close(self) -> None:
        """Close the clients that nobody uses. Threads that wait for a broker end with their time-out."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            idle, self._idle = self._idle, []
        for admin in idle:
            admin.close()

    def _connect(self, address: Address) -> Connection:
        # Shorter than the whole: a broker that hangs leaves time to ask another one.
        timeout_s = self._timeout_s / _ATTEMPTS
        return Connection(
            address.host, address.port, client_id="headrace-rest", timeout_s=timeout_s
        )

    def _run(self, work: Callable[[Admin], T]) -> T:
        with self._lock:
            admin = self._idle.pop() if self._idle else None
        if admin is None:
            admin = Admin(self._bootstrap_servers, timeout_s=self._timeout_s, connect=self._connect)
        try:
            return work(admin)
        finally:
            with self._lock:
                is_kept = len(self._idle) < _IDLE_CLIENTS
                if is_kept:
                    self._idle.append(admin)
            if not is_kept:
                admin.close()
