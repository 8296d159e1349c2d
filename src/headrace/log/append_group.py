"""How many batches at the head of a list are written by one write (pure).

Batches that came together cost less if they are written together: one system call, one update of the indexes, one step of the
high watermark. A group consists of valid batches of one producer, in sequence, that all fit into the active segment. The batches
behind it are left to the next call.
"""

from collections.abc import Sequence

from headrace.log.append_check import is_plain
from headrace.log.log_config import LogConfig
from headrace.log.segments.segment import Segment
from headrace.records.batch_view import NO_TIMESTAMP, BatchHeader, sequence_after


def group_size(
    batches: Sequence[bytearray | memoryview],
    headers: Sequence[BatchHeader],
    config: LogConfig,
    segment: Segment,
    end_offset: int,
    now_ms: int,
) -> int:
    """How many of the batches are written together behind `end_offset`. The caller knows that the first may be appended."""
    if segment.size == 0:
        return 1  # the first batch of a segment decides when the segment is rolled
    first = headers[0]
    producer_id, epoch = first.producer_id, first.producer_epoch
    sequence = sequence_after(first.last_sequence, 1)
    count, size, last_offset = 1, len(batches[0]), end_offset + first.last_offset_delta
    oldest = newest = first.max_timestamp
    for header in headers[1:]:
        if header.producer_id != producer_id or not is_plain(
            batches[count], header, config, now_ms
        ):
            break
        if producer_id >= 0:
            if header.base_sequence != sequence or header.producer_epoch != epoch:
                break
            sequence = sequence_after(sequence, header.last_offset_delta + 1)
        timestamp = header.max_timestamp
        if timestamp > newest:
            newest = timestamp
        elif timestamp < oldest:
            oldest = timestamp
        size += len(batches[count])
        last_offset += header.last_offset_delta + 1
        count += 1
    if oldest <= NO_TIMESTAMP or segment.should_roll(
        last_offset, size, newest, now_ms, batches=count
    ):
        return 1
    return count
