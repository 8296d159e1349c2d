"""Compaction of a live log, for its owner: measures how dirty it is, plans a run, puts the results in place.

The run itself is `compaction_rewrite.Compaction`, in another process. Meanwhile the log may lose segments that are being
rewritten, by retention or truncation. Then `install` discards the result. The new first dirty offset is written
to the cleaner checkpoint only after all results are in place, and only if they all are.
"""

from headrace.log.compaction.compaction_job import CompactionJob, LastWritten, RewrittenSegment
from headrace.log.compaction.compaction_plan import (
    Cleanable,
    SegmentFacts,
    cleanable,
    first_dirty_offset,
)
from headrace.log.compaction.swap import CLEANED, swap_in
from headrace.log.files.disk import Disk
from headrace.log.partition_log import PartitionLog
from headrace.log.segments.segment import SEGMENT_SUFFIXES, Segment, offset_name


def assess(log: PartitionLog, *, last_stable_offset: int, now_ms: int) -> Cleanable:
    """How dirty a log is."""
    first_dirty = first_dirty_offset(
        log.cleaned_to, log_start_offset=log.log_start_offset, log_end_offset=log.log_end_offset
    )
    return cleanable(
        _facts(log, first_dirty),
        log.config,
        first_dirty_offset=first_dirty,
        last_stable_offset=last_stable_offset,
        now_ms=now_ms,
    )


def plan(log: PartitionLog, dirty: Cleanable, *, now_ms: int) -> CompactionJob:
    """A run over the part of the log that `assess` found cleanable. DiskFull if even that lacks space."""
    end_offset = dirty.end_offset
    for segment in log.segments:
        segment.txn_index.flush()  # an entry that a full disk kept in memory would not be seen by the run
    return CompactionJob(
        topic_partition=log.topic_partition,
        directory=log.directory,
        config=log.config,
        segments=tuple(
            facts
            for facts in _facts(log, dirty.first_dirty_offset)[:-1]
            if facts.end_offset <= end_offset
        ),
        aborted_later=tuple(log.aborted_transactions(end_offset, end_offset)),
        last_written={
            entry.producer_id: LastWritten(entry.last_offset, entry.epoch)
            for entry in log.producers
        },
        first_dirty_offset=dirty.first_dirty_offset,
        end_offset=end_offset,
        truncations=log.truncations,
        now_ms=now_ms,
    )


def install(log: PartitionLog, rewritten: RewrittenSegment, *, now_ms: int) -> bool:
    """Put a rewritten segment in place. False, and the result is gone, if the log has changed there."""
    first, last = rewritten.replaces[0][0], rewritten.replaces[-1][0]
    replaced = [part for part in log.segments if first <= part.base_offset <= last]
    found = tuple((segment.base_offset, segment.size) for segment in replaced)
    # A segment that was truncated and appended to may have its old size again, with other records in it.
    is_unchanged = found == rewritten.replaces and log.truncations == rewritten.truncations
    if log.is_closed or not is_unchanged or log.segments.active in replaced:
        discard(log.disk, log.directory, rewritten)
        return False
    cleaned = Segment(
        log.disk,
        f"{log.directory}/{offset_name(rewritten.base_offset)}",
        rewritten.base_offset,
        log.config,
        sizes=rewritten.sizes,
        created_ms=replaced[-1].created_ms,
        stage=CLEANED,
    )
    # Compaction makes no record younger.
    log.disk.set_modified(cleaned.log.path, replaced[-1].log.modified_ms)
    if not log.notes.has_gaps:
        log.note_gaps(durable=True)
    swap_in(log, cleaned, replaced, now_ms=now_ms)
    for segment in replaced[1:]:
        log.snapshots.remove(segment.base_offset)
    return True


def discard(disk: Disk, directory: str, rewritten: RewrittenSegment) -> None:
    """Remove the files of a rewritten segment that is not wanted."""
    path = f"{directory}/{offset_name(rewritten.base_offset)}"
    for suffix in SEGMENT_SUFFIXES:
        disk.remove(path + suffix + CLEANED)


def _facts(log: PartitionLog, first_dirty: int) -> list[SegmentFacts]:
    facts: list[SegmentFacts] = []
    for segment in log.segments:
        end_offset = log.segments.end_of(segment) or log.log_end_offset
        txn_file = segment.txn_index.file
        found = SegmentFacts(
            segment.base_offset,
            end_offset,
            segment.size,
            segment.offset_index.file.size,
            segment.time_index.file.size,
            None if txn_file is None else txn_file.size,
        )
        # Clean segments may be many: their files are not opened for this.
        if end_offset > first_dirty:
            found = found._replace(
                first_timestamp=segment.first_timestamp,
                newest_ms=segment.newest_ms,
            )
        facts.append(found)
    return facts
