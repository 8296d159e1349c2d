"""Offsets by time: the first record at or after a timestamp, and the record with the largest one.

Only records know their timestamps, so batches are opened: in steps, because one may hold a million records.
CorruptBatch if a batch that has to be opened is not what it claims.
"""

from functools import partial
from typing import Final, NamedTuple

from headrace.errors import BatchTooLarge, CorruptBatch
from headrace.log.batch_filter import record_slices
from headrace.log.partition_log import PartitionLog
from headrace.log.record_check import AT_ONCE_BYTES, AT_ONCE_RECORDS, inflated
from headrace.log.segments.segment import FoundBatch, Segment
from headrace.log.steps import Steps
from headrace.records.batch_view import NO_TIMESTAMP, has_valid_crc
from headrace.records.compression import DEFAULT_LIMIT_BYTES

_I64_LIMIT: Final = 2**63


class FoundTimestamp(NamedTuple):
    """A record that answers a question about time."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(log: PartitionLog, timestamp: int) -> Steps[FoundTimestamp | None]:
    """The first record whose timestamp is not before `timestamp`; None if there is none."""
    start = log.log_start_offset
    for segment in log.segments.from_offset(start):
        if segment.max_timestamp.timestamp >= timestamp:
            while (batch := segment.first_batch_reaching(timestamp, start)) is not None:
                found = yield from _first_in_batch(segment, batch, timestamp, log.log_start_offset)
                if found is not None:
                    return found
                start = batch.header.next_offset
    return None


def with_max_timestamp(log: PartitionLog) -> Steps[FoundTimestamp | None]:
    """The first record that has the largest timestamp of the log; None if no record has one."""
    largest = NO_TIMESTAMP
    for segment in log.segments.from_offset(log.log_start_offset):
        largest = max(largest, (yield from _max_timestamp(segment, log.log_start_offset)))
    if largest < 0:
        return None
    return (yield from first_at_or_after(log, largest))


def _max_timestamp(segment: Segment, start_offset: int) -> Steps[int]:
    if segment.base_offset >= start_offset:
        return segment.max_timestamp.timestamp
    # The log starts inside this segment, whose largest timestamp may be a deleted record's.
    largest = NO_TIMESTAMP
    for found in segment.batches(segment.offset_index.position_for(start_offset)):
        if found.header.base_offset >= start_offset:
            largest = max(largest, found.header.max_timestamp)
        elif found.header.last_offset >= start_offset:
            largest = yield from _latest_in_batch(segment, found, start_offset)
    return largest


def _first_in_batch(
    segment: Segment, batch: FoundBatch, timestamp: int, start_offset: int
) -> Steps[FoundTimestamp | None]:
    header = batch.header
    base_timestamp, own_times = header.base_timestamp, not header.is_log_append_time
    payload = yield from _opened(segment, batch)
    for number, (offset, delta, *_) in enumerate(record_slices(payload, header), 1):
        reached = base_timestamp + delta if own_times else header.max_timestamp
        if reached >= timestamp and offset >= start_offset:
            if reached >= _I64_LIMIT or offset > header.last_offset:
                raise CorruptBatch(f"a record claims the offset {offset}, the time {reached}")
            return FoundTimestamp(reached, offset, header.leader_epoch)
        if number % AT_ONCE_RECORDS == 0:
            yield None
    return None


def _latest_in_batch(segment: Segment, batch: FoundBatch, start_offset: int) -> Steps[int]:
    header = batch.header
    base_timestamp, own_times = header.base_timestamp, not header.is_log_append_time
    latest = NO_TIMESTAMP
    payload = yield from _opened(segment, batch)
    for number, (offset, delta, *_) in enumerate(record_slices(payload, header), 1):
        if offset >= start_offset:
            latest = max(latest, base_timestamp + delta if own_times else header.max_timestamp)
        if number % AT_ONCE_RECORDS == 0:
            yield None
    return latest


def _opened(segment: Segment, found: FoundBatch) -> Steps[bytes]:
    """The bytes of a batch's records."""
    batch, header = segment.batch_bytes(found), found.header
    if not has_valid_crc(batch):
        raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} does not fit")
    payload = inflated(batch, header, AT_ONCE_BYTES)
    if isinstance(payload, BatchTooLarge):
        payload = yield partial(inflated, batch, header, DEFAULT_LIMIT_BYTES)
    if isinstance(payload, CorruptBatch):
        raise payload
    return payload
