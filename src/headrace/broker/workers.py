"""Where work runs that blocks, such as syncing files: in threads, unless a test says otherwise. A rim module.

What is handed over is a value that no longer needs the event loop, which goes on meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AT_A_TIME: Final = 32
_SLOW_S: Final = 0.005


class Workers(Protocol):
    """Runs blocking work for the event loop."""

    async def run(self, work: Callable[[], T]) -> T:
        """The result of the work. A caller that is cancelled leaves work behind that cannot be stopped."""

    def map(self, threads: int, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results in the order of the items, with so many threads for what is slow. Blocks the caller."""


async def run_to_end(workers: Workers, work: Callable[[], None]) -> None:
    """Run work; a cancellation waits until it is done."""
    running = asyncio.ensure_future(workers.run(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


class Threads:
    """Workers that are threads of this process."""

    def __init__(self, monotonic: Callable[[], float], *, slow_s: float = _SLOW_S) -> None:
        """Items of `slow_s` each are worth threads."""
        self._monotonic = monotonic
        self._slow_s = slow_s

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)

    def map(self, threads: int, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Threads help where the disk has to be waited for, or much is to be verified.

        Thousands of small logs whose files are in memory are opened faster by one: Python's threads would only take turns.
        """
        left = iter(items)
        is_slow = False
        with ThreadPoolExecutor(threads, thread_name_prefix="headrace-recovery") as pool:
            while some := list(islice(left, _AT_A_TIME)):
                began_s = self._monotonic()
                results = list(pool.map(work, some) if is_slow else map(work, some))
                spent_s = (self._monotonic() - began_s) * (threads if is_slow else 1)
                is_slow = threads > 1 and spent_s >= self._slow_s * len(some)
                yield from results
