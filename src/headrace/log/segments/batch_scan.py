"""Reads a doubted `.log` file once, from its start, and yields the batches that are sound and fit together.

The checksum does not cover base offset and leader epoch, because leaders stamp them. So these two are judged by their
neighbours: neither ever falls, and a batch that leaves a gap or raises the epoch counts only if what follows agrees. One exception:
the epoch falls where the checkpoint of leader epochs says so. Such batches were acknowledged by a leader under a coordination store
that had been restored from a backup, before leaders refused epochs that their log had seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.ids import NO_LEADER_EPOCH
from headrace.log.files.disk import File
from headrace.log.leader_epochs import LeaderEpochs
from headrace.records.batch_view import (
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    has_valid_crc,
    read_header,
)

_CHUNK_BYTES: Final = 1024 * 1024  # more would leave the processor's caches

ScannedBatch = tuple[memoryview, BatchHeader]


class BatchScan:
    """Sound batches of a file from its start, each byte read once; ends quietly where they stop being sound."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._buffer = b""
        self._at = 0  # start of the next batch in the buffer
        self._read_to = 0  # end of the buffer in the file

    def __iter__(self) -> "BatchScan":
        return self

    def __next__(self) -> ScannedBatch:
        self._need(HEADER_BYTES)
        header = read_header(self._buffer, self._at)
        if header.magic != MAGIC or header.size < HEADER_BYTES or header.last_offset_delta < 0:
            raise StopIteration
        self._need(header.size)
        batch = memoryview(self._buffer)[self._at : self._at + header.size]
        if not has_valid_crc(batch):
            raise StopIteration
        self._at += header.size
        return batch, header

    def _need(self, length: int) -> None:
        held = len(self._buffer) - self._at
        if length > held + self._file.size - self._read_to:
            raise StopIteration
        if length > held:
            chunk = self._file.read(self._read_to, max(_CHUNK_BYTES, length - held))
            self._read_to += len(chunk)
            self._buffer = self._buffer[self._at :] + chunk
            self._at = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known around a doubted segment."""

    start_offset: int
    leader_epoch: int
    next_segment_offset: int | None  # None for the last segment
    has_gaps: bool  # compacted topics have, and their followers with them
    epochs: LeaderEpochs  # as checkpointed, which is durable whenever the batches are


def fitting_batches(scan: Iterator[ScannedBatch], known: Surroundings) -> Iterator[ScannedBatch]:
    """The batches up to the first one whose place in the log cannot be right."""
    expected, epoch = known.start_offset, known.leader_epoch
    held: ScannedBatch | None = (
        None  # a batch with a gap or a higher epoch, held until the next batch confirms it
    )
    epoch_before_held = epoch
    is_plausible = left_gap = False
    for batch, header in scan:
        falls = header.leader_epoch < epoch
        # Where the epochs rise without the batch that is held, that batch's epoch is the wrong one.
        is_held_wrong = held is not None and (left_gap or header.leader_epoch >= epoch_before_held)
        if not _follows(header, expected, known) or (
            falls and (is_held_wrong or not _is_known_fall(header, expected, known))
        ):
            # One of the two lies. If they overlap and there is a gap, it is the one that left it.
            is_plausible &= header.base_offset >= expected or not left_gap
            break
        if held is not None:
            yield held
            held = None
        if header.base_offset > expected or header.leader_epoch > epoch:
            held, epoch_before_held = (batch, header), epoch
            left_gap = header.base_offset > expected
            is_plausible = _is_plausible(header, known, left_gap=left_gap)
        else:
            yield batch, header
        expected, epoch = header.next_offset, header.leader_epoch
    if held is not None and is_plausible:
        yield held


def _follows(header: BatchHeader, expected_offset: int, known: Surroundings) -> bool:
    end = known.next_segment_offset
    return header.base_offset >= expected_offset and (end is None or header.next_offset <= end)


def _is_known_fall(header: BatchHeader, expected_offset: int, known: Surroundings) -> bool:
    """Whether the checkpoint agrees with a batch whose epoch is lower than that of the batch before."""
    if header.base_offset != expected_offset and not known.has_gaps:
        return False
    return known.epochs.epoch_at(header.base_offset) == header.leader_epoch


def _is_plausible(header: BatchHeader, known: Surroundings, *, left_gap: bool) -> bool:
    """Whether an odd batch counts without its successor's word."""
    if known.epochs.epoch_at(header.base_offset) not in (NO_LEADER_EPOCH, header.leader_epoch):
        return False
    # Where another segment follows, a batch that was moved up would have reached into it.
    return not left_gap or known.has_gaps or known.next_segment_offset is not None
