"""A log of keyed records to be compacted, read back the way clients do."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from headrace.ids import TopicPartition
from headrace.log.append_result import Appended
from headrace.log.compaction.compaction_job import CompactionLimits, CompactionProgress
from headrace.log.compaction.compaction_plan import Cleanable
from headrace.log.compaction.compaction_rewrite import Compaction
from headrace.log.compaction.log_compaction import assess, install, plan
from headrace.log.compaction.offset_map import SLOT_BYTES
from headrace.log.files.file_slice import FileSlice
from headrace.log.files.os_disk import OsDisk
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.producers.producer_state import NOT_VERIFIED
from headrace.log.recovery import Checkpointed, open_log
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import BatchHeader, headers_in
from headrace.records.control_batch import ControlType, build_marker, read_marker
from tests.support.crashing_disk import UnsyncedDisk

START_MS = 1_700_000_000_000
HERE = TopicPartition("keyed", 0)
COMPACTED = LogConfig(cleanup_compact=True, cleanup_delete=False, index_interval_bytes=200)

Pair = tuple[bytes | None, bytes | None]


class StoredBatch(NamedTuple):
    """A batch as it stands in the log."""

    header: BatchHeader
    records: list[Record]
    content: bytes


def room_for(keys: int) -> CompactionLimits:
    """Limits under which the offset map holds exactly so many keys."""
    return CompactionLimits(dedupe_buffer_bytes=keys * SLOT_BYTES, load_factor=1.0)


class KeyedLog:
    """Appends, compaction and what a reader sees; the clock is a field."""

    def __init__(
        self, directory: Path, config: LogConfig = COMPACTED, disk: OsDisk | None = None
    ) -> None:
        self.directory = directory
        self.config = config
        self.now_ms = START_MS
        self.sequences: dict[int, int] = {}
        self.log = self._open(disk or UnsyncedDisk(), None)

    def _open(self, disk: OsDisk, checkpointed: Checkpointed | None) -> PartitionLog:
        return open_log(
            disk,
            str(self.directory),
            HERE,
            self.config,
            now_ms=self.now_ms,
            checkpointed=checkpointed,
        )

    def reopen(
        self, *, disk: OsDisk | None = None, checkpointed: Checkpointed | None = None
    ) -> None:
        """As after a kill: nothing is written on the way down."""
        self.log.abandon()
        known = replace(checkpointed or Checkpointed(), cleaned_to=self.log.cleaned_to)
        self.log = self._open(disk or UnsyncedDisk(), known)

    # ---- writing

    def put(self, *pairs: Pair, codec: int = 0, timestamp: int | None = None) -> int:
        """Append one batch of a producer that is not idempotent; returns its base offset."""
        return self._append(pairs, BatchOptions(codec=codec), timestamp)

    def put_by(
        self,
        producer_id: int,
        *pairs: Pair,
        codec: int = 0,
        transactional: bool = False,
        epoch: int = 0,
    ) -> int:
        """Append one batch of an idempotent or transactional producer."""
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + len(pairs)
        options = BatchOptions(
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        return self._append(pairs, options, None)

    def _append(self, pairs: tuple[Pair, ...], options: BatchOptions, timestamp: int | None) -> int:
        at = self.now_ms if timestamp is None else timestamp
        records = [Record(step, at + step, *pair) for step, pair in enumerate(pairs)]
        batch = build_batch(records, options)
        appended = self.log.append_as_leader(
            [batch], leader_epoch=3, now_ms=self.now_ms, verified=NOT_VERIFIED
        )
        assert isinstance(appended, Appended), appended
        return appended.base_offset

    def end(self, producer_id: int, control_type: ControlType, *, epoch: int = 0) -> int:
        """Append a marker; returns its offset."""
        marker = build_marker(
            control_type,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=5,
            timestamp=self.now_ms,
        )
        appended = self.log.append_as_leader(
            [marker], leader_epoch=3, now_ms=self.now_ms, from_client=False
        )
        assert isinstance(appended, Appended), appended
        return appended.base_offset

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    # ---- compacting

    @property
    def last_stable_offset(self) -> int:
        self.log.producers.on_high_watermark(self.log.log_end_offset)
        unstable = self.log.producers.first_unstable_offset
        return self.log.log_end_offset if unstable is None else unstable

    def assess(self) -> Cleanable:
        return assess(
            self.log,
            last_stable_offset=self.last_stable_offset,
            now_ms=self.now_ms,
        )

    def compact(
        self,
        limits: CompactionLimits | None = None,
        pace: Callable[[int], None] = lambda _: None,
    ) -> CompactionProgress:
        """One run over all that is cleanable, due or not, with a disk of its own."""
        job = plan(self.log, self.assess(), now_ms=self.now_ms)
        run = Compaction(UnsyncedDisk(), job, limits or CompactionLimits(), pace)
        for rewritten in run.rewrite():
            assert install(self.log, rewritten, now_ms=self.now_ms)
        self.log.cleaned_to = run.progress.first_dirty_offset
        return run.progress

    def compact_all(self, limits: CompactionLimits | None = None) -> CompactionProgress:
        """Close the active segment first, so that everything is cleanable."""
        self.roll()
        return self.compact(limits)

    # ---- reading

    def batches(self, start_offset: int | None = None) -> list[StoredBatch]:
        """Every batch from an offset on, through the log's own reads."""
        log = self.log
        offset = log.log_start_offset if start_offset is None else start_offset
        found: list[StoredBatch] = []
        while offset < log.log_end_offset:
            piece = log.read(offset, 1000, log.log_end_offset)
            assert isinstance(piece, FileSlice), piece
            content = piece.copy()
            if not content:
                break
            for position, header in headers_in(content):
                batch = content[position : position + header.size]
                found.append(StoredBatch(header, read_batch(batch), batch))
                offset = header.next_offset
        return found

    def records(self) -> list[Record]:
        """Every data record that is stored."""
        return [
            record
            for batch in self.batches()
            if not batch.header.is_control
            for record in batch.records
        ]

    def pairs(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """(offset, key, value) of every data record that is stored."""
        return [(record.offset, record.key, record.value) for record in self.records()]

    def markers(self) -> list[int]:
        """Offsets of the control batches that have a record."""
        return [
            batch.header.base_offset
            for batch in self.batches()
            if batch.header.is_control and batch.records
        ]

    def committed(self) -> Iterator[Record]:
        """What a read_committed client makes of the log, by Kafka's rules for clients."""
        starts = sorted(
            self.log.aborted_transactions(0, self.log.log_end_offset),
            key=lambda txn: txn.first_offset,
        )
        aborted: set[int] = set()
        for batch in self.batches():
            header = batch.header
            while starts and starts[0].first_offset <= header.last_offset:
                aborted.add(starts.pop(0).producer_id)
            if header.is_control:
                if batch.records and read_marker(batch.content)[0] == ControlType.ABORT:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                yield from (r for r in batch.records if r.offset < self.last_stable_offset)

    def table(self) -> dict[bytes | None, bytes]:
        """The newest committed value of each key; deleted keys are absent."""
        state: dict[bytes | None, bytes] = {}
        for record in self.committed():
            if record.value is None:
                state.pop(record.key, None)
            else:
                state[record.key] = record.value
        return state

    def sequence_ends(self) -> dict[int, tuple[int, int]]:
        """Epoch and last sequence of each producer."""
        return {
            entry.producer_id: (entry.epoch, entry.last_sequence) for entry in self.log.producers
        }
