"""What a simulated broker does by itself, again and again: as `broker.upkeep.housekeeping` does, but at once."""

from contextlib import suppress
from typing import Final

from headrace.broker.upkeep.housekeeping import note_replicas
from headrace.errors import DiskFull
from headrace.log.files.disk import Disk
from headrace.log.log_dirs import LogDirs
from headrace.log.retention import delete_old_segments
from headrace.replication.partition_table import PartitionTable

_NEW_LOGS_AT_ONCE: Final = 100


def sync_new_logs(log_dirs: LogDirs) -> None:
    """Make the identity of new logs durable."""
    for directory, new_log_sync in list(log_dirs.new_log_syncs(_NEW_LOGS_AT_ONCE)):
        new_log_sync.run()
        log_dirs.mark_durable(directory, new_log_sync)


def keep_house(log_dirs: LogDirs, partitions: PartitionTable, disk: Disk, now_ms: int) -> None:
    """Sync whole segments, delete what is no longer wanted, write checkpoints; what needs room waits for it."""
    for log in log_dirs:
        with suppress(DiskFull):
            if log.has_unflushed_segments:
                plan = log.unflushed(sealed_only=True)
                plan.run()
                log.mark_flushed(plan, now_ms)
        partition = partitions.get(*log.topic_partition)
        if partition is not None:
            with suppress(DiskFull):
                delete_old_segments(log, high_watermark=partition.high_watermark, now_ms=now_ms)
        for path in log.removable(now_ms):
            disk.remove(path)
    note_replicas(log_dirs, partitions)
    for checkpoints in log_dirs.checkpoints():
        with suppress(DiskFull):
            for path, content in checkpoints.files:
                disk.replace(path, content)
            log_dirs.checkpointed(checkpoints)
