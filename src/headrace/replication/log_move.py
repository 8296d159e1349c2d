"""A log on its way to another directory of the same broker (KIP-113): a copy follows it, and in the end takes its place.

Owns the copy, in a directory whose name ends in `-future`, until one of two ends: `take_over` or `give_up`. The original goes
on serving; the copy follows it like a follower its leader, cutting where the original was cut. Order of taking over: the copy
is whole and synced, gets the real name, and only then the original loses it. If the copy cannot be opened, it loses the real
name again. A crash in between leaves two logs, of which the next start keeps the one that has more; one in the midst of copying leaves a `-future` directory, and the move begins anew.
"""

from contextlib import suppress
from uuid import UUID

from headrace.errors import CorruptBatch, DiskFailed, LogClosed
from headrace.log.files.checkpoint import write_topic_id
from headrace.log.files.disk import Disk
from headrace.log.leader_epochs import UNKNOWN_EPOCH_END
from headrace.log.log_dirs import FUTURE_SUFFIX, LogDir
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import Checkpointed, open_log
from headrace.records.batch_view import read_header
from headrace.replication.follower import next_fetch, truncation_offset
from headrace.wire.refusal import Refusal


class LogMove:
    """One partition's move. DiskFailed from here speaks of the target's disk, unless `read` raised it."""

    def __init__(
        self,
        disk: Disk,
        origin: LogDir,
        target: LogDir,
        log: PartitionLog,
        *,
        now_ms: int,
        id_: UUID,
    ) -> None:
        self._disk = disk
        self.origin = origin
        self.target = target
        self.log = log
        path = f"{target.path}/{log.topic_partition}.{id_.hex}{FUTURE_SUFFIX}"
        try:
            self.copy = open_log(
                disk, path, log.topic_partition, log.config, now_ms=now_ms, topic_id=log.topic_id
            )
            # Of a deleted log with this name, until the target's checkpoints are written again.
            stale = target.checkpointed.get(log.topic_partition, 0)
            self.copy.note_truncation(0, checkpointed=stale)
            if log.topic_id is not None:
                self._write_topic_id(path, log.topic_id)
        except DiskFailed:
            # A move that did not begin leaves nothing behind, because it would take room until the next start.
            with suppress(DiskFailed):
                disk.remove_tree(path)
            raise
        target.futures[log.topic_partition] = self.copy

    def _write_topic_id(self, path: str, topic_id: UUID) -> None:
        try:
            write_topic_id(self._disk, path, topic_id)
        except DiskFailed:
            self.copy.abandon()
            raise

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""
        return max(0, self.log.log_end_offset - self.copy.log_end_offset)

    @property
    def is_complete(self) -> bool:
        """Whether the copy has all that the original has, and nothing else."""
        log, copy = self.log, self.copy
        return copy.log_end_offset == log.log_end_offset == self._agreed_end()

    def is_checkpointed(self, seen_epoch: int) -> bool:
        """Whether the target's checkpoints tell of the copy what those of the origin tell of the original.

        They tell where it starts, because deleted records would be back after a kill; its high watermark and `seen_epoch`, the
        newest leader epoch that the replica was told of, because it would follow a leader that lacks committed records.
        """
        copy = self.copy
        has_start = copy.checkpointed_start == self.log.log_start_offset
        is_noted = self.target.noted_copies.get(copy) == seen_epoch
        return copy.truncation is None and has_start and is_noted

    # ---- copying

    def align(self, *, now_ms: int) -> None:
        """Cut from the copy what was cut from the original, or deleted. Raises LogClosed."""
        log, copy = self.log, self.copy
        if log.is_closed or copy.is_closed:
            raise LogClosed(f"{log.topic_partition} is gone")
        agreed = self._agreed_end()
        if agreed < copy.log_end_offset:
            copy.truncate_to(agreed, now_ms=now_ms)
        if copy.log_end_offset < log.log_start_offset:
            copy.truncate_fully_and_start_at(log.log_start_offset, now_ms=now_ms)
        self._assign_epochs(copy)

    def read(self, max_bytes: int) -> bytes:
        """What an aligned copy lacks next. DiskFailed here is the original's."""
        found = self.log.read(self.copy.log_end_offset, max_bytes, self.log.log_end_offset)
        assert not isinstance(found, Refusal), found
        return found.copy() if found.length else b""

    def write(self, records: bytes, *, now_ms: int) -> None:
        """Append what was just read."""
        copy = self.copy
        if records:
            start = read_header(records).base_offset
            if copy.size == 0 and start < copy.log_end_offset:
                # The original starts within a batch, and so shall the copy.
                copy.truncate_fully_and_start_at(start, now_ms=now_ms)
                self._assign_epochs(copy)
            copy.append_as_follower(records, now_ms=now_ms)
            self._assign_epochs(copy)
        copy.advance_log_start(min(self.log.log_start_offset, copy.log_end_offset))

    def _agreed_end(self) -> int:
        """Up to where the copy says what the original says now: that may have been cut since."""
        log, copy = self.log, self.copy
        last = next_fetch(copy.leader_epochs, copy.log_end_offset).last_fetched_epoch
        if last >= 0:
            end = log.leader_epochs.end_offset_for(last, log.log_end_offset)
            if end == UNKNOWN_EPOCH_END:
                return copy.segments.first.base_offset
            if end.epoch < last or end.end_offset < copy.log_end_offset:
                return truncation_offset(end, copy.leader_epochs, copy.log_end_offset)
        return min(copy.log_end_offset, log.log_end_offset)

    def _assign_epochs(self, copy: PartitionLog) -> None:
        """Also those in which nothing was written."""
        for epoch, start_offset in self.log.leader_epochs.entries:
            if epoch > copy.leader_epochs.latest and start_offset <= copy.log_end_offset:
                copy.assign_epoch(epoch, start_offset)

    # ---- the end

    def take_over(self, *, now_ms: int) -> tuple[PartitionLog, str]:
        """Put the copy in the original's place. Returns it, opened anew, and the directory that is left to remove.

        Sync the copy before, elsewhere: then little is left to be synced here.
        """
        assert self.is_complete
        log, copy, where = self.log, self.copy, self.log.topic_partition
        copy.producers = log.producers  # it knows those whose batches are deleted, too
        copy.close(now_ms)
        path = f"{self.target.path}/{where}"
        self._disk.rename(copy.directory, path)
        try:
            moved = self._open_moved(path, now_ms=now_ms)
        except (DiskFailed, CorruptBatch):
            # The original goes on and grows: under the real name the copy would pass for it at the next start.
            self._disk.rename(path, copy.directory)
            raise
        moved.producers.keep_append_times(log.producers)
        del self.target.futures[where]
        self.target.logs[where] = moved
        del self.origin.logs[where]
        self.origin.high_watermarks.pop(where, None)
        log.abandon()
        return moved, self._name_for_removal()

    def _open_moved(self, path: str, *, now_ms: int) -> PartitionLog:
        log = self.log
        self._disk.sync_directory(self.target.path)
        moved = open_log(
            self._disk,
            path,
            log.topic_partition,
            log.config,
            now_ms=now_ms,
            checkpointed=Checkpointed(
                clean=True,
                recovery_point=log.log_end_offset,
                log_start_offset=log.log_start_offset,
                cleaned_to=log.cleaned_to,
            ),
            topic_id=log.topic_id,
        )
        self._assign_epochs(moved)  # opening takes an epoch without records for one that never was
        return moved

    def _name_for_removal(self) -> str:
        name = self.copy.directory.rpartition("/")[2].removesuffix(FUTURE_SUFFIX)
        path = f"{self.origin.path}/{name}-delete"
        try:
            self._disk.rename(self.log.directory, path)
            self._disk.sync_directory(self.origin.path)
        except DiskFailed:
            return self.log.directory
        return path

    def give_up(self) -> str:
        """Leave the original where it is. Returns the directory that is left to remove."""
        self.target.futures.pop(self.log.topic_partition, None)
        self.copy.abandon()
        return self.copy.directory
