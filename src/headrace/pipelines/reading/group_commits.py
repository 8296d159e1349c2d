"""When the progress of a query is committed to its consumer group (`commitGroup`), and when a failure of that is told. Pure.

A group may refuse: it has members of its own, or its coordinator is away. The checkpoint is what counts, so the query goes on; the
commit is tried again after a pause that grows, and the same failure is told once.
"""

from __future__ import annotations

from typing import Final

from headrace.pipelines.offset_ranges import StoredOffset

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0


class GroupCommits:
    """What was committed last, and when the next attempt is due."""

    def __init__(self) -> None:
        self._committed: StoredOffset | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._due_s = 0.0
        self._told = ""

    def is_due(self, done: StoredOffset, now_s: float) -> bool:
        """Whether to commit that the query is done up to here."""
        return done != self._committed and now_s >= self._due_s

    def succeeded(self, done: StoredOffset) -> None:
        self._committed = done
        self._pause_s, self._due_s, self._told = _FIRST_PAUSE_S, 0.0, ""

    def failed(self, why: str, now_s: float) -> bool:
        """Put off the next attempt. True where the failure has to be told: it is another one than the last time."""
        self._due_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        is_news = why != self._told
        self._told = why
        return is_news
