"""Logs before they are opened, and new logs whose identity is not durable yet.

A log that was just created is among the `new_logs` of its directory until its identity (`partition.metadata` and the names
around it) is durable, which happens in the background. Until then it counts as never flushed, so that a crash costs no more than
what was not synced.
"""

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from headrace.errors import CorruptBatch, DiskFailed
from headrace.ids import TopicPartition
from headrace.log.files.checkpoint import PARTITION_METADATA_FILE, read_topic_id
from headrace.log.files.disk import Disk
from headrace.log.files.recovery_notes import RecoveryNotes, read_notes
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import Checkpointed

_logger = logging.getLogger(__name__)

FEW_LOGS: Final = 64  # a sync of the volume also waits for what others have written to it


class FoundLog(NamedTuple):
    """A log that lies in a directory, to be opened."""

    topic_partition: TopicPartition
    path: str
    checkpointed: Checkpointed
    high_watermark: int | None = None

    def was_never_flushed(self, notes: RecoveryNotes) -> bool:
        """Whether nothing is known to be durable, not even its identity.

        The checkpoints may speak of a deleted log with the same name; then the log's own notes say so.
        """
        known = self.checkpointed
        return not known.clean and notes.limit(known.recovery_point) == 0


def topic_id_of(disk: Disk, found: FoundLog) -> UUID | None:
    """The topic that a log belongs to, if it says so. CorruptBatch if that cannot be read."""
    try:
        return read_topic_id(disk, found.path)
    except CorruptBatch as error:
        if not found.was_never_flushed(read_notes(disk, found.path)):
            raise
        # Of a log that was never flushed it may be torn, as anything else of it. It must not be found again when the
        # log has been flushed and nobody has given it an id yet.
        _logger.warning("%s: its topic id was lost with the power (%s)", found.path, error)
        disk.remove(f"{found.path}/{PARTITION_METADATA_FILE}")
        disk.sync_directory(found.path)
        return None


def make_durable_directory(disk: Disk, path: str) -> None:
    """A new directory's name must be durable before anything in it can be."""
    parents: list[str] = []
    missing = path.rstrip("/")
    while missing and not disk.exists(missing):
        head, slash, _ = missing.rpartition("/")
        parents.append(head or slash or ".")
        missing = head
    disk.make_directory(path)
    for parent in parents:
        disk.sync_directory(parent)


class NewLogSync(NamedTuple):
    """New logs of one directory whose identity is to be made durable; in any thread."""

    disk: Disk
    directory: str
    logs: tuple[PartitionLog, ...]

    def run(self) -> None:
        """Sync: each, or the volume if they are many. Raises DiskFailed. A log deleted meanwhile is passed over."""
        many = len(self.logs) > FEW_LOGS
        sync_volume = self.disk.volume_syncer(self.directory) if many else None
        if sync_volume is not None:
            sync_volume()
            return
        for log in self.logs:
            try:
                sync_identity(self.disk, log.directory)
            except DiskFailed:
                if not log.is_closed:
                    raise
        self.disk.sync_directory(self.directory)


def sync_identity(disk: Disk, path: str) -> None:
    """Make a log's `partition.metadata` and its file names durable."""
    file = disk.open(f"{path}/{PARTITION_METADATA_FILE}")
    try:
        file.syncer()()
    finally:
        file.close()
    disk.sync_directory(path)


def some_of(new_logs: Iterable[PartitionLog], limit: int) -> tuple[PartitionLog, ...]:
    """The first few that are still open."""
    chosen: list[PartitionLog] = []
    for log in new_logs:
        if not log.is_closed:
            chosen.append(log)
            if len(chosen) == limit:
                break
    return tuple(chosen)
