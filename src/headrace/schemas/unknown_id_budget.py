"""Limits how often a registry is asked for schema ids that it turns out not to know. Pure.

Ids come from records, so whoever may write to a topic can make every reader ask for a new one with each record. Questions
that the registry could answer cost nothing; those that it could not use up the budget, which fills again with time. While
it is used up, a question has to wait; no verdict about an id is ever guessed.
"""

from __future__ import annotations

from typing import Final

BURST: Final = 100
A_SECOND: Final = 50.0


class UnknownIdBudget:
    """Not safe to share between threads without a lock."""

    def __init__(self, *, burst: int = BURST, a_second: float = A_SECOND) -> None:
        self._burst = burst
        self._a_second = a_second
        self._left = float(burst)
        self._at_s: float | None = None

    def wait_s(self, now_s: float) -> float:
        """How long the next question for an id has to wait; 0 while the budget lasts."""
        self._refill(now_s)
        return max(0.0, (1 - self._left) / self._a_second)

    def spend(self, now_s: float) -> None:
        """Note that the registry did not know an id."""
        self._refill(now_s)
        self._left -= 1

    def _refill(self, now_s: float) -> None:
        if self._at_s is not None and now_s > self._at_s:
            self._left = min(self._burst, self._left + (now_s - self._at_s) * self._a_second)
        self._at_s = now_s if self._at_s is None else max(now_s, self._at_s)
