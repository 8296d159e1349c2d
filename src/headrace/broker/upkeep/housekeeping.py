"""Periodic jobs of a broker: retention, syncing, checkpoints, expiry of producers, idle connections. A rim module.

Decisions are quick and are made on the event loop, which owns the logs. Syncing, removing files and writing checkpoints block, so
they run in a worker thread on values that the event loop no longer changes.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final

from headrace.broker.workers import Workers, run_to_end
from headrace.clock import Clock
from headrace.errors import CorruptBatch, DiskFailed, DiskFull
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.log.retention import delete_old_segments
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.settings.live_settings import LiveSettings

_logger = logging.getLogger(__name__)

_LOGS_PER_TURN: Final = 50
_FLUSH_CHECK_S: Final = 1.0
_NEW_LOGS_AT_ONCE: Final = 1000
_MAX_DEFERRALS: Final = 5
_REMOVAL_CHECK_S: Final = 5.0
_IDLE_CHECK_S: Final = 1.0
_ROOM_CHECK_S: Final = 1.0


def note_replicas(log_dirs: LogDirs, partitions: PartitionTable) -> None:
    """Set the high watermark and the known leader epoch of each partition for the next checkpoint.

    A log that is not hosted, or not yet, keeps the values that were read at the start.
    """
    for directory in log_dirs.online:
        high_watermarks, epochs = directory.high_watermarks, directory.seen_epochs
        # The checkpoints must tell of a log that moves here before it counts.
        present = (*directory.logs, *directory.futures)
        for where in present:
            partition = partitions.get(*where)
            if partition is not None:
                high_watermarks[where] = partition.high_watermark
                epochs[where] = partition.seen_epoch
        directory.high_watermarks = {
            where: high_watermarks[where] for where in present if where in high_watermarks
        }
        directory.seen_epochs = {
            where: epochs[where] for where in (*present, *directory.unopened) if where in epochs
        }


class Housekeeping:
    """The broker's background work, one task for each kind."""

    def __init__(
        self,
        *,
        log_dirs: LogDirs,
        partitions: PartitionTable,
        live_settings: LiveSettings,
        clock: Clock,
        workers: Workers,
        on_disk_failed: Callable[[PartitionLog, DiskFailed], None],
        close_idle_connections: Callable[[], None],
        retry_after_full_disk: Callable[[], None],
    ) -> None:
        self._disk = log_dirs.disk
        self._log_dirs = log_dirs
        self._partitions = partitions
        self._live_settings = live_settings
        self._clock = clock
        self._workers = workers
        self._on_disk_failed = on_disk_failed
        self._close_idle_connections = close_idle_connections
        self._retry_after_full_disk = retry_after_full_disk
        self._new_logs_seen = 0  # new logs at the last iteration
        self._new_logs_deferred = 0
        self._checkpointing = asyncio.Lock()  # an older state must not replace a newer one

    def jobs(self) -> list[Coroutine[Any, Any, None]]:
        """The tasks to start; each runs until cancelled."""
        settings = self._live_settings
        return [
            self._repeat(
                lambda: _seconds(settings.current.log_retention_check_interval_ms), self.retain
            ),
            self._repeat(lambda: _REMOVAL_CHECK_S, self.remove_files),
            self._repeat(lambda: _FLUSH_CHECK_S, self.flush),
            self._repeat(lambda: _FLUSH_CHECK_S, self.sync_new_logs),
            self._repeat(
                lambda: _seconds(
                    min(
                        settings.current.replica_high_watermark_checkpoint_interval_ms,
                        settings.current.log_flush_offset_checkpoint_interval_ms,
                        settings.current.log_flush_start_offset_checkpoint_interval_ms,
                    )
                ),
                self.checkpoint,
            ),
            self._repeat(
                lambda: _seconds(settings.current.producer_id_expiration_check_interval_ms),
                self.expire_producers,
            ),
            self._repeat(lambda: _IDLE_CHECK_S, self._watch_connections),
            self._repeat(lambda: _ROOM_CHECK_S, self._watch_room),
        ]

    @staticmethod
    async def _repeat(
        interval_s: Callable[[], float], work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        while True:
            await asyncio.sleep(interval_s())
            await work()

    async def retain(self) -> None:
        """Take segments that retention no longer keeps out of their logs."""
        async for partition in _in_turns(list(self._partitions)):
            log = partition.log
            if log.is_closed:
                continue
            try:
                gone = delete_old_segments(
                    log, high_watermark=partition.high_watermark, now_ms=self._clock()
                )
            except CorruptBatch as error:
                _logger.error("%s: retention cannot read a segment: %s", log.topic_partition, error)
                continue
            except DiskFull as error:
                _logger.warning("%s: retention waits for room: %s", log.topic_partition, error)
                continue
            except DiskFailed as error:
                self._on_disk_failed(log, error)
                continue
            for segment, reason in gone:
                _logger.info(
                    "%s: segment %d goes by %s",
                    log.topic_partition,
                    segment.base_offset,
                    reason.value,
                )

    async def remove_files(self) -> None:
        """Remove the files of segments that were taken out long enough ago."""
        paths: list[str] = []
        async for partition in _in_turns(list(self._partitions)):
            paths += partition.log.removable(self._clock())
        if paths:
            await self._workers.run(partial(self._remove, paths))

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            try:
                self._disk.remove(path)
            except DiskFailed as error:
                _logger.error("cannot remove %s: %s", path, error)

    async def flush(self) -> None:
        """Sync whole segments that were rolled, and logs whose `flush.ms` is over."""
        async for partition in _in_turns(list(self._partitions)):
            log = partition.log
            if log.is_closed:
                continue
            is_due = self._clock() - log.last_flush_ms >= log.config.flush_ms
            if log.has_unflushed_segments or (is_due and log.recovery_point < log.log_end_offset):
                await self._flush(log, sealed_only=not is_due)

    async def _flush(self, log: PartitionLog, *, sealed_only: bool) -> None:
        try:
            plan = log.unflushed(sealed_only=sealed_only)
            await self._workers.run(plan.run)
        except DiskFailed as error:
            # Not a fault: the log was deleted or moved meanwhile.
            if not log.is_closed:
                self._on_disk_failed(log, error)
        else:
            log.mark_flushed(plan, self._clock())

    async def sync_new_logs(self) -> None:
        """Make the identity of new logs durable, some at a time; not in the middle of a large creation."""
        new_logs = sum(len(directory.new_logs) for directory in self._log_dirs.online)
        if new_logs > self._new_logs_seen and self._new_logs_deferred < _MAX_DEFERRALS:
            self._new_logs_seen = new_logs
            self._new_logs_deferred += 1
            return
        self._new_logs_seen = self._new_logs_deferred = 0
        while syncs := list(self._log_dirs.new_log_syncs(_NEW_LOGS_AT_ONCE)):
            for directory, some in syncs:
                try:
                    await self._workers.run(some.run)
                except DiskFailed as error:
                    neighbour = next(iter(directory.logs.values()), None)
                    if neighbour is not None:
                        self._on_disk_failed(neighbour, error)
                    return
                self._log_dirs.mark_durable(directory, some)

    async def checkpoint(self) -> None:
        """Write the checkpoints of recovery points, high watermarks, log start offsets and cleaner offsets."""
        async with self._checkpointing:
            await self._checkpoint()

    async def _checkpoint(self) -> None:
        note_replicas(self._log_dirs, self._partitions)
        for checkpoints in self._log_dirs.checkpoints():
            try:
                # To the end: the stop of the broker writes the same files, and must be the last to do so.
                await run_to_end(self._workers, partial(self._replace, checkpoints.files))
                self._log_dirs.checkpointed(checkpoints)
            except DiskFull as error:
                _logger.warning("checkpoints are not written: %s", error)
                # Deleting records makes room, so it must not wait for room; a kill before there is some brings them back.
                self._log_dirs.log_starts_written(checkpoints)
            except DiskFailed as error:
                log = next(iter(checkpoints.directory.logs.values()), None)
                if log is not None:
                    self._on_disk_failed(log, error)

    def _replace(self, files: list[tuple[str, bytes]]) -> None:
        for path, content in files:
            self._disk.replace(path, content)

    async def expire_producers(self) -> None:
        """Forget producers that were silent for long."""
        async for partition in _in_turns(list(self._partitions)):
            log = partition.log
            log.producers.expire(self._clock(), log.config.producer_id_expiration_ms)

    async def _watch_connections(self) -> None:
        self._close_idle_connections()

    async def _watch_room(self) -> None:
        self._retry_after_full_disk()


async def _in_turns(partitions: Iterable[Partition]) -> AsyncIterator[Partition]:
    """The partitions; the event loop serves clients after every few of them."""
    for count, partition in enumerate(partitions, 1):
        if count % _LOGS_PER_TURN == 0:
            await asyncio.sleep(0)
        yield partition


def _seconds(interval_ms: int) -> float:
    return interval_ms / 1000
