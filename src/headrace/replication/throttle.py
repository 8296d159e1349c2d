"""Rate of replication in bytes per second, measured over the last seconds (pure).

As Kafka has it: bytes are counted in windows of a second, and the rate is that of the last eleven of them. A copy that begins
may therefore take ten seconds' worth at once, and then waits until enough of it is past.
"""

from collections import deque
from typing import Final

UNLIMITED: Final = 2**63 - 1
_WINDOW_MS: Final = 1_000
_WINDOWS: Final = 11


class RateWindow:
    """Bytes of the last seconds."""

    __slots__ = ("_sum", "_windows")

    def __init__(self) -> None:
        self._windows: deque[tuple[int, int]] = deque()  # (number of the window, bytes)
        self._sum = 0

    def note(self, size: int, now_ms: int) -> None:
        """Count bytes."""
        window = now_ms // _WINDOW_MS
        if self._windows and self._windows[-1][0] == window:
            size_before = self._windows.pop()[1]
            self._windows.append((window, size_before + size))
        else:
            self._windows.append((window, size))
        self._sum += size

    def bytes_per_second(self, now_ms: int) -> float:
        """The rate by now. A clock that was put back empties the windows."""
        window = now_ms // _WINDOW_MS
        while self._windows and not window - _WINDOWS < self._windows[0][0] <= window:
            self._sum -= self._windows.popleft()[1]
        return self._sum / ((_WINDOWS - 1) * _WINDOW_MS / 1000)
