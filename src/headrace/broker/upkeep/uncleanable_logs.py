"""Logs whose compaction failed, each with the time of the next try. Owned by the cleaner; pure.

The pause doubles with each failure. A log that lacked disk space is not tried before there is room for the largest segment
that its compaction can write, because a failing try takes space that producers need.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.log.partition_log import PartitionLog

_LONGEST_PAUSE_MS: Final = 15 * 60 * 1000


@dataclass(slots=True)
class Failure:
    """How often the compaction of a log has failed in a row, and what the next try waits for."""

    count: int = 0
    pause_ms: int = 0
    retry_ms: int = 0
    needed_bytes: int = 0


class UncleanableLogs:
    """The logs that are put aside for now."""

    def __init__(self) -> None:
        self._failures: dict[PartitionLog, Failure] = {}

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter([log for log in self._failures if not log.is_closed])

    def failed(
        self, log: PartitionLog, *, pause_ms: int, now_ms: int, lacks_room: bool = False
    ) -> Failure:
        """Put a log aside: for `pause_ms`, or for longer if it is not the first time."""
        failure = self._failures.setdefault(log, Failure())
        failure.count += 1
        longest = max(_LONGEST_PAUSE_MS, pause_ms)
        failure.pause_ms = min(max(pause_ms, 2 * failure.pause_ms), longest)
        failure.retry_ms = now_ms + failure.pause_ms
        failure.needed_bytes = min(log.config.segment_bytes, log.size) if lacks_room else 0
        return failure

    def succeeded(self, log: PartitionLog) -> bool:
        """Take a log back. Returns whether it was put aside."""
        return self._failures.pop(log, None) is not None

    def needed_bytes(self, log: PartitionLog, now_ms: int) -> int | None:
        """How much room there must be for a try now; None if it is too early for one."""
        failure = self._failures.get(log)
        if failure is None:
            return 0
        return None if now_ms < failure.retry_ms else failure.needed_bytes

    def forget_closed(self) -> None:
        """Forget logs that were deleted, moved or taken offline."""
        for log in [log for log in self._failures if log.is_closed]:
            del self._failures[log]
