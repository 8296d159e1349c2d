"""One partition's log: ordered segments, the offsets that bound it, its producers and its leader epochs.

One owner, no locks, no clock. Opened by `recovery.open_log`. The log knows neither the high watermark nor who leads:
callers pass bounds in. Order of an append: decide, write the batch, move the end offset (indexes and producer state
follow, and a failure there must not hand out the offset twice), flush if the policy says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from uuid import UUID

from headrace.errors import CorruptBatch, DiskFailed, DiskFull, LogClosed
from headrace.ids import TopicPartition
from headrace.log.append_check import Opened, acceptable_form, is_plain
from headrace.log.append_group import group_size
from headrace.log.append_result import Appended
from headrace.log.files.checkpoint import LEADER_EPOCH_FILE, write_epochs
from headrace.log.files.disk import Disk
from headrace.log.files.file_slice import FileSlice
from headrace.log.files.recovery_notes import NO_NOTES, RecoveryNotes, write_notes
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.log_config import LogConfig
from headrace.log.producers.producer_replay import check_batch_of_producer, note_batch, producers_at
from headrace.log.producers.producer_snapshots import ProducerSnapshots
from headrace.log.producers.producer_state import ProducerState, Verification
from headrace.log.segments.flush import FlushPlan, plan_flush
from headrace.log.segments.retired_segments import RetiredSegments
from headrace.log.segments.segment import Segment, offset_name
from headrace.log.segments.segment_list import SegmentList
from headrace.log.segments.txn_index import AbortedTxn, aborted_between
from headrace.records.batch_view import (
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    has_valid_crc,
    headers_in,
    stamp_all,
    stamp_append_times,
    unstamp,
)
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

_row = tuple.__new__  # half the price of calling a NamedTuple


class PartitionLog:
    """The log of one partition. Fields are read by the parts that decide on a log; only this class changes them."""

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
        self.segments = SegmentList()
        self.leader_epochs = LeaderEpochs()
        self.producers = ProducerState()
        self.snapshots = ProducerSnapshots(disk, directory)
        self.log_start_offset = 0
        self.checkpointed_start = 0  # the log start offset that the directory's checkpoints tell
        self.log_end_offset = 0
        self.recovery_point = 0
        self.cleaned_to: int | None = None  # compacted up to here; None if never
        self.notes = NO_NOTES
        self.last_flush_ms = 0
        self.is_closed = False
        # Directories with names that are not durable yet → the change that made the last such; at first also the one that
        # holds our own. They stay until a plan that synced them is done, because another flush may overtake it.
        self._changed_directories = {directory.rpartition("/")[0] or ".": 0, directory: 0}
        self._name_changes = 0
        self._epochs_are_durable = False
        self._notes_are_durable = True
        self._cuts = 0  # truncations so far: a flush from before one proves nothing after it
        self._retired = RetiredSegments()

    # ---- appending

    def append_as_leader(
        self,
        batches: Sequence[bytearray | memoryview],
        headers: Sequence[BatchHeader] = (),
        *,
        leader_epoch: int,
        now_ms: int,
        from_client: bool = True,
        opened: Opened | None = None,
        verified: Verification | None = None,
    ) -> Appended | Refusal:
        """Check the first batches of a list, stamp their offsets into their bytes, write them by one write.

        At least one batch is dealt with; `Appended.batches` says how many are, and the caller appends the others by another
        call. A refusal is about the first batch. `headers` if the caller has read them already; `opened` if the answer was
        `OPEN_FIRST` before; `verified` if a client's batch belongs to a transaction that is not open here.
        """
        if self.is_closed:
            self._require_open()
        config, header = self.config, headers[0] if headers else None
        if header is None or not (from_client and is_plain(batches[0], header, config, now_ms)):
            checked = acceptable_form(
                batches[0],
                config,
                now_ms,
                from_client=from_client,
                topic_partition=self.topic_partition,
                opened=opened,
            )
            if isinstance(checked, Refusal):
                return checked
            header, batch = checked
            batches, headers = (batch,), (header,)
        if header.producer_id >= 0:
            answer = self._check_producer(
                header, batches[0], now_ms, verified, from_client=from_client
            )
            if answer is not None:
                return answer
        base_offset = self.log_end_offset
        if len(batches) > 1:
            count = group_size(batches, headers, config, self.segments.active, base_offset, now_ms)
            batches, headers = batches[:count], headers[:count]
        has_append_time, given = config.log_append_time, headers
        headers = stamp_append_times(batches, now_ms) if has_append_time else headers
        stamped = stamp_all(batches, headers, base_offset, leader_epoch)
        try:
            self._write(batches, stamped, now_ms)
        except DiskFailed as error:
            for batch, header in zip(batches, given, strict=True):
                unstamp(batch, header)  # the producer may retry
            is_unchanged = self.log_end_offset == base_offset
            if len(batches) == 1 or not (is_unchanged and isinstance(error, DiskFull)):
                raise
            # There may be space for the first batch alone.
            return self.append_as_leader(
                batches[:1],
                given[:1],
                leader_epoch=leader_epoch,
                now_ms=now_ms,
                from_client=from_client,
                verified=verified,
            )
        last_offset = self.log_end_offset - 1
        append_time = now_ms if has_append_time else NO_TIMESTAMP
        return _row(Appended, (base_offset, last_offset, append_time, False, len(stamped)))

    def _check_producer(
        self,
        header: BatchHeader,
        batch: bytearray | memoryview,
        now_ms: int,
        verified: Verification | None,
        *,
        from_client: bool,
    ) -> Appended | Refusal | None:
        """The refusal or the duplicate, for a batch that its producer may not append or has appended before; else None."""
        known = check_batch_of_producer(
            self.producers, header, batch, verified, from_client=from_client
        )
        if known is None or isinstance(known, Refusal):
            return known
        # If the flush behind the first attempt was refused, the batch is in the log and not durable yet.
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush(now_ms)
        return Appended(known.base_offset, known.last_offset, known.timestamp, True)

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
                if header.base_offset > self.log_end_offset and not self.notes.has_gaps:
                    self.note_gaps()
                self._write((batch,), (header,), now_ms)
        return self.log_end_offset

    def _write(
        self,
        batches: Sequence[bytearray | memoryview],
        headers: Sequence[BatchHeader],
        now_ms: int,
    ) -> None:
        """Write stamped batches by one write. If they are several, they are data, and no segment is rolled between them."""
        first = headers[0]
        if first.leader_epoch != self.leader_epochs.latest:
            self.assign_epoch(first.leader_epoch, first.base_offset)
        segment = self.segments.active
        if (
            segment.should_roll(first.last_offset, len(batches[0]), first.max_timestamp, now_ms)
            # Rolled for a batch behind a gap, which then could not be written.
            or segment.base_offset > first.base_offset
        ):
            segment = self.roll(now_ms, first.base_offset)
        end_offset = headers[-1].next_offset
        is_flush_due = end_offset - self.recovery_point >= self.config.flush_messages
        if is_flush_due:
            self._write_flush_files()
        segment.append(batches, headers)
        self.log_end_offset = end_offset
        if first.producer_id >= 0:  # batches that are written together have the same producer
            if first.is_control:
                note_batch(self.producers, first, segment, batches[0])
            else:
                for header in headers:
                    self.producers.note_data(header)
            self.producers.note_append(first.producer_id, now_ms)
        if is_flush_due:
            self.flush(now_ms)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that a leader of `epoch` writes from `start_offset` on, before anything of it is served."""
        epochs = LeaderEpochs(self.leader_epochs.entries)
        if epochs.assign(epoch, start_offset):
            # The file is written first, because a full disk must not leave an epoch that is only in memory.
            self._write_epochs(epochs, durable=False)
            self.leader_epochs = epochs

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Start a new segment at the log's end, unless the active one is still empty. After DiskFull nothing has changed.

        The old segment is sealed first, which may need space: a new one beside an old one that goes on growing would hide
        what is appended there.
        """
        base_offset = self.log_end_offset if base_offset is None else base_offset
        active = self.segments.active
        if active.size == 0 and active.base_offset == base_offset:
            return active
        if active.size:
            active.seal()
            if self.recovery_point >= self.log_end_offset:
                active.sync()  # no later flush will: all its batches are durable already
        path = f"{self.directory}/{offset_name(base_offset)}"
        segment = Segment.create(self.disk, path, base_offset, self.config, now_ms=now_ms)
        self._note_name_change()
        if active.size:
            self.segments.add(segment)
            self.snapshots.write(base_offset, self.producers)
        else:
            self.segments.remove(active)
            self.segments.add(segment)
            active.remove()
            self.snapshots.remove_after(base_offset)
        return segment

    # ---- reading

    def read(
        self, offset: int, max_bytes: int, end_offset: int, *, at_least_one: bool = True
    ) -> FileSlice | Refusal:
        """Whole batches from the one that holds `offset` on, none at or past `end_offset`, from one segment.

        `max_bytes` is soft if `at_least_one`: the first batch is returned even if it alone is larger.
        """
        self._require_open()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return Refusal(
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

    def aborted_in(self, read: FileSlice, start_offset: int, end_offset: int) -> list[AbortedTxn]:
        """Those of them that a reader needs who is given these batches; a list up to the last stable offset has no bound."""
        segments = self.segments.from_offset(start_offset)
        if not read.length or all(segment.txn_index.is_empty for segment in segments):
            return []
        behind = read.position + read.length
        if behind < read.file.size:
            end_offset = min(end_offset, int.from_bytes(read.file.read(behind, 8), "big"))
        else:
            for segment in segments:
                if segment.log is read.file:
                    end_offset = min(end_offset, self.segments.end_of(segment) or end_offset)
        indexes = (segment.txn_index for segment in segments)
        return aborted_between(indexes, start_offset, end_offset)

    @property
    def size(self) -> int:
        """Bytes of all batches on disk."""
        return self.segments.size

    # ---- cutting

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Truncate the log at the batch that holds `offset`. Leader epochs are pruned even if no byte is removed.

        What may need space comes first: after DiskFull the log is as it was.
        """
        self._require_open()
        if offset >= self.log_end_offset:
            self._prune_epochs(offset)
            return
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return
        found = self.segments.from_offset(offset)[0].find(offset)
        if found is not None:
            offset = min(offset, found.header.base_offset)
        self.note_truncation(offset)
        self._prune_epochs(offset)
        with self._cutting():
            self._cut(offset, None if found is None else found.position)
            self.rebuild_producers(offset)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Remove all records; the log goes on at `offset`, which its leader still has. After DiskFull it is unchanged."""
        self._require_open()
        first = self.segments.first
        self.note_truncation(min(offset, first.base_offset))
        if self.leader_epochs.entries:
            self._write_epochs(LeaderEpochs(), durable=False)
            self.leader_epochs = LeaderEpochs()
        with self._cutting():
            self._cut(first.base_offset, 0 if first.size else None)
            if offset != first.base_offset:
                # The same files under another name: on a full disk there may be no room for new ones.
                self.segments.remove(first)
                self.segments.add(first.moved_to(offset, now_ms=now_ms))
                self.disk.sync_directory(self.directory)
            self.producers.clear()
            self.snapshots.remove_all()
            self.log_start_offset = self.log_end_offset = self.recovery_point = offset

    def _cut(self, offset: int, position: int | None) -> None:
        """Remove what starts at or behind `offset`, which lies at `position` of its segment, or between two segments."""
        self._cuts += 1
        self._remove_now(self.segments.starting_at_or_after(offset + 1))
        active = self.segments.active
        if position is not None:
            active.truncate(position, offset)
            # Synced at once, because a removed batch that came back after a crash would stand before newer ones.
            active.log.syncer()()
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.checkpointed_start = min(self.checkpointed_start, offset)
        if self.cleaned_to is not None:
            self.cleaned_to = min(self.cleaned_to, offset)

    @contextmanager
    def _cutting(self) -> Iterator[None]:
        try:
            yield
        except DiskFull as error:
            # The truncation is half done, so only a recovery makes files and memory agree again.
            raise DiskFailed(str(error)) from error

    def note_truncation(self, offset: int, *, checkpointed: int = 0) -> None:
        """Durably, before a cut: whatever the directory's checkpoints say, nothing from `offset` on is known to be durable.

        They are rewritten only seconds later, and may speak of a deleted log with the same name. By then there may be other segments at these offsets, never synced, and
        recovery would trust them.
        """
        noted = self.notes.truncated_to
        if noted is None:
            known = (self.recovery_point, self.log_start_offset, self.cleaned_to or 0)
            noted = max(checkpointed, *known)
        if offset < noted:
            self._write_notes(replace(self.notes, truncated_to=offset), durable=True)

    @property
    def truncations(self) -> int:
        """How often the log was truncated since it was opened."""
        return self._cuts

    @property
    def truncation(self) -> int | None:
        """Which truncation the directory's next checkpoints will tell of; None if they need not."""
        return None if self.notes.truncated_to is None else self._cuts

    def forget_truncation(self, truncation: int) -> None:
        """The checkpoints tell of it now, unless there has been another since."""
        if truncation == self.truncation:
            # A sync is not needed: with the note, recovery only reads more.
            self._write_notes(replace(self.notes, truncated_to=None), durable=False)

    def note_gaps(self, *, durable: bool = False) -> None:
        """Let recovery know that missing offsets are no sign of damage here; durably with the next flush at the latest."""
        durable = durable or self.notes.truncated_to is not None
        self._write_notes(replace(self.notes, has_gaps=True), durable=durable)

    def _write_notes(self, notes: RecoveryNotes, *, durable: bool) -> None:
        write_notes(self.disk, self.directory, notes, durable=durable)
        self.notes = notes
        self._notes_are_durable = durable or notes == NO_NOTES

    def _prune_epochs(self, end_offset: int) -> None:
        epochs = LeaderEpochs(self.leader_epochs.entries)
        if epochs.truncate_from_end(end_offset):
            # Not synced before the next flush: recovery prunes or rebuilds what it finds.
            self._write_epochs(epochs, durable=False)
            self.leader_epochs = epochs

    def advance_log_start(self, offset: int) -> None:
        """Records below `offset` are deleted: unreadable from now on, their segments go with retention."""
        assert offset <= self.log_end_offset, f"{offset} is past the end {self.log_end_offset}"
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            if self.leader_epochs.truncate_from_start(offset):
                # Deleting records must not need disk space. Superfluous entries in the file are dropped at the next opening.
                self._epochs_are_durable = False
                with suppress(DiskFull):
                    self._write_epochs(self.leader_epochs, durable=False)

    @property
    def durable_start(self) -> int:
        """Where the log starts at the next opening at least, if the process is killed or the power is lost now.

        Not where the first segment starts: that the ones before it were removed may not be on the disk yet.
        """
        return min(self.checkpointed_start, self.log_start_offset)

    def delete_segments(self, segments: Iterable[Segment], *, now_ms: int) -> None:
        """Retire whole segments from the front; their files go after `file.delete.delay.ms`."""
        try:
            for segment in list(segments):
                if segment is self.segments.active:
                    self.roll(now_ms)
                self.retire(segment, now_ms)
        finally:
            # Also if there was no room for the roll: a reader below the new start must be refused.
            self._note_name_change()
            self.advance_log_start(max(self.log_start_offset, self.segments.first.base_offset))
        self.snapshots.remove_superfluous(self.segments.first.base_offset)

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
        # The last segment first, because a crash in between must not leave a gap before old segments.
        for segment in reversed(segments):
            self.segments.remove(segment)
            segment.remove()
        if segments:
            self.disk.sync_directory(self.directory)

    def rebuild_producers(self, end_offset: int) -> None:
        """Take producer state back to what it was at `end_offset`; keep it, for what it came from may be deleted."""
        rebuilt = producers_at(end_offset, self.segments, self.snapshots)
        rebuilt.keep_append_times(self.producers)
        self.producers = rebuilt
        if len(self.producers) and end_offset not in self.snapshots.offsets:
            self.snapshots.write(end_offset, self.producers)

    # ---- durability

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether whole segments wait to be synced: a crash now would make the next start read them."""
        return self.recovery_point < self._sealed_end_offset

    @property
    def _sealed_end_offset(self) -> int:
        # An active segment created for a batch behind a gap, which then could not be written, starts past the log's end.
        return min(self.segments.active.base_offset, self.log_end_offset)

    def unflushed(self, *, sealed_only: bool = False) -> FlushPlan:
        """What to sync, here or elsewhere, to make the log durable up to its end, or some way towards it."""
        self._write_flush_files()
        directories = dict(self._changed_directories)
        return plan_flush(
            self.segments.from_offset(self.recovery_point),
            end_offset=self._sealed_end_offset if sealed_only else self.log_end_offset,
            behind=[
                *self.snapshots.syncers(),
                *(partial(self.disk.sync_directory, path) for path in directories),
            ],
            cuts=self._cuts,
            directories=directories,
        )

    def _note_name_change(self) -> None:
        self._name_changes += 1
        self._changed_directories[self.directory] = self._name_changes

    def _write_flush_files(self) -> None:
        """Make the files durable that must be before the recovery point advances.

        Before an append that is flushed at once: they may need space, and DiskFull says that nothing was written.
        """
        if not self._epochs_are_durable:
            self._write_epochs(self.leader_epochs, durable=True)
        if not self._notes_are_durable:
            self._write_notes(self.notes, durable=True)

    def mark_flushed(self, plan: FlushPlan, now_ms: int) -> None:
        """The plan has been carried out."""
        for path, change in plan.directories.items():
            if self._changed_directories.get(path) == change:
                del self._changed_directories[path]
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
