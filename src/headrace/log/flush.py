"""Syncing as a value: what to sync, up to which offset. Decided by the log, run wherever blocking is allowed."""

from collections.abc import Callable
from typing import NamedTuple


class FlushPlan(NamedTuple):
    """Run exactly once: a failed sync is never tried again, because the kernel may have dropped the pages."""

    syncs: tuple[Callable[[], None], ...]
    end_offset: int

    def run(self) -> None:
        """Sync, in order. Raises DiskFailed."""
        for sync in self.syncs:
            sync()
