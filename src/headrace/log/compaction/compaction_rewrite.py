"""The work of compaction: reads sealed segments, writes `.cleaned` ones. Never touches a live log.

Runs wherever blocking is allowed, even in another process: it works from a `CompactionJob`, which is plain values, and
from a `Disk` of its own, because a disk's descriptors belong to one thread. The owner of the log puts each rewritten
segment in place (`compaction.install`), in the order in which they come.

Order: the offset map of the dirty part is built first, as far as it fits into its memory; where it ends, the run ends.
Dirty sources are synced before anything older is dropped in their favour. Then every segment from the log's start up
to that end is rewritten. A batch that cannot be opened is copied as it is.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from headrace.errors import CorruptBatch
from headrace.log.batch_filter import (
    checked_slices,
    empty_batch,
    filter_batch,
    inflate,
)
from headrace.log.compaction.compaction_job import (
    CompactionJob,
    CompactionLimits,
    CompactionProgress,
    RewrittenSegment,
)
from headrace.log.compaction.compaction_plan import SegmentFacts, group_segments
from headrace.log.compaction.compaction_txns import CompactedTxns
from headrace.log.compaction.offset_map import OffsetMap, entries_in
from headrace.log.compaction.swap import CLEANED
from headrace.log.files.disk import Disk
from headrace.log.segments.segment import (
    LOG_SUFFIX,
    TXN_INDEX_SUFFIX,
    Segment,
    SegmentSizes,
    offset_name,
)
from headrace.log.segments.txn_index import AbortedTxn, TxnIndex
from headrace.records.batch_view import (
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    has_valid_crc,
    read_header,
)
from headrace.records.control_batch import read_marker

_logger = logging.getLogger(__name__)

_UNKNOWN_CONTROL_TYPE: Final = -1
_MAX_POSITION: Final = 2**31 - 1  # what an offset index can name

Batch = memoryview | bytearray


def _no_pace(_: int) -> None:
    """No throttle."""


@dataclass(slots=True)
class Compaction:
    """One run over one log. `pace` is called with each count of bytes read: it may wait, or raise to end the run."""

    disk: Disk
    job: CompactionJob
    limits: CompactionLimits = field(default_factory=CompactionLimits)
    pace: Callable[[int], None] = _no_pace
    progress: CompactionProgress = field(init=False)
    _map: OffsetMap = field(init=False)
    _map_end: int = field(init=False)

    def __post_init__(self) -> None:
        self._map_end = self.job.first_dirty_offset
        self.progress = CompactionProgress(first_dirty_offset=self._map_end)

    def rewrite(self) -> Iterator[RewrittenSegment]:
        """Yield the rewritten segments one after the other, without those that did not change."""
        dirty = [
            segment
            for segment in self.job.segments
            if segment.end_offset > self.job.first_dirty_offset
        ]
        self._build_map(dirty)
        for segment in dirty:
            if segment.base_offset < self._map_end:
                self._sync(segment)
        txns = CompactedTxns(self._aborted(0))
        segments = [part for part in self.job.segments if part.base_offset < self._map_end]
        for group in group_segments(segments, self.job.config):
            rewritten = self._rewrite_group(group, txns)
            if rewritten is not None:
                yield rewritten
        self.progress.first_dirty_offset = self._map_end

    # ---- the offset map

    def _build_map(self, dirty: list[SegmentFacts]) -> None:
        limits = self.limits
        most = entries_in(limits.dedupe_buffer_bytes, limits.load_factor)
        self._map = OffsetMap(self._count_records(dirty, most), limits.load_factor)
        txns = CompactedTxns(self._aborted(self.job.first_dirty_offset))
        for segment in dirty:
            if not self._map_segment(segment, txns):
                break
            self._map_end = segment.end_offset
        self.progress.map_entries = len(self._map)

    def _count_records(self, dirty: list[SegmentFacts], most: int) -> int:
        """How many keys there can be, so that the map of a small log is small."""
        count = 1
        for segment in dirty:
            file = self.disk.open(self._path(segment, LOG_SUFFIX), segment.size)
            position = 0
            while count < most and position + HEADER_BYTES <= segment.size:
                header = read_header(file.read(position, HEADER_BYTES))
                count += max(header.record_count, 0)
                position += max(header.size, HEADER_BYTES)
            file.close()
        return min(count, most)

    def _map_segment(self, segment: SegmentFacts, txns: CompactedTxns) -> bool:
        """Put the keys of a segment into the map. Returns whether all of it did fit."""
        for batch, header in self._batches(segment):
            if header.next_offset <= self.job.first_dirty_offset:
                continue
            if header.is_control:
                txns.on_marker(header, _control_type(batch, header))
            elif not txns.on_data(header) and not self._map_batch(batch, header):
                return False
            self._map_end = header.next_offset
        return True

    def _map_batch(self, batch: memoryview, header: BatchHeader) -> bool:
        if header.record_count > self._map.room and len(self._map):
            return False
        try:
            records = checked_slices(self._inflate(batch, header), header)
        except CorruptBatch:
            return True  # stays as it is; counted when it is copied
        for offset, _, key, *_ in records:
            if key is not None and offset >= self.job.first_dirty_offset:
                if not self._map.room:
                    # One batch has more keys than the map. The run ends inside it, because it would make no progress otherwise.
                    self._map_end = offset
                    return False
                self._map.put(key, offset)
        return True

    def _aborted(self, start_offset: int) -> Iterator[AbortedTxn]:
        """Index entries of transactions that end at or after an offset, in the order of their markers."""
        for segment in self.job.segments:
            if segment.txn_index_bytes and segment.end_offset > start_offset:
                path = self._path(segment, TXN_INDEX_SUFFIX)
                index = TxnIndex(self.disk, path, segment.txn_index_bytes)
                entries = [txn for txn in index if txn.last_offset >= start_offset]
                assert index.file is not None
                index.file.close()
                yield from entries
        yield from self.job.aborted_later

    # ---- the new segments

    def _rewrite_group(
        self, group: list[SegmentFacts], txns: CompactedTxns
    ) -> RewrittenSegment | None:
        job = self.job
        base_offset = group[0].base_offset
        cleaned = Segment.create(
            self.disk,
            self._path(group[0], ""),
            base_offset,
            job.config,
            now_ms=job.now_ms,
            stage=CLEANED,
        )
        try:
            changed = self._rewrite_into(cleaned, group, txns) or len(group) > 1
            if changed:
                cleaned.seal()
                cleaned.sync()
        except BaseException:
            cleaned.remove()
            raise
        if not changed:
            cleaned.remove()
            return None
        cleaned.close()
        txn_file = cleaned.txn_index.file
        return RewrittenSegment(
            base_offset=base_offset,
            replaces=tuple((segment.base_offset, segment.size) for segment in group),
            sizes=SegmentSizes(
                cleaned.size,
                cleaned.offset_index.file.size,
                cleaned.time_index.file.size,
                None if txn_file is None else txn_file.size,
            ),
            truncations=self.job.truncations,
        )

    def _rewrite_into(
        self, cleaned: Segment, group: list[SegmentFacts], txns: CompactedTxns
    ) -> bool:
        """Write the remaining records of a group of segments. Returns whether anything was dropped or changed."""
        changed = False
        room = _MAX_POSITION - sum(segment.size for segment in group)
        for segment in group:
            for batch, header in self._batches(segment):
                kept = self._compact(batch, header, txns, cleaned.txn_index)
                if kept is not None and len(kept) - header.size > room:
                    kept = batch  # a delete horizon makes a batch larger; it must wait where that is too much
                changed = changed or kept is not batch
                room += header.size
                if kept is not None:
                    room -= len(kept)
                    kept_header = header if kept is batch else read_header(kept)
                    cleaned.append((kept,), (kept_header,))
                    self._count(header, kept_header.record_count, len(kept))
                else:
                    self._count(header, 0, 0)
        return changed

    def _compact(
        self, batch: memoryview, header: BatchHeader, txns: CompactedTxns, index: TxnIndex
    ) -> Batch | None:
        """The bytes to write for a batch: itself, what is left of it, or None."""
        if header.is_control:
            fate = txns.on_marker(header, _control_type(batch, header))
            if fate.aborted is not None:
                index.append(fate.aborted)
            return self._compact_idle_marker(batch, header) if fate.is_idle else batch
        if txns.on_data(header):
            return self._remains(batch, header)
        if header.base_offset >= self._map_end:
            return batch
        try:
            filtered = filter_batch(
                self._inflate(batch, header),
                header,
                self._is_newest,
                drops_tombstones=self._drops_tombstones(header),
                new_horizon_ms=self._new_horizon_ms(header),
            )
        except CorruptBatch as error:
            self._note_unreadable(header, error)
            return batch
        if filtered.batch is not None:
            return filtered.batch
        return batch if filtered.kept else self._remains(batch, header)

    def _is_newest(self, offset: int, key: bytes | None) -> bool:
        if offset >= self._map_end:
            return True
        return key is not None and self._map.get(key) <= offset

    def _drops_tombstones(self, header: BatchHeader) -> bool:
        """Whether their time is over, and the older values they stand for are gone with this run at the latest."""
        horizon_ms = header.delete_horizon_ms
        return (
            horizon_ms is not None
            and horizon_ms <= self.job.now_ms
            and header.next_offset <= self._map_end
        )

    def _new_horizon_ms(self, header: BatchHeader) -> int | None:
        # Readers get their time from the compaction that drops the older values on, and past the end of the map
        # these are still there.
        if header.next_offset > self._map_end:
            return None
        return self.job.now_ms + self.job.config.delete_retention_ms

    def _compact_idle_marker(self, batch: memoryview, header: BatchHeader) -> Batch | None:
        """A marker whose transaction has left no data. A producer's last one stays whole: it holds its epoch."""
        if header.record_count == 0:
            return self._remains(batch, header)
        if header.delete_horizon_ms is None:
            horizon_ms = self.job.now_ms + self.job.config.delete_retention_ms
            payload = self._inflate(batch, header)
            return filter_batch(payload, header, _everything, new_horizon_ms=horizon_ms).batch
        if header.delete_horizon_ms <= self.job.now_ms and not self._is_remembered(header):
            return None
        return batch

    def _remains(self, batch: memoryview, header: BatchHeader) -> Batch | None:
        """What stays of a batch without records."""
        if not self._is_remembered(header):
            return None
        return batch if header.record_count == 0 else empty_batch(header)

    def _is_remembered(self, header: BatchHeader) -> bool:
        """Whether a batch must leave a trace: the last of its producer, and the end of what is compacted."""
        if header.next_offset == self.job.end_offset:
            return True
        last = self.job.last_written.get(header.producer_id)
        if last is None:
            return False
        if last.data_offset >= 0:
            return header.last_offset == last.data_offset
        return header.is_control and header.producer_epoch == last.epoch

    # ---- files and counts

    def _batches(self, segment: SegmentFacts) -> Iterator[tuple[memoryview, BatchHeader]]:
        """Batches of a sealed segment, read in portions. CorruptBatch if the file is not whole batches."""
        file = self.disk.open(self._path(segment, LOG_SUFFIX), segment.size)
        position, wanted = 0, HEADER_BYTES
        try:
            while position < segment.size:
                left = segment.size - position
                asked = min(left, max(wanted, self.limits.io_buffer_bytes))
                chunk = file.read(position, asked)
                self.progress.bytes_read += len(chunk)
                self.pace(len(chunk))
                if len(chunk) < asked or left < HEADER_BYTES:
                    raise CorruptBatch(f"{file.path}: {len(chunk)} bytes at {position}")
                at, wanted = 0, HEADER_BYTES
                while at + HEADER_BYTES <= len(chunk):
                    header = read_header(chunk, at)
                    if header.magic != MAGIC or not HEADER_BYTES <= header.size <= left - at:
                        raise CorruptBatch(f"{file.path}: no whole batch at {position + at}")
                    if at + header.size > len(chunk):
                        wanted = header.size
                        break
                    yield memoryview(chunk)[at : at + header.size], header
                    at += header.size
                position += at
        finally:
            file.close()

    def _inflate(self, batch: memoryview, header: BatchHeader) -> bytes:
        # A damaged batch must not be given a checksum that fits.
        if not has_valid_crc(batch):
            raise CorruptBatch(f"the checksum of the batch at {header.base_offset} does not fit")
        return inflate(batch, header, self.limits.inflated_batch_bytes)

    def _sync(self, segment: SegmentFacts) -> None:
        file = self.disk.open(self._path(segment, LOG_SUFFIX), segment.size)
        file.syncer()()
        file.close()

    def _note_unreadable(self, header: BatchHeader, error: CorruptBatch) -> None:
        self.progress.unreadable_batches += 1
        _logger.warning(
            "%s: the batch at %d cannot be compacted and stays as it is (%s)",
            self.job.topic_partition,
            header.base_offset,
            error,
        )

    def _count(self, header: BatchHeader, kept: int, written_bytes: int) -> None:
        self.progress.records_kept += kept
        self.progress.records_dropped += header.record_count - kept
        self.progress.bytes_written += written_bytes

    def _path(self, segment: SegmentFacts, suffix: str) -> str:
        return f"{self.job.directory}/{offset_name(segment.base_offset)}{suffix}"


def _everything(_offset: int, _key: bytes | None) -> bool:
    return True


def _control_type(batch: memoryview, header: BatchHeader) -> int | None:
    if header.record_count == 0:
        return None
    try:
        return read_marker(batch)[0]
    except CorruptBatch:
        return _UNKNOWN_CONTROL_TYPE
