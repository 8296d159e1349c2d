"""Fetch of one partition by its follower (pure): the position to fetch from, and what an answer changes.

Owns fencing on the follower's side: an answer counts only in the leader epoch in which the fetch was sent, and only while the replica
is a follower. A partition with an error is fetched again later, the others go on.

Before a follower refuses a leader that seems to lack committed records, it reads the leader's log where they would be
(`Partition.gap_check`). If nothing is there, the leader's log was compacted, or copied from one that was, and lacks nothing.
"""

import enum
import logging

from headrace.errors import CorruptBatch, DiskFull
from headrace.log.leader_epochs import EpochEnd
from headrace.records.batch_view import read_header
from headrace.replication.follower import (
    deletes_committed,
    is_gap,
    may_delete_committed,
    next_fetch,
    truncation_offset,
)
from headrace.replication.partition import Partition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import FetchPartition, PartitionData

_logger = logging.getLogger(__name__)


class FetchOutcome(enum.Enum):
    """What to do after an answer."""

    GO_ON = enum.auto()
    WAIT = enum.auto()
    ASK_FOR_START = enum.auto()  # our log end offset is outside the leader's log


def question(partition: Partition, *, max_bytes: int) -> FetchPartition:
    """The next fetch of the partition."""
    log = partition.log
    checked = partition.gap_check
    following = next_fetch(log.leader_epochs, log.log_end_offset if checked is None else checked)
    return FetchPartition(
        partition=partition.topic_partition.partition,
        current_leader_epoch=partition.leader_epoch,
        fetch_offset=following.offset,
        last_fetched_epoch=following.last_fetched_epoch,
        log_start_offset=log.durable_start,
        partition_max_bytes=max_bytes,
    )


def counts(partition: Partition, asked_epoch: int) -> bool:
    """Whether the answer to a fetch that was sent in `asked_epoch` still counts."""
    return partition.leader_epoch == asked_epoch and not partition.is_leader


def is_taken_whole(partition: Partition, answer: PartitionData) -> bool:
    """Whether an answer is applied as a whole. Where the logs diverge, the leader's high watermark says nothing about ours."""
    return answer.diverging_epoch is None and partition.gap_check is None


def take(partition: Partition, answer: PartitionData, *, now_ms: int) -> FetchOutcome:
    """Apply an answer that counts: append, truncate, move the high watermark. Raises LogClosed, DiskFailed.

    On a full disk the follower keeps what it could write and asks for the rest again, later.
    """
    try:
        return _take(partition, answer, now_ms)
    except DiskFull as error:
        partition.refuse_for_disk(error, now_ms=now_ms)
        return FetchOutcome.WAIT


def _take(partition: Partition, answer: PartitionData, now_ms: int) -> FetchOutcome:
    if partition.gap_check is not None:
        return _take_gap_check(partition, partition.gap_check, answer, now_ms)
    if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return FetchOutcome.ASK_FOR_START
    if answer.error_code:
        return FetchOutcome.WAIT
    if answer.diverging_epoch is not None:
        leader = EpochEnd(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
        return _take_divergence(partition, leader, answer.log_start_offset, now_ms)
    cut_before = _batch_to_replace(partition, answer.records or b"")
    if cut_before is not None:
        reason = _reason_to_keep(partition, EpochEnd(-1, cut_before), cut_before)
        if reason is not None:
            return _refuse_leader(partition, cut_before, reason)
        partition.truncate_as_follower(cut_before, now_ms=now_ms)
    try:
        partition.append_as_follower(
            answer.records or b"",
            high_watermark=answer.high_watermark,
            log_start_offset=answer.log_start_offset,
            now_ms=now_ms,
        )
    except CorruptBatch as error:
        _logger.error("%s: %s", partition.topic_partition, error)
        return FetchOutcome.WAIT
    return FetchOutcome.GO_ON


def _take_divergence(
    partition: Partition, leader: EpochEnd, leader_start: int, now_ms: int
) -> FetchOutcome:
    log = partition.log
    cut = truncation_offset(leader, log.leader_epochs, log.log_end_offset)
    reason = _reason_to_keep(partition, leader, cut)
    if reason is not None:
        if not _may_be_gap(partition, leader, cut, leader_start):
            return _refuse_leader(partition, cut, reason)
        partition.gap_check = cut
    elif cut <= leader_start and partition.high_watermark < leader_start:
        # The cut is at or below the leader's log start offset: no record would remain that both have, so start empty there.
        partition.start_again_at(leader_start, now_ms=now_ms)
    else:
        partition.truncate_as_follower(cut, now_ms=now_ms)
    return FetchOutcome.GO_ON


def _reason_to_keep(partition: Partition, leader: EpochEnd, cut: int) -> str | None:
    """Why the log must not be truncated: committed records would be deleted that no unclean election has given up. None if it may be."""
    log, high_watermark = partition.log, partition.high_watermark
    if log.log_start_offset == log.log_end_offset:
        return None  # an empty log has nothing to lose
    lossy = partition.lossy_epochs
    if partition.is_of_other_history:
        lossy = lossy._replace(crashed=-1)
        reason = f"this replica knows of leader epoch {partition.newest_epoch}, which the coordination store has never given out"
    else:
        may_lack_epochs = log.config.cleanup_compact or log.notes.has_gaps
        if not deletes_committed(leader, cut, high_watermark, may_lack_epochs=may_lack_epochs):
            return None
        reason = _committed(high_watermark)
    return None if may_delete_committed(log.leader_epochs, lossy) else reason


def _committed(high_watermark: int) -> str:
    return f"those below {high_watermark} were committed, and no unclean election gave them up"


def _refuse_leader(partition: Partition, cut: int, reason: str) -> FetchOutcome:
    """Keep the log, and tell operators."""
    partition.refuse_leader(
        f"does not follow broker {partition.leader_id}, which leads in leader epoch {partition.leader_epoch}: that broker lacks"
        f" records from offset {cut} on, and {reason}. It keeps its records and stays out of the ISR. A restored"
        " backup of the coordination store is the usual cause: see docs/operating/cluster.md, a restored backup"
    )
    return FetchOutcome.WAIT


def _may_be_gap(partition: Partition, leader: EpochEnd, cut: int, leader_start: int) -> bool:
    """Whether the leader's log, which reaches beyond all that is committed here, may have a gap from the cut on.

    A leader that is refused already was read at the cut, and had other records there.
    """
    return (
        not partition.is_of_other_history
        and partition.unfollowable is None
        and leader.end_offset >= partition.high_watermark
        and max(leader_start, partition.log.log_start_offset) <= cut
    )


def _take_gap_check(
    partition: Partition, cut: int, answer: PartitionData, now_ms: int
) -> FetchOutcome:
    """What the leader's log has where committed records of this replica would be cut.

    Compaction removes only what is committed, so a gap tells that the leader, or whom it copied, had these records and compacted
    them. Anything else was written in their place.
    """
    records = answer.records or b""
    if answer.diverging_epoch is None and answer.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
        if answer.error_code or not len(records):
            return FetchOutcome.WAIT
        if is_gap(read_header(records).base_offset, partition.high_watermark):
            partition.gap_check = None
            _logger.info(
                "%s: the leader's log was compacted from %d on", partition.topic_partition, cut
            )
            partition.truncate_as_follower(cut, now_ms=now_ms)
            return FetchOutcome.GO_ON
    partition.gap_check = None
    return _refuse_leader(partition, cut, _committed(partition.high_watermark))


def lag_after(partition: Partition, answer: PartitionData) -> int:
    """How many records that the leader knows to be committed are still missing, after its answer was taken."""
    return max(0, answer.high_watermark - partition.log.log_end_offset)


def _batch_to_replace(partition: Partition, records: bytes | memoryview) -> int | None:
    """Where the leader's first batch begins, if our log ends inside it; else None.

    That is how it looks when the leader's log starts in the middle of a batch: ours begins there, empty, or it reaches there
    with a tail of its own that the leader no longer has an epoch to tell from.
    """
    end_offset = partition.log.log_end_offset
    if len(records):
        first = read_header(records)
        if first.base_offset < end_offset < first.next_offset:
            return first.base_offset
    return None


def take_start(partition: Partition, leader_start_offset: int, *, now_ms: int) -> FetchOutcome:
    """Apply the leader's log start offset from an answer that counts. Raises LogClosed, DiskFailed."""
    end_offset = partition.log.log_end_offset
    is_empty = partition.log.log_start_offset == end_offset
    if leader_start_offset == end_offset or (leader_start_offset < end_offset and not is_empty):
        # Our log reaches into the leader's: the epochs will tell where to cut.
        return FetchOutcome.WAIT
    # Records that end below the leader's start were deleted there after they had been committed, unless they are of another history.
    reason = _reason_to_keep(partition, EpochEnd(-1, leader_start_offset), leader_start_offset)
    if reason is not None:
        return _refuse_leader(partition, partition.log.log_start_offset, reason)
    # An empty log has no epochs to compare by. If it is past the leader's end, the leader was elected uncleanly.
    _logger.warning(
        "%s starts again at %d: the leader does not have %d",
        partition.topic_partition,
        leader_start_offset,
        end_offset,
    )
    try:
        partition.start_again_at(leader_start_offset, now_ms=now_ms)
    except DiskFull as error:
        partition.refuse_for_disk(error, now_ms=now_ms)
        return FetchOutcome.WAIT
    return FetchOutcome.GO_ON
