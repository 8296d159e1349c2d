"""Plan of a flush: which files to sync, up to which offset. Made by the log; run in a thread that may block."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from headrace.log.segments.segment import Segment

# A plan holds the descriptors of what it will sync, and a log may have thousands of segments.
_SEGMENTS_PER_PLAN: Final = 64


class FlushPlan(NamedTuple):
    """Run exactly once: a failed sync is never tried again, because the kernel may have dropped the pages."""

    syncs: tuple[Callable[[], None], ...]
    end_offset: int
    active_offset: int  # base offset of the segment that was active
    cuts: int  # how often the log had been truncated
    directories: Mapping[str, int]  # whose names are synced behind the segments → their last change

    def run(self) -> None:
        """Sync, in order. Raises DiskFailed; DiskFull only if all but the directories are synced."""
        for sync in self.syncs:
            sync()

    def proves(self, *, active_offset: int, cuts: int) -> int:
        """Up to where the log is durable after `run`, given how it stands now; -1 if that proves nothing."""
        if cuts != self.cuts:
            return -1  # what was synced may be gone, and others in its place
        if active_offset >= self.end_offset > self.active_offset:
            return self.end_offset - 1  # sealed meanwhile: its indexes are not synced yet
        return self.end_offset


def plan_flush(
    segments: list[Segment],
    *,
    end_offset: int,
    behind: list[Callable[[], None]],
    cuts: int,
    directories: Mapping[str, int],
) -> FlushPlan:
    """A plan for a log's last segments, up to `end_offset` or some way towards it, and what to sync behind them."""
    active = segments[-1]
    syncs: list[Callable[[], None]] = []
    for segment in segments[:_SEGMENTS_PER_PLAN]:
        if segment is not active:
            syncs += [file.syncer() for file in segment.files()]
        elif end_offset > active.base_offset:
            # Its indexes need no sync: recovery after a crash rebuilds them in any case.
            syncs.append(segment.log.syncer())
    if len(segments) > _SEGMENTS_PER_PLAN:
        end_offset = min(end_offset, segments[_SEGMENTS_PER_PLAN].base_offset)
    return FlushPlan((*syncs, *behind), end_offset, active.base_offset, cuts, directories)
