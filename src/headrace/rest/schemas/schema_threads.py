"""Schemas for requests on the event loop: known ones at once, others by way of threads. A rim module.

What waits for another process to validate a document (`SchemaCodec.is_blocking`) has threads of its own.

A registry that is away holds up the requests that need to ask it, and no others: those for schemas that are known, or
without one, never come to a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeVar

from headrace.rest import errors
from headrace.rest.payloads.json_schema_process import PROCESSES
from headrace.rest.schemas.schema_choice import ChosenSchema, SchemaChoice
from headrace.rest.schemas.schema_selector import SchemaSelector

T = TypeVar("T")

_THREADS: Final = 16
_WAITING: Final = 1000
_KNOWN: Final = 1000
_NEWEST_S: Final = 5.0  # how long the newest version of a subject counts as the newest


class _Known(NamedTuple):
    chosen: ChosenSchema
    until: float


class SchemaThreads:
    """Finds schemas to write with. Without a registry (`choice` is None) every question is refused."""

    def __init__(
        self, choice: SchemaChoice | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.choice = choice
        self._clock = clock
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="rest-schemas")
        self._encoding_threads = ThreadPoolExecutor(PROCESSES, thread_name_prefix="rest-encoding")
        self._known: OrderedDict[SchemaSelector, _Known] = OrderedDict()
        self._asking: dict[SchemaSelector, asyncio.Task[ChosenSchema]] = {}

    def known(self, selector: SchemaSelector) -> ChosenSchema | None:
        """The schema, if it is known without asking the registry."""
        found = self._known.get(selector)
        return found.chosen if found is not None and self._clock() < found.until else None

    async def find(self, selector: SchemaSelector) -> ChosenSchema:
        """The schema that is meant. Raises RestError."""
        known = self.known(selector)
        if known is not None:
            return known
        asking = self._asking.get(selector)
        if asking is None:
            if len(self._asking) >= _WAITING:
                raise errors.overloaded("Too many requests wait for the schema registry.")
            asking = self._asking[selector] = asyncio.create_task(self._ask(selector))
            asking.add_done_callback(lambda _: self._asking.pop(selector, None))
        return await asyncio.shield(asking)

    async def run_encoding(self, work: Callable[[], T]) -> T:
        """The result of work that encodes with a schema that blocks."""
        return await asyncio.get_running_loop().run_in_executor(self._encoding_threads, work)

    async def close(self) -> None:
        """Threads that wait for the registry end with their time-out."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._encoding_threads.shutdown(wait=False, cancel_futures=True)
        if self.choice is not None:
            self.choice.close()

    async def _ask(self, selector: SchemaSelector) -> ChosenSchema:
        if self.choice is None:
            raise errors.invalid_payload("Schema Registry must be configured when using schemas.")
        loop = asyncio.get_running_loop()
        chosen = await loop.run_in_executor(self._threads, self.choice.for_writing, selector)
        until = self._clock() + _NEWEST_S if selector.means_newest else float("inf")
        self._known[selector] = _Known(chosen, until)
        self._known.move_to_end(selector)
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        return chosen
