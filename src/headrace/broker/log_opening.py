"""Opening thousands of logs: several at a time in threads, and a line in the log now and then that tells how far it has come."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_logger = logging.getLogger(__name__)

_AT_A_TIME: Final = 32

_INTERVAL_S: Final = 3.0


class InThreads:
    """Like `map`, with so many threads for what is slow.

    Threads help where the disk has to be waited for, or much is to be verified. Thousands of small logs whose files are in
    memory are opened faster by one: Python's threads would only take turns.
    """

    def __init__(self, threads: int, *, slow_s: float = 0.005) -> None:
        """Items of `slow_s` each are worth threads."""
        self._threads = threads
        self._slow_s = slow_s

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results in the order of the items."""
        left = iter(items)
        is_slow = False
        with ThreadPoolExecutor(self._threads, thread_name_prefix="headrace-recovery") as pool:
            while some := list(islice(left, _AT_A_TIME)):
                began_s = time.perf_counter()
                results = list(pool.map(work, some) if is_slow else map(work, some))
                spent_s = (time.perf_counter() - began_s) * (self._threads if is_slow else 1)
                is_slow = self._threads > 1 and spent_s >= self._slow_s * len(some)
                yield from results


class RecoveryProgress:
    """Called for each log that was opened. Silent if it takes no time."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._began_s = self._told_s = clock_s()

    def __call__(self, path: str, done: int, of: int) -> None:
        """`done` logs of the `of` in a directory are open."""
        now_s = self._clock_s()
        if done == of and now_s - self._began_s >= _INTERVAL_S:
            _logger.info("%s: all %d logs are open after %.1f s", path, of, now_s - self._began_s)
            self._told_s = now_s
        elif now_s - self._told_s >= _INTERVAL_S:
            _logger.info("%s: %d of %d logs are open, %d to go", path, done, of, of - done)
            self._told_s = now_s
