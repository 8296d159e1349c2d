"""Batches that came together for one partition, written together: one write, and one look at what is the same for all.

Only what is plain takes this way: good batches, of one producer and in sequence, that fit into the active segment. Anything
else is left undone and goes one by one through `PartitionLog.append_as_leader`, which says what is wrong with which.
"""

from collections.abc import Sequence

from headrace.errors import DiskFailed
from headrace.log.append_check import is_plain
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_state import ProducerState
from headrace.records.batch_view import (
    NO_TIMESTAMP,
    BatchHeader,
    sequence_after,
    stamp,
    stamped_header,
    unstamp,
)


def append_run(
    log: PartitionLog,
    batches: Sequence[bytearray | memoryview],
    headers: Sequence[BatchHeader],
    *,
    leader_epoch: int,
    now_ms: int,
) -> int | None:
    """Append all, in this order. Returns the offset of the first; None if nothing was done."""
    if (
        log.is_closed
        or leader_epoch != log.leader_epochs.latest
        or not all(
            is_plain(batch, header, log.config, now_ms)
            for batch, header in zip(batches, headers, strict=True)
        )
        or not _are_in_sequence(headers, log.producers)
    ):
        return None
    base_offset = offset = log.log_end_offset
    stamped: list[BatchHeader] = []
    for header in headers:
        stamped.append(stamped_header(header, offset, leader_epoch))
        offset += header.last_offset_delta + 1
    if not _fit(stamped, sum(map(len, batches)), log, now_ms):
        return None
    for batch, header in zip(batches, stamped, strict=True):
        stamp(batch, 0, header.base_offset, leader_epoch)
    try:
        log.write_run(batches, stamped, now_ms=now_ms)
    except DiskFailed:
        for batch, header in zip(batches, headers, strict=True):  # they may be tried again
            unstamp(batch, header)
        raise
    return base_offset


def _are_in_sequence(headers: Sequence[BatchHeader], producers: ProducerState) -> bool:
    """Whether all come from one producer and each follows the one before, the first what is known; or from none."""
    previous = headers[0]
    if previous.producer_id >= 0 and producers.check(previous) is not None:
        return False
    for header in headers[1:]:
        if header.producer_id != previous.producer_id:
            return False
        if header.producer_id >= 0 and (
            header.producer_epoch != previous.producer_epoch
            or header.base_sequence != sequence_after(previous.last_sequence, 1)
        ):
            return False
        previous = header
    return True


def _fit(stamped: Sequence[BatchHeader], size: int, log: PartitionLog, now_ms: int) -> bool:
    """Whether no batch of the run belongs into a new segment."""
    segment = log.segments.active
    timestamps = [header.max_timestamp for header in stamped]
    if segment.size == 0 or min(timestamps) <= NO_TIMESTAMP:
        return False  # these follow rules of their own
    return not segment.should_roll(
        stamped[-1].last_offset, size, max(timestamps), now_ms, batches=len(stamped)
    )
