"""What a running total was a minute or two ago, so that a page can also say how things are lately (pure).

Moves only when somebody looks, and by the clock, so that two who look do not take each other's window away.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

WINDOW_MS: Final = 60_000

T = TypeVar("T")


class RecentWindow(Generic[T]):
    """Two snapshots; the older one is the beginning of the window."""

    __slots__ = ("_newer", "_older", "_take")

    def __init__(self, take: Callable[[], T], now_ms: int) -> None:
        self._take = take
        self._older = self._newer = (now_ms, take())

    def beginning(self, now_ms: int) -> tuple[int, T]:
        """When the window began, and the snapshot of then."""
        if now_ms - self._newer[0] >= WINDOW_MS:
            self._older, self._newer = self._newer, (now_ms, self._take())
        return self._older
