"""Closes all logs of a directory: file by file if they are few, else by one sync of the whole volume.

Rule of order: everything is written, then synced, and only then may the caller write the clean-shutdown marker.
"""

from headrace.errors import CorruptBatch
from headrace.log.files.checkpoint import LEADER_EPOCH_FILE, read_epochs, write_epochs
from headrace.log.files.disk import Disk
from headrace.log.opening import FEW_LOGS, NewLogSync
from headrace.log.partition_log import PartitionLog


def close_logs(
    disk: Disk, new_log_sync: NewLogSync, logs: list[PartitionLog], *, now_ms: int
) -> None:
    """Leave every log durable, so that opening it again reads nothing but names and a snapshot. Raises DiskFailed.

    `new_log_sync` has the new ones among them.
    """
    sync_volume = disk.volume_syncer(new_log_sync.directory) if len(logs) > FEW_LOGS else None
    if sync_volume is None:
        new_log_sync.run()
        for log in logs:
            log.close(now_ms)
    else:
        for log in logs:
            put_down(log)
        sync_volume()


def put_down(log: PartitionLog) -> None:
    """Write what is only in memory and close the log, without a sync. For an unchanged log nothing is written."""
    log.segments.active.seal()
    if log.log_end_offset not in log.snapshots.offsets:
        log.snapshots.write(log.log_end_offset, log.producers)
    path = f"{log.directory}/{LEADER_EPOCH_FILE}"
    if not _has_epochs(log, path):
        write_epochs(log.disk, path, log.leader_epochs.entries, durable=False)
    log.recovery_point = log.log_end_offset
    log.abandon()


def _has_epochs(log: PartitionLog, path: str) -> bool:
    try:
        return tuple(read_epochs(log.disk, path)) == log.leader_epochs.entries
    except CorruptBatch:
        return False
