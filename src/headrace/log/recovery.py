"""Opens a log: after a clean stop from names and a snapshot alone, after a crash by verifying what may be torn.

Rules: only segments that reach to the recovery point or beyond are doubted; they are read once, each batch is checked,
the file is cut at the first bad one and whatever lay behind it goes. Indexes, producer state and leader epochs of the
doubted part are rebuilt in the same pass. Missing offsets are damage only in a log that never had gaps. A segment without
batches that starts within another one is what a failed roll left behind, and is removed. Files are closed behind the reading: several logs may be opened at a time, in
threads, and most stay idle.
"""

import logging
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from headrace.errors import CorruptBatch, DiskFull
from headrace.ids import TopicPartition
from headrace.log.compaction.swap import finish_swaps
from headrace.log.files.checkpoint import LEADER_EPOCH_FILE, read_epochs
from headrace.log.files.disk import Disk
from headrace.log.files.recovery_notes import RecoveryNotes, read_notes
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.producers.producer_replay import note_batch
from headrace.log.segments.batch_scan import BatchScan, Surroundings, fitting_batches
from headrace.log.segments.segment import Segment, SegmentSizes, offset_name

_logger = logging.getLogger(__name__)

_NAME: Final = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed:
    """The checkpointed offsets of one log."""

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    cleaned_to: int | None = None  # how far it has been compacted; None if never

    def limited_by(self, notes: RecoveryNotes) -> "Checkpointed":
        """These offsets, limited by a truncation that came after the checkpoint."""
        cleaned_to = self.cleaned_to
        return replace(
            self,
            recovery_point=notes.limit(self.recovery_point),
            log_start_offset=notes.limit(self.log_start_offset),
            cleaned_to=None if cleaned_to is None else notes.limit(cleaned_to),
        )


def open_log(
    disk: Disk,
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    *,
    now_ms: int,
    checkpointed: Checkpointed | None = None,
    topic_id: UUID | None = None,
) -> PartitionLog:
    """The log in `directory`, created if there is none. DiskFailed if the directory cannot be used."""
    known = checkpointed or Checkpointed()
    if checkpointed is None or not disk.exists(directory):
        disk.make_directory(directory)
    log = PartitionLog(disk, directory, topic_partition, config, topic_id=topic_id)
    log.last_flush_ms = now_ms
    log.notes = read_notes(disk, directory)
    in_files, known = known, known if known.clean else known.limited_by(log.notes)
    log.cleaned_to = known.cleaned_to
    without_index = _load_segments(log, now_ms, known)
    log.log_start_offset = max(known.log_start_offset, log.segments.first.base_offset)
    checkpointed_epochs = _load_epochs(log, known)
    try:
        if known.clean:
            _open_clean(log, without_index)
    except CorruptBatch as error:
        _logger.warning("%s: stopped cleanly but is damaged (%s)", topic_partition, error)
        known = replace(known, clean=False, recovery_point=log.segments.active.base_offset)
    if not known.clean:
        _open_after_crash(log, without_index, known, checkpointed_epochs, now_ms=now_ms)
    _settle_bounds(log, now_ms)
    log.checkpointed_start = min(known.log_start_offset, log.log_start_offset)
    if log.log_end_offset < in_files.recovery_point:
        with suppress(DiskFull):  # a log on a full disk must still open; nothing is appended to it
            log.note_truncation(log.log_end_offset, checkpointed=in_files.recovery_point)
    for segment in log.segments:
        segment.close()
    return log


def _load_segments(log: PartitionLog, now_ms: int, known: Checkpointed) -> set[int]:
    """Fill `log.segments` from the directory. Returns the base offsets of those that lack an index."""
    found = log.disk.list_files(log.directory)
    if finish_swaps(log.disk, log.directory, found):
        found = log.disk.list_files(log.directory)
    files: dict[int, dict[str, int]] = {}
    modified: dict[int, int] = {}
    for stat in found:
        match = _NAME.fullmatch(stat.name)
        if match is not None:
            base_offset, suffix = int(match[1]), match[2]
            if suffix == "snapshot":
                log.snapshots.offsets.add(base_offset)
            else:
                files.setdefault(base_offset, {})[suffix] = stat.size
                modified[base_offset] = stat.modified_ms
    without_index: set[int] = set()
    for base_offset, sizes in sorted(files.items()):
        path = f"{log.directory}/{offset_name(base_offset)}"
        if "log" not in sizes:
            for suffix in sizes:
                log.disk.remove(f"{path}.{suffix}")
            continue
        if _create_missing_indexes(log.disk, path, sizes) and sizes["log"] > 0:
            without_index.add(base_offset)
        log.segments.add(
            Segment(
                log.disk,
                path,
                base_offset,
                log.config,
                sizes=SegmentSizes(
                    sizes["log"], sizes["index"], sizes["timeindex"], sizes.get("txnindex")
                ),
                created_ms=modified[base_offset],
            )
        )
    if not len(log.segments):
        start = known.log_start_offset
        path = f"{log.directory}/{offset_name(start)}"
        log.segments.add(Segment.create(log.disk, path, start, log.config, now_ms=now_ms))
    return without_index


def _create_missing_indexes(disk: Disk, path: str, sizes: dict[str, int]) -> bool:
    missing = [suffix for suffix in ("index", "timeindex") if suffix not in sizes]
    for suffix in missing:
        disk.create(f"{path}.{suffix}")
        sizes[suffix] = 0
    return bool(missing)


def _load_epochs(log: PartitionLog, known: Checkpointed) -> LeaderEpochs:
    """Fill `log.leader_epochs`. Returns what the checkpoint says: nothing, if it is damaged."""
    path = f"{log.directory}/{LEADER_EPOCH_FILE}"
    try:
        entries = read_epochs(log.disk, path)
        log.leader_epochs = LeaderEpochs(entries)
        return LeaderEpochs(entries)
    except CorruptBatch as error:
        _logger.warning("%s: rebuilding the leader epochs (%s)", log.topic_partition, error)
    doubted = [] if known.clean else _doubted(log, known.recovery_point)
    for segment in log.segments:
        if segment not in doubted:  # those are read again, with more suspicion
            for found in segment.batches():
                log.leader_epochs.assign(found.header.leader_epoch, found.header.base_offset)
            segment.close()
    return LeaderEpochs()


def _open_clean(log: PartitionLog, without_index: set[int]) -> None:
    """Trust the files. CorruptBatch if they are not what a clean stop leaves."""
    for segment in log.segments:
        if segment.base_offset in without_index or not _has_sane_indexes(segment):
            _logger.warning(
                "%s: rebuilding the indexes of %d", log.topic_partition, segment.base_offset
            )
            _rebuild_indexes(segment)
    _remove_failed_rolls(log, list(log.segments))
    log.log_end_offset = log.recovery_point = log.segments.active.read_next_offset()
    log.rebuild_producers(log.log_end_offset)


def _has_sane_indexes(segment: Segment) -> bool:
    # Only the active one is looked into: of a sealed one the size in the directory listing must do.
    return segment.offset_index.has_whole_entries and segment.time_index.has_whole_entries


def _rebuild_indexes(segment: Segment) -> None:
    segment.forget_indexes()
    for found in segment.batches():
        segment.note_appended(found.position, found.header)
    segment.seal()
    segment.close()


def _open_after_crash(
    log: PartitionLog,
    without_index: set[int],
    known: Checkpointed,
    checkpointed_epochs: LeaderEpochs,
    *,
    now_ms: int,
) -> None:
    recovery_point = known.recovery_point
    doubted = _doubted(log, recovery_point)
    trusted = [segment for segment in log.segments if segment.base_offset < doubted[0].base_offset]
    for segment in trusted:
        if segment.base_offset in without_index or not _has_sane_indexes(segment):
            _rebuild_indexes(segment)
    _remove_failed_rolls(log, trusted)
    start = doubted[0].base_offset
    log.log_end_offset = start
    log.rebuild_producers(start)
    log.leader_epochs.truncate_from_end(start)
    has_gaps = log.config.cleanup_compact or known.cleaned_to is not None
    do_epochs_agree = True
    while doubted:
        segment = doubted.pop(0)
        around = Surroundings(
            start_offset=max(log.log_end_offset, segment.base_offset),
            leader_epoch=log.leader_epochs.latest,
            # An empty one says nothing of where the batches before it end.
            next_segment_offset=next((later.base_offset for later in doubted if later.size), None),
            has_gaps=has_gaps or log.notes.has_gaps,
            epochs=checkpointed_epochs,
        )
        end, agrees = _recover_segment(log, segment, around)
        do_epochs_agree &= agrees
        while doubted and doubted[0].size == 0 and doubted[0].base_offset < log.log_end_offset:
            _remove_failed_roll(log, doubted.pop(0))
        next_offset = log.segments.end_of(segment)
        ends_early = next_offset is not None and log.log_end_offset < next_offset
        if end < segment.size or (ends_early and not (has_gaps or log.notes.has_gaps)):
            _cut(log, segment, end, doubted)
            break
        if next_offset is not None:
            segment.seal()
            segment.close()
            log.snapshots.write(next_offset, log.producers)
    if do_epochs_agree and checkpointed_epochs.entries:
        # Of some epochs compaction has left no record. A leader that forgot them could not tell a follower where to cut.
        # A damaged checkpoint has no entries, and agrees with a tail of which no batch is sound.
        log.leader_epochs = checkpointed_epochs
    log.recovery_point = min(recovery_point, log.log_end_offset)
    if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
        _flush_recovered(log, now_ms)


def _flush_recovered(log: PartitionLog, now_ms: int) -> None:
    """Flush before anything is read, because the topic's `flush.messages` demands it.

    A log on a full disk must still open: its batches are synced then, and the recovery point stays.
    """
    try:
        log.flush(now_ms)
    except DiskFull:
        for segment in log.segments.from_offset(log.recovery_point):
            segment.sync()
            segment.close()
        log.disk.sync_directory(log.directory)


def _doubted(log: PartitionLog, recovery_point: int) -> list[Segment]:
    """The segments to be verified: from the last one with batches that starts at or before the recovery point on."""
    segments = list(log.segments)
    first = len(segments) - len(log.segments.from_offset(recovery_point))
    while first > 0 and segments[first].size == 0:
        first -= 1  # if this one is left from a failed roll, the one before it has been appended to
    return segments[first:]


def _remove_failed_rolls(log: PartitionLog, trusted: list[Segment]) -> None:
    """Remove empty segments among those whose indexes can be trusted, if the one before reaches past their start."""
    filled: Segment | None = None
    for segment in trusted:
        if segment.size:
            filled = segment
        elif filled is not None and filled.read_next_offset() > segment.base_offset:
            _remove_failed_roll(log, segment)


def _remove_failed_roll(log: PartitionLog, segment: Segment) -> None:
    _logger.warning(
        "%s: removing the empty segment %d, left from a roll that failed: the one before goes on past it",
        log.topic_partition,
        segment.base_offset,
    )
    log.segments.remove(segment)
    segment.remove()


def _recover_segment(log: PartitionLog, segment: Segment, around: Surroundings) -> tuple[int, bool]:
    """Verify every batch of a segment and rebuild what is derived from it.

    Returns where soundness ends, and whether the checkpoint of leader epochs agrees with every sound batch.
    """
    segment.forget_indexes()
    segment.txn_index.truncate(segment.base_offset)
    log.log_end_offset = around.start_offset
    position = 0
    agrees = True
    for batch, header in fitting_batches(BatchScan(segment.log), around):
        try:
            if header.producer_id >= 0:
                note_batch(log.producers, header, segment, batch)
        except CorruptBatch:
            break
        if position > 0 and header.base_offset > log.log_end_offset and not log.notes.has_gaps:
            # A file does not lose whole batches from its middle.
            with suppress(DiskFull):
                log.note_gaps()
        segment.note_appended(position, header)
        agrees &= around.epochs.epoch_at(header.base_offset) == header.leader_epoch
        log.leader_epochs.assign(header.leader_epoch, header.base_offset)
        log.log_end_offset = header.next_offset
        position += header.size
    return position, agrees


def _cut(log: PartitionLog, segment: Segment, position: int, behind: list[Segment]) -> None:
    """Remove unsound batches and sync at once, because they must not come back before or behind newer batches."""
    _logger.warning(
        "%s: cutting %d of %d bytes of segment %d and %d segments behind it, from offset %d on",
        log.topic_partition,
        segment.size - position,
        segment.size,
        segment.base_offset,
        len(behind),
        log.log_end_offset,
    )
    for later in reversed(behind):
        log.segments.remove(later)
        later.remove()
    if behind:
        log.disk.sync_directory(log.directory)
    segment.log.truncate(position)
    segment.log.syncer()()


def _settle_bounds(log: PartitionLog, now_ms: int) -> None:
    if log.log_end_offset < log.log_start_offset:
        # The deleted prefix was known durably, the rest was not: go on behind it.
        log.truncate_fully_and_start_at(log.log_start_offset, now_ms=now_ms)
        return
    if log.cleaned_to is not None:
        log.cleaned_to = min(log.cleaned_to, log.log_end_offset)
    log.leader_epochs.truncate_from_end(log.log_end_offset)
    log.leader_epochs.truncate_from_start(log.log_start_offset)
    log.snapshots.remove_after(log.log_end_offset)
