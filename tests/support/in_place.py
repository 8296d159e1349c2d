"""Workers that do blocking work at once, where they are asked to: `headrace.broker.workers.Workers` without threads."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class InPlace:
    """No thread is started."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()

    def map(self, threads: int, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        return map(work, items)
