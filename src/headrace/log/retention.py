"""Retention: which segments are deleted, by age, by total size and by the log start offset (pure). The log deletes them."""

from enum import Enum
from typing import NamedTuple

from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.segments.segment import Segment


class Reason(Enum):
    """Why a segment is deleted; the text is part of the log line."""

    AGE = "retention.ms"
    SIZE = "retention.bytes"
    LOG_START = "log start offset"


class SegmentFacts(NamedTuple):
    """A segment, as far as retention needs it."""

    base_offset: int
    end_offset: int
    size: int
    newest_ms: int
    is_active: bool


def deletable(
    segments: list[SegmentFacts],
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    now_ms: int,
) -> list[Reason]:
    """One reason for each segment that may go, from the oldest on; the list ends at the first that stays.

    Nothing that is not replicated goes, and an empty active segment stays. A topic that is only compacted loses
    segments by its log start alone.
    """
    by_size = config.cleanup_delete and config.retention_bytes >= 0
    excess = sum(segment.size for segment in segments) - config.retention_bytes if by_size else -1
    by_age = config.cleanup_delete and config.retention_ms >= 0
    reasons: list[Reason] = []
    for segment in segments:
        if segment.end_offset > high_watermark or (segment.is_active and segment.size == 0):
            break
        if segment.end_offset <= log_start_offset and not segment.is_active:
            reasons.append(Reason.LOG_START)
        elif by_age and now_ms - segment.newest_ms > config.retention_ms:
            reasons.append(Reason.AGE)
        elif by_size and excess >= segment.size:
            reasons.append(Reason.SIZE)
        else:
            break
        excess -= segment.size
    return reasons


def delete_old_segments(
    log: PartitionLog, *, high_watermark: int, now_ms: int
) -> list[tuple[Segment, Reason]]:
    """Apply retention to a log. Returns the deleted segments with the reasons."""
    segments = list(log.segments)
    reasons = deletable(
        [_facts(log, segment) for segment in segments],
        log.config,
        log_start_offset=log.log_start_offset,
        high_watermark=high_watermark,
        now_ms=now_ms,
    )
    gone = list(zip(segments, reasons, strict=False))
    log.delete_segments([segment for segment, _ in gone], now_ms=now_ms)
    return gone


def _facts(log: PartitionLog, segment: Segment) -> SegmentFacts:
    end_offset = log.segments.end_of(segment)
    return SegmentFacts(
        segment.base_offset,
        log.log_end_offset if end_offset is None else end_offset,
        segment.size,
        segment.newest_ms,
        segment is log.segments.active,
    )
