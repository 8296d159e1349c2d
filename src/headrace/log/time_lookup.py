"""Offsets by time: the first record at or after a timestamp, and the record with the largest one."""

from typing import NamedTuple

from headrace.log.partition_log import PartitionLog
from headrace.log.segment import FoundBatch, Segment
from headrace.records.batch_reader import read_batch
from headrace.records.batch_view import NO_TIMESTAMP


class FoundTimestamp(NamedTuple):
    """A record that answers a question about time."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(log: PartitionLog, timestamp: int) -> FoundTimestamp | None:
    """The first record whose timestamp is not before `timestamp`; None if there is none."""
    start = log.log_start_offset
    for segment in log.segments.from_offset(start):
        if segment.max_timestamp.timestamp >= timestamp:
            while (batch := segment.first_batch_reaching(timestamp, start)) is not None:
                found = _first_in_batch(segment, batch, timestamp, log.log_start_offset)
                if found is not None:
                    return found
                start = batch.header.next_offset
    return None


def with_max_timestamp(log: PartitionLog) -> FoundTimestamp | None:
    """The first record that has the largest timestamp of the log; None if no record has one."""
    segments = log.segments.from_offset(log.log_start_offset)
    timestamp = max(_max_timestamp(segment, log.log_start_offset) for segment in segments)
    return None if timestamp < 0 else first_at_or_after(log, timestamp)


def _max_timestamp(segment: Segment, start_offset: int) -> int:
    if segment.base_offset >= start_offset:
        return segment.max_timestamp.timestamp
    # The log starts inside this segment, whose largest timestamp may be a deleted record's.
    largest = NO_TIMESTAMP
    for found in segment.batches(segment.offset_index.position_for(start_offset)):
        if found.header.base_offset >= start_offset:
            largest = max(largest, found.header.max_timestamp)
        elif found.header.last_offset >= start_offset:
            left = (r for r in read_batch(segment.batch_bytes(found)) if r.offset >= start_offset)
            largest = max((record.timestamp for record in left), default=largest)
    return largest


def _first_in_batch(
    segment: Segment, batch: FoundBatch, timestamp: int, start_offset: int
) -> FoundTimestamp | None:
    # The batch is opened: only its records know which of them reached the timestamp.
    for record in read_batch(segment.batch_bytes(batch)):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return FoundTimestamp(record.timestamp, record.offset, batch.header.leader_epoch)
    return None
