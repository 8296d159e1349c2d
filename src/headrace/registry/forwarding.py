"""Forwarding of a write to the primary instance, over HTTP. A rim module; owns the threads that wait for answers."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from headrace.registry import errors

_TIMEOUT_S: Final = 60.0
_THREADS: Final = 32


class PrimaryAnswer(NamedTuple):
    """What the primary answered."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class Forwarding:
    """Sends requests to the primary, each in a thread, so that a primary that hangs holds up writes only."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="registry-forward")

    async def send(
        self,
        address: tuple[str, int],
        method: str,
        target: str,
        body: bytes,
        headers: Mapping[str, str],
    ) -> PrimaryAnswer:
        """The primary's answer. Raises RegistryError."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, _exchange, address, method, target, body, headers
        )


def _exchange(
    address: tuple[str, int], method: str, target: str, body: bytes, headers: Mapping[str, str]
) -> PrimaryAnswer:
    connection = http.client.HTTPConnection(*address, timeout=_TIMEOUT_S)
    try:
        connection.request(method, target, body, dict(headers))
        answer = connection.getresponse()
        return PrimaryAnswer(answer.status, answer.read(), dict(answer.headers.items()))
    except (OSError, http.client.HTTPException) as trouble:
        raise errors.forwarding_failed(str(trouble)) from trouble
    finally:
        connection.close()
