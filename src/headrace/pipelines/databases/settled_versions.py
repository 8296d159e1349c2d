"""Which versions of a table have settled: were seen long enough ago that a transaction which took a lower one has ended. Pure.

Databases hand out versions when a row is written and show the row when its transaction commits, which may be later and in another
order. Reading up to the newest version at once would pass over rows that commit late with a lower version, for ever.
"""

from collections import deque


class SettledVersions:
    """Remembers when each newest version was first seen."""

    def __init__(self, settle_s: float) -> None:
        self._settle_s = settle_s
        self._seen: deque[tuple[int, float]] = deque()  # rising in both
        self._settled: int | None = None

    def see(self, newest: int | None, now_s: float) -> None:
        """The newest version in the table, None where it is empty."""
        if newest is not None and (not self._seen or newest > self._seen[-1][0]):
            self._seen.append((newest, now_s))

    def settled(self, now_s: float) -> int | None:
        """Up to which version may be read now; None where none has settled."""
        while self._seen and self._seen[0][1] + self._settle_s <= now_s:
            self._settled = max(self._settled or self._seen[0][0], self._seen.popleft()[0])
        return self._settled
