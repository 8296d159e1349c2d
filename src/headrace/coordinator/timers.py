"""Deadlines by key, earliest first. Pure: the owner brings the time and does the waiting.

Most deadlines are moved further out long before they are due (each heartbeat moves one). So moving
out only writes the new deadline beside the heap; the stale heap entry is put right when it surfaces.
The heap therefore holds about one entry per key, not one per heartbeat.
"""

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count


class Deadlines:
    """A set of keys, each with the time at which it falls due."""

    __slots__ = ("_deadline_ms", "_entries", "_heap", "_sequence")

    def __init__(self) -> None:
        self._deadline_ms: dict[Hashable, int] = {}
        # The earliest heap entry of a key; others of the same key are leftovers to be skipped.
        self._entries: dict[Hashable, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._sequence = count()

    def __len__(self) -> int:
        return len(self._deadline_ms)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._deadline_ms

    def set(self, key: Hashable, deadline_ms: int) -> None:
        """Set or move the deadline of a key."""
        self._deadline_ms[key] = deadline_ms
        entry = self._entries.get(key)
        if entry is None or deadline_ms < entry[0]:
            self._push(key, deadline_ms)

    def cancel(self, key: Hashable) -> None:
        """Forget a key. Unknown keys are fine."""
        self._deadline_ms.pop(key, None)

    def next_ms(self) -> int | None:
        """The earliest deadline, or None."""
        self._settle()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Hashable | None:
        """Take out the earliest key that is due, or None. One at a time: handling it may cancel others."""
        self._settle()
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        _, _, key = heappop(self._heap)
        del self._entries[key]
        del self._deadline_ms[key]
        return key

    def _push(self, key: Hashable, deadline_ms: int) -> None:
        sequence = next(self._sequence)
        self._entries[key] = (deadline_ms, sequence)
        heappush(self._heap, (deadline_ms, sequence, key))

    def _settle(self) -> None:
        """Until the top of the heap tells the truth: drop leftovers, re-push what was moved out."""
        heap = self._heap
        while heap:
            entry_ms, sequence, key = heap[0]
            current = self._entries.get(key) == (entry_ms, sequence)
            deadline_ms = self._deadline_ms.get(key)
            if current and deadline_ms == entry_ms:
                return
            heappop(heap)
            if current:
                del self._entries[key]
                if deadline_ms is not None:
                    self._push(key, deadline_ms)
