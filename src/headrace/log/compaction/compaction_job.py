"""Input and output of a compaction run: plain values that can be sent to another process."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headrace.ids import TopicPartition
from headrace.log.compaction.compaction_plan import SegmentFacts
from headrace.log.compaction.offset_map import LOAD_FACTOR
from headrace.log.log_config import LogConfig
from headrace.log.segments.segment import SegmentSizes
from headrace.log.segments.txn_index import AbortedTxn
from headrace.records.compression import DEFAULT_LIMIT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionLimits:
    """Limits on the memory of a run, from `log.cleaner.dedupe.buffer.size` and related settings."""

    dedupe_buffer_bytes: int = 128 * 1024 * 1024
    load_factor: float = LOAD_FACTOR
    io_buffer_bytes: int = 512 * 1024
    inflated_batch_bytes: int = DEFAULT_LIMIT_BYTES


class LastWritten(NamedTuple):
    """The end of what a producer wrote: the last offset of its last data batch (-1 if none) and its epoch."""

    data_offset: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionJob:
    """The state of the log that a run needs, as of the time when the log's owner planned the run."""

    topic_partition: TopicPartition
    directory: str
    config: LogConfig
    segments: tuple[SegmentFacts, ...]  # from the log's first one up to `end_offset`
    aborted_later: tuple[AbortedTxn, ...]  # with data below `end_offset` and their marker behind
    last_written: Mapping[int, LastWritten]  # by producer id
    first_dirty_offset: int
    end_offset: int
    truncations: int  # how often the log had been truncated
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenSegment:
    """A synced `.cleaned` segment that can replace other segments."""

    base_offset: int
    replaces: tuple[tuple[int, int], ...]  # (base offset, size), ascending
    sizes: SegmentSizes
    truncations: int  # of the log, when the run was planned


@dataclass(slots=True, kw_only=True)
class CompactionProgress:
    """Counts of a run; complete when `Compaction.rewrite` has ended."""

    first_dirty_offset: int  # the new one, once all rewritten segments are in place
    map_entries: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_kept: int = 0
    records_dropped: int = 0
    unreadable_batches: int = 0
