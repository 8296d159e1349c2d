"""Leader epochs of one log, with the first offset of each (pure), and their checkpoint.

Followers truncate by this and never by high watermark, so it is pruned on every truncation, even one that removes no
bytes: an epoch that starts at or after the log's end was never replicated.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class EpochEntry(NamedTuple):
    """An epoch and the first offset written in it."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """Answer to "where did this epoch end": the largest epoch at or below the asked one, and its end offset."""

    epoch: int
    end_offset: int


UNKNOWN_EPOCH_END = EpochEnd(-1, -1)


class LeaderEpochs:
    """Ascending in epoch and in start offset."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[EpochEntry] = []
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All epochs, oldest first."""
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """The newest epoch; -1 if none is known."""
        return self._entries[-1].epoch if self._entries else -1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` writes from `start_offset` on. Returns whether that is news.

        Entries that the new one contradicts (a later epoch, or one that starts no earlier) are dropped: a follower may
        be told of a leader whose history differs from what it had.
        """
        if epoch < 0:
            return False
        entries = self._entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False
        while entries and (entries[-1].epoch > epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        if not entries or entries[-1].epoch < epoch:  # else it has begun before, and goes on
            entries.append(EpochEntry(epoch, start_offset))
        return True

    def has_written(self, epoch: int, log_end_offset: int) -> bool:
        """Whether the newest epoch is `epoch` and has records."""
        return self.latest == epoch and self._entries[-1].start_offset < log_end_offset

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The largest known epoch at or below `epoch` and where it ended; (-1, -1) if that is unknown."""
        if epoch < 0 or not self._entries or epoch > self.latest:
            return UNKNOWN_EPOCH_END
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        after = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if after == 0:
            # Older than anything kept: it ended, at the latest, where the first known epoch begins.
            return EpochEnd(epoch, self._entries[0].start_offset)
        return EpochEnd(self._entries[after - 1].epoch, self._entries[after].start_offset)

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote `offset`; -1 if unknown."""
        after = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[after - 1].epoch if after else -1

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget epochs that start at or after `end_offset`. Returns whether any did."""
        before = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        return len(self._entries) != before

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget epochs that ended before `start_offset`; the one it falls into now starts there."""
        after = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if after == 0 or (after == 1 and self._entries[0].start_offset == start_offset):
            return False
        self._entries[:after] = [EpochEntry(self._entries[after - 1].epoch, start_offset)]
        return True

    def clear(self) -> None:
        """Forget everything: the log starts anew somewhere else."""
        self._entries.clear()
