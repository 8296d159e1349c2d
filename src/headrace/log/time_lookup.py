"""Offsets by time: the first record at or after a timestamp, and the record with the largest one."""

from typing import NamedTuple

from headrace.log.partition_log import PartitionLog
from headrace.log.segment import FoundBatch, Segment
from headrace.records.batch_reader import read_batch


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
    newest = max(segments, key=lambda segment: segment.max_timestamp.timestamp)
    timestamp = newest.max_timestamp.timestamp
    return None if timestamp < 0 else first_at_or_after(log, timestamp)


def _first_in_batch(
    segment: Segment, batch: FoundBatch, timestamp: int, start_offset: int
) -> FoundTimestamp | None:
    # The batch is opened: only its records know which of them reached the timestamp.
    for record in read_batch(segment.batch_bytes(batch)):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return FoundTimestamp(record.timestamp, record.offset, batch.header.leader_epoch)
    return None
