"""One partition's log: ordered segments, the offsets that bound it, its producers and its leader epochs.

One owner, no locks, no clock. Opened by `recovery.open_log`. The log knows neither the high watermark nor who leads:
callers pass bounds in. Order of an append: decide, write the batch, move the end offset (indexes and producer state
follow, and a failure there must not hand out the offset twice), flush if the policy says so.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from uuid import UUID

from headrace.errors import CorruptBatch, DiskFailed, LogClosed
from headrace.ids import TopicPartition
from headrace.log.append_check import (
    Opened,
    acceptable_form,
    is_plain,
)
from headrace.log.append_result import Appended, Refused
from headrace.log.checkpoint import LEADER_EPOCH_FILE, write_epochs
from headrace.log.disk import Disk
from headrace.log.file_slice import FileSlice
from headrace.log.flush import FlushPlan, plan_flush
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.log_config import LogConfig
from headrace.log.producer_replay import check_batch_of_producer, note_batch, producers_at
from headrace.log.producer_snapshots import ProducerSnapshots
from headrace.log.producer_state import ProducerState
from headrace.log.retired_segments import RetiredSegments
from headrace.log.segment import Segment, offset_name
from headrace.log.segments import Segments
from headrace.log.txn_index import AbortedTxn, aborted_between
from headrace.records.batch_view import (
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    has_valid_crc,
    headers_in,
    read_header,
    stamp,
    stamp_append_time,
    stamped_header,
    unstamp,
)
from headrace.wire.error_code import ErrorCode


class PartitionLog:
    """See the module's text. Fields are read by the parts that decide on a log; only this class changes them."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        topic_id: UUID | None = None,
    ) -> None:
        """An unopened log: `recovery.open_log` fills it."""
        self.disk = disk
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.segments = Segments()
        self.leader_epochs = LeaderEpochs()
        self.producers = ProducerState()
        self.snapshots = ProducerSnapshots(disk, directory)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.last_flush_ms = 0
        self.is_closed = False
        # Directories with names that are not durable yet; at first also the one that holds our own.
        self._changed_directories = [directory.rpartition("/")[0] or ".", directory]
        self._epochs_are_durable = False
        self._cuts = 0  # truncations so far: a flush from before one proves nothing after it
        self._retired = RetiredSegments()

    # ---- appending

    def append_as_leader(
        self,
        batch: bytearray | memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        from_client: bool = True,
        header: BatchHeader | None = None,
        opened: Opened | None = None,
    ) -> Appended | Refused:
        """Check one batch, stamp its place into its bytes, write it.

        `header` if the caller has read it already; `opened` if the answer was `OPEN_FIRST` before.
        """
        self._require_open()
        if header is None or not (from_client and is_plain(batch, header, self.config, now_ms)):
            checked = acceptable_form(
                batch,
                self.config,
                now_ms,
                from_client=from_client,
                topic_partition=self.topic_partition,
                opened=opened,
            )
            if isinstance(checked, Refused):
                return checked
            header, batch = checked
        if header.producer_id >= 0:
            known = check_batch_of_producer(self.producers, header, batch)
            if isinstance(known, Refused):
                return known
            if known is not None:
                return Appended(known.base_offset, known.last_offset, known.timestamp, True)
        append_time, given = NO_TIMESTAMP, header
        if self.config.log_append_time:
            append_time = now_ms
            stamp_append_time(batch, now_ms)
            header = read_header(batch)
        base_offset = self.log_end_offset
        stamp(batch, 0, base_offset, leader_epoch)
        try:
            self._write(batch, stamped_header(header, base_offset, leader_epoch), now_ms)
        except DiskFailed:
            unstamp(batch, given)  # it may be tried again
            raise
        return Appended(base_offset, self.log_end_offset - 1, append_time)

    def append_as_follower(self, records: bytes | bytearray | memoryview, *, now_ms: int) -> int:
        """Write batches as the leader stamped them. Returns the new end offset.

        CorruptBatch if one is damaged or would go backwards; whole batches before it are in the log then.
        """
        self._require_open()
        with memoryview(records) as view:
            for position, header in headers_in(view):
                batch = view[position : position + header.size]
                if header.base_offset < self.log_end_offset:
                    raise CorruptBatch(
                        f"{self.topic_partition}: batch at {header.base_offset} behind "
                        f"the log's end {self.log_end_offset}"
                    )
                if header.magic != MAGIC or not has_valid_crc(batch):
                    raise CorruptBatch(
                        f"{self.topic_partition}: format or checksum of the batch at "
                        f"{header.base_offset} does not fit"
                    )
                self._write(batch, header, now_ms)
        return self.log_end_offset

    def _write(self, batch: bytearray | memoryview, header: BatchHeader, now_ms: int) -> None:
        if header.leader_epoch != self.leader_epochs.latest:
            self.assign_epoch(header.leader_epoch, header.base_offset)
        segment = self.segments.active
        if segment.should_roll(header.last_offset, len(batch), header.max_timestamp, now_ms):
            segment = self.roll(now_ms, header.base_offset)
        segment.append(batch, header)
        self.log_end_offset = header.next_offset
        if header.producer_id >= 0:
            note_batch(self.producers, header, segment, batch)
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush(now_ms)

    def write_run(
        self,
        batches: Sequence[bytearray | memoryview],
        headers: Sequence[BatchHeader],
        *,
        now_ms: int,
    ) -> None:
        """For `append_run`: what it has found to belong here and stamped."""
        self.segments.active.append_run(batches, headers)
        self.log_end_offset = headers[-1].next_offset
        for header in headers:
            if header.producer_id >= 0:
                self.producers.note_data(header)
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush(now_ms)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that a leader of `epoch` writes from `start_offset` on, before anything of it is served."""
        epochs = LeaderEpochs(self.leader_epochs.entries)
        if epochs.assign(epoch, start_offset):
            # The file first: a full disk must not leave an epoch that only memory knows.
            self._write_epochs(epochs, durable=False)
            self.leader_epochs = epochs

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Start a new segment at the log's end, unless the active one is still empty."""
        base_offset = self.log_end_offset if base_offset is None else base_offset
        active = self.segments.active
        if active.size == 0 and active.base_offset == base_offset:
            return active
        segment = Segment.create(
            self.disk,
            f"{self.directory}/{offset_name(base_offset)}",
            base_offset,
            self.config,
            now_ms=now_ms,
        )
        if active.size == 0:
            self.segments.remove(active)
            active.remove()
        else:
            active.seal()
            if self.recovery_point >= base_offset:
                active.sync()  # no later flush will: all its batches are durable already
            self.snapshots.write(base_offset, self.producers)
        self.segments.add(segment)
        self._changed_directories.append(self.directory)
        return segment

    # ---- reading

    def read(
        self, offset: int, max_bytes: int, end_offset: int, *, at_least_one: bool = True
    ) -> FileSlice | Refused:
        """Whole batches from the one that holds `offset` on, none at or past `end_offset`, from one segment.

        `max_bytes` is soft if `at_least_one`: the first batch is returned even if it alone is larger.
        """
        self._require_open()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition} has offsets {self.log_start_offset} to "
                f"{self.log_end_offset}, not {offset}",
            )
        if offset < end_offset:
            for segment in self.segments.from_offset(offset):
                if segment.base_offset >= end_offset:
                    break
                position = segment.position_of(offset)
                if position is not None:
                    end = self._end_position(segment, end_offset)
                    return segment.read(position, max_bytes, end, at_least_one=at_least_one)
        active = self.segments.active
        return FileSlice(active.log, active.size, 0)

    def _end_position(self, segment: Segment, end_offset: int) -> int:
        if end_offset >= self.log_end_offset:
            return segment.size
        position = segment.position_of(end_offset)
        return segment.size if position is None else position

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTxn]:
        """Aborted transactions that overlap the range, for readers of committed data."""
        indexes = (segment.txn_index for segment in self.segments.from_offset(start_offset))
        return aborted_between(indexes, start_offset, end_offset)

    @property
    def size(self) -> int:
        """Bytes of all batches on disk."""
        return self.segments.size

    # ---- cutting

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Cut away everything from the batch that holds `offset` on. Epochs are pruned even if no byte goes."""
        self._require_open()
        if offset < self.log_end_offset:
            if offset < self.segments.first.base_offset:
                self.truncate_fully_and_start_at(offset, now_ms=now_ms)
                return
            self._remove_now(self.segments.starting_at_or_after(offset + 1))
            active = self.segments.active
            cut = active.find(offset)
            if cut is not None:
                offset = min(offset, cut.header.base_offset)
                active.truncate(cut.position, offset)
                # At once: what came back after a crash would stand before newer batches.
                active.log.syncer()()
            self.log_end_offset = offset
            self.recovery_point = min(self.recovery_point, offset)
            self._cuts += 1
            self.log_start_offset = min(self.log_start_offset, offset)
            self.rebuild_producers(offset)
        if self.leader_epochs.truncate_from_end(offset):
            self._write_epochs(self.leader_epochs, durable=True)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Drop everything; the log goes on at `offset`, which its leader still has."""
        self._require_open()
        self._remove_now(list(self.segments))
        self.segments.add(
            Segment.create(
                self.disk,
                f"{self.directory}/{offset_name(offset)}",
                offset,
                self.config,
                now_ms=now_ms,
            )
        )
        self.producers.clear()
        self.snapshots.remove_all()
        self.leader_epochs.clear()
        self._write_epochs(self.leader_epochs, durable=True)
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        self._cuts += 1

    def advance_log_start(self, offset: int) -> None:
        """Records below `offset` are deleted: unreadable from now on, their segments go with retention."""
        assert offset <= self.log_end_offset, f"{offset} is past the end {self.log_end_offset}"
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            if self.leader_epochs.truncate_from_start(offset):
                self._write_epochs(self.leader_epochs, durable=False)

    def delete_segments(self, segments: Iterable[Segment], *, now_ms: int) -> None:
        """Retire whole segments from the front; their files go after `file.delete.delay.ms`."""
        for segment in list(segments):
            if segment is self.segments.active:
                self.roll(now_ms)
            self.retire(segment, now_ms)
        self._changed_directories.append(self.directory)
        self.snapshots.remove_superfluous(self.segments.first.base_offset)
        self.advance_log_start(max(self.log_start_offset, self.segments.first.base_offset))

    def retire(self, segment: Segment, now_ms: int, *, replaced: bool = False) -> None:
        """Take a segment out of the log; readers that hold a slice of it go on reading."""
        # Replaced ones follow each other under one name: a reader of the first must not end up in the second.
        stage = f".{now_ms}.deleted" if replaced else ".deleted"
        segment.rename(add=stage, log_first=not replaced)
        self.segments.remove(segment)
        self._retired.add(segment, now_ms + self.config.file_delete_delay_ms)

    def removable(self, now_ms: int) -> list[str]:
        """Paths of the files whose segments were retired long enough ago; the caller removes them."""
        return self._retired.take_due(now_ms)

    def _remove_now(self, segments: list[Segment]) -> None:
        # From the end: a crash in between must not leave a hole with the old tail behind it.
        for segment in reversed(segments):
            self.segments.remove(segment)
            segment.remove()
        if segments:
            self.disk.sync_directory(self.directory)

    def rebuild_producers(self, end_offset: int) -> None:
        """Take producer state back to what it was at `end_offset`; keep it, for what it came from may be deleted."""
        self.producers = producers_at(end_offset, self.segments, self.snapshots)
        if len(self.producers) and end_offset not in self.snapshots.offsets:
            self.snapshots.write(end_offset, self.producers)

    # ---- durability

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether whole segments wait to be synced: a crash now would make the next start read them."""
        return self.recovery_point < self.segments.active.base_offset

    def unflushed(self, *, sealed_only: bool = False) -> FlushPlan:
        """What to sync, here or elsewhere, to make the log durable up to its end, or some way towards it."""
        if not self._epochs_are_durable:
            self._write_epochs(self.leader_epochs, durable=True)
        directories, self._changed_directories = self._changed_directories, []
        return plan_flush(
            self.segments.from_offset(self.recovery_point),
            end_offset=self.segments.active.base_offset if sealed_only else self.log_end_offset,
            behind=[
                *self.snapshots.syncers(),
                *(partial(self.disk.sync_directory, path) for path in dict.fromkeys(directories)),
            ],
            cuts=self._cuts,
        )

    def mark_flushed(self, plan: FlushPlan, now_ms: int) -> None:
        """The plan has been carried out."""
        if plan.end_offset > plan.active_offset:
            self.last_flush_ms = now_ms
        proven = plan.proves(active_offset=self.segments.active.base_offset, cuts=self._cuts)
        self.recovery_point = max(self.recovery_point, proven)

    def flush(self, now_ms: int) -> None:
        """Make the log durable up to its end, now."""
        while self.recovery_point < self.log_end_offset:
            plan = self.unflushed()
            plan.run()
            self.mark_flushed(plan, now_ms)

    def update_config(self, config: LogConfig) -> None:
        """Take a changed topic configuration into use."""
        self.config = config
        for segment in self.segments:
            segment.config = config

    def close(self, now_ms: int) -> None:
        """Leave everything so that opening the log again reads nothing but names and a snapshot."""
        self._require_open()
        self.segments.active.seal()
        self.flush(now_ms)
        self.segments.active.sync()
        self.snapshots.write(self.log_end_offset, self.producers, durable=True)
        self._write_epochs(self.leader_epochs, durable=True)
        self.abandon()

    def abandon(self) -> None:
        """Close without writing: the directory failed, or the log is about to be deleted."""
        self.is_closed = True
        for segment in self.segments:
            segment.close()
        self._retired.close()

    def _write_epochs(self, epochs: LeaderEpochs, *, durable: bool) -> None:
        path = f"{self.directory}/{LEADER_EPOCH_FILE}"
        write_epochs(self.disk, path, epochs.entries, durable=durable)
        self._epochs_are_durable = durable

    def _require_open(self) -> None:
        if self.is_closed:
            raise LogClosed(f"{self.topic_partition} is closed")
