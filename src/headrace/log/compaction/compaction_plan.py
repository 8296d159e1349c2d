"""Whether, how far and in which portions a log is to be compacted (pure). `compaction` carries it out.

Rules, all Kafka's: the active segment, what is not yet stable and segments younger than `min.compaction.lag.ms` are left
alone; a log is due when its share of dirty bytes exceeds `min.cleanable.dirty.ratio`, or when a dirty segment is older
than `max.compaction.lag.ms`; small neighbours are written into one segment again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from headrace.log.log_config import LogConfig

_MAX_RELATIVE_OFFSET: Final = 2**31 - 1


class SegmentFacts(NamedTuple):
    """What compaction needs to know of a segment. Times are set for dirty segments only."""

    base_offset: int
    end_offset: int  # base offset of the segment behind, or the log's end
    size: int
    offset_index_bytes: int = 0
    time_index_bytes: int = 0
    txn_index_bytes: int | None = None
    first_timestamp: int | None = None
    newest_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanable:
    """How dirty a log is. Its owner compacts the one with the largest ratio among those that are due."""

    first_dirty_offset: int
    end_offset: (
        int  # exclusive: the start of a segment, or the first dirty offset if none is cleanable
    )
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int  # how long ago max.compaction.lag.ms was exceeded; 0 if it was not
    min_dirty_ratio: float

    @property
    def dirty_ratio(self) -> float:
        """Share of the cleanable bytes in the log up to the end of the cleanable part."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the log is dirty enough, or max.compaction.lag.ms demands compaction."""
        if self.dirty_bytes == 0:
            return False
        return self.overdue_ms > 0 or self.dirty_ratio > self.min_dirty_ratio


def first_dirty_offset(
    checkpointed: int | None, *, log_start_offset: int, log_end_offset: int
) -> int:
    """Where the dirty part starts: the checkpointed offset, unless the log was truncated below it or starts above it."""
    if checkpointed is None or not log_start_offset <= checkpointed <= log_end_offset:
        return log_start_offset
    return checkpointed


def cleanable(
    segments: Sequence[SegmentFacts],
    config: LogConfig,
    *,
    first_dirty_offset: int,
    last_stable_offset: int,
    now_ms: int,
) -> Cleanable:
    """How dirty a log is whose last segment is the active one.

    Whole segments only: one that reaches past `last_stable_offset` waits, because the fate of its transactions is open.
    """
    end_offset = first_dirty_offset
    clean_bytes = dirty_bytes = 0
    earliest_ms: int | None = None
    for segment in segments[:-1]:
        if segment.end_offset <= first_dirty_offset:
            clean_bytes += segment.size
            continue
        if segment.first_timestamp is not None and segment.first_timestamp > 0:
            earliest_ms = min(earliest_ms or segment.first_timestamp, segment.first_timestamp)
        if segment.end_offset > last_stable_offset or _is_too_young(segment, config, now_ms):
            break
        dirty_bytes += segment.size
        end_offset = segment.end_offset
    overdue_ms = 0
    if earliest_ms is not None:
        overdue_ms = max(0, now_ms - config.max_compaction_lag_ms - earliest_ms)
    return Cleanable(
        first_dirty_offset=first_dirty_offset,
        end_offset=end_offset,
        clean_bytes=clean_bytes,
        dirty_bytes=dirty_bytes,
        overdue_ms=overdue_ms,
        min_dirty_ratio=config.min_cleanable_dirty_ratio,
    )


def _is_too_young(segment: SegmentFacts, config: LogConfig, now_ms: int) -> bool:
    lag_ms = config.min_compaction_lag_ms
    return lag_ms > 0 and segment.newest_ms > now_ms - lag_ms


def group_segments(
    segments: Sequence[SegmentFacts], config: LogConfig
) -> Iterator[list[SegmentFacts]]:
    """Neighbours that fit into one segment, by size, index size and reach of a relative offset."""
    group: list[SegmentFacts] = []
    for segment in segments:
        if group and not _fits(group, segment, config):
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def _fits(group: list[SegmentFacts], segment: SegmentFacts, config: LogConfig) -> bool:
    both = (*group, segment)
    reach = segment.end_offset - 1 - group[0].base_offset
    return (
        sum(part.size for part in both) <= config.segment_bytes
        and sum(part.offset_index_bytes for part in both) <= config.segment_index_bytes
        and sum(part.time_index_bytes for part in both) <= config.segment_index_bytes
        # A run of empty segments may span any distance: there is no offset in it to be indexed.
        and (segment.size == 0 or reach <= _MAX_RELATIVE_OFFSET)
    )
