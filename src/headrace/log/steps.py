"""Long work in steps: a generator that stops at points where others may be served. Pure.

It yields None at such a point, or a function without arguments that is worth a thread of its own because it spends its
time outside of Python (a codec); what that returns is sent back. `run_at_once` is the driver for those who may wait;
the broker's is `broker.requests.long_work`.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[Callable[[], Any] | None, Any, T]


def run_at_once(steps: Steps[T]) -> T:
    """All steps, one after the other."""
    result: Any = None
    while True:
        try:
            work = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what the generator returns
        result = None if work is None else work()
