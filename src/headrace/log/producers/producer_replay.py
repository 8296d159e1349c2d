"""Producer state and the batches of a log: one batch at a time, or all behind a snapshot.

An append and a recovery take this same path. Only markers are opened.
"""

from contextlib import suppress
from typing import Final

from headrace.errors import CorruptBatch
from headrace.log.producers.producer_snapshots import ProducerSnapshots
from headrace.log.producers.producer_state import KnownBatch, ProducerState, Verification
from headrace.log.segments.segment import Segment
from headrace.log.segments.segment_list import SegmentList
from headrace.records.batch_view import BatchHeader, Buffer
from headrace.records.control_batch import ControlType, read_marker
from headrace.wire.refusal import Refusal

_MARKERS: Final = frozenset(ControlType)
_ENTRIES_RECALLED: Final = 16  # of the offset index: as many large batches, or 64 KiB of small ones


def check_batch_of_producer(
    producers: ProducerState,
    header: BatchHeader,
    batch: Buffer,
    verified: Verification | None = None,
    *,
    from_client: bool = True,
) -> KnownBatch | Refusal | None:
    """Whether a producer's data or the marker that ends it may be appended; what it repeats, if it does."""
    if header.is_control:
        coordinator_epoch = read_marker(batch)[1]
        return producers.check_marker(header.producer_id, header.producer_epoch, coordinator_epoch)
    return producers.check(header, verified, from_client=from_client)


def note_batch(
    producers: ProducerState, header: BatchHeader, segment: Segment, batch: Buffer
) -> None:
    """Bring producer state and aborted index up to date with a producer's batch that stands in `segment`."""
    if not header.is_control:
        producers.note_data(header)
        return
    if header.record_count == 0:
        return  # what compaction leaves of a transaction that is gone with its marker
    control_type, coordinator_epoch = read_marker(batch)
    if control_type not in _MARKERS:
        return
    ended = producers.note_marker(header, control_type, coordinator_epoch)
    if ended is not None and ended.aborted:
        segment.txn_index.append(producers.aborted_txn(ended))


def producers_at(
    end_offset: int, segments: SegmentList, snapshots: ProducerSnapshots
) -> ProducerState:
    """The state as it was at `end_offset`: from the newest snapshot before it, and the batches behind."""
    snapshots.remove_after(end_offset)
    start, producers = snapshots.load_latest(end_offset)
    if len(producers):
        _recall_batches(producers, start, segments)
    for segment in segments.from_offset(start):
        if segment.base_offset >= end_offset:
            break
        segment.txn_index.truncate(max(start, segment.base_offset))
        first = segment.find(start)
        if first is None:
            continue
        for position, header in segment.batches(first.position):
            if header.base_offset >= end_offset:
                break
            if header.base_offset >= start and header.producer_id >= 0:
                batch = segment.log.read(position, header.size) if header.is_control else b""
                note_batch(producers, header, segment, batch)
        if segment is not segments.active:
            segment.close()  # there may be thousands
    return producers


def _recall_batches(producers: ProducerState, start: int, segments: SegmentList) -> None:
    """Learn from the log which batches came before those that a snapshot which Kafka wrote knows: each producer's last.

    A broker that stops in order may have written several of a producer's requests and answered none of them. They all come
    again, the first one first; taken for a gap in its sequence, that one would be the end of the producer.
    """
    segment = segments.from_offset(start - 1)[0]
    if segment.base_offset >= start:
        return
    first = segment.offset_index.position_well_before(start - 1, _ENTRIES_RECALLED)
    # Best effort: a damaged batch is reported by the reader that needs it.
    with suppress(CorruptBatch):
        for _, header in segment.batches(first):
            if header.base_offset >= start:
                break
            if header.producer_id >= 0 and not header.is_control:
                producers.recall(header)
    if segment is not segments.active:
        segment.close()
