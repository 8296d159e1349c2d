"""A limit on bytes that are held for others, and a share of it for each owner. Pure."""

from __future__ import annotations

from collections.abc import Hashable


class MemoryBudget:
    """Counts bytes in and out. No owner may hold more than its share, so that one of them cannot use up the whole."""

    def __init__(self, limit: int, *, share: int | None = None) -> None:
        self._limit = limit
        self._share = limit if share is None else share
        self._held: dict[Hashable, int] = {}
        self.held_bytes = 0

    def take(self, owner: Hashable, count: int) -> bool:
        """Count bytes in; False, and nothing is counted, where there is no room for them."""
        held = self._held.get(owner, 0)
        # Whoever holds nothing gets what it asks for, within the limit: else a large request could never be served.
        if self.held_bytes + count > self._limit or (held and held + count > self._share):
            return False
        self._held[owner] = held + count
        self.held_bytes += count
        return True

    def give(self, owner: Hashable, count: int) -> None:
        """Count bytes out that were taken before."""
        held = self._held[owner] - count
        assert held >= 0
        if held:
            self._held[owner] = held
        else:
            del self._held[owner]
        self.held_bytes -= count
