"""Moves replicas between the log directories of this broker, one chunk at a time. A rim module.

Owns the moves under way. The event loop copies, one chunk between other work, because it owns both logs. Syncing the copy and removing
the original block for long and run in a worker thread. A move that was under way when the broker stopped begins anew at the next start.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final
from uuid import UUID

from headrace.broker.workers import Workers
from headrace.clock import Clock
from headrace.errors import CorruptBatch, DiskFailed, LogClosed
from headrace.ids import TopicPartition
from headrace.log.log_dirs import FUTURE_SUFFIX, MAX_NAME, LogDir, LogDirs
from headrace.replication.log_move import LogMove
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.replication.throttle import RateWindow
from headrace.settings.live_settings import LiveSettings
from headrace.wire.error_code import ErrorCode

_logger = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 1024 * 1024
_PAUSE_S: Final = 0.1  # of what is too fast
_LOOK_AGAIN_S: Final = 1.0  # whether what shall move is here by now, or checkpoints have room
_ID_LENGTH: Final = 32


class ReplicaMoves:
    """The moves of replicas that are under way on this broker."""

    def __init__(
        self,
        *,
        log_dirs: LogDirs,
        partitions: PartitionTable,
        live_settings: LiveSettings,
        clock: Clock,
        workers: Workers,
        new_id: Callable[[], UUID],
        on_disk_failed: Callable[[TopicPartition, DiskFailed], None],
        write_checkpoints: Callable[[], Awaitable[None]],
    ) -> None:
        self._disk = log_dirs.disk
        self._log_dirs = log_dirs
        self._partitions = partitions
        self._live_settings = live_settings
        self._clock = clock
        self._workers = workers
        self._new_id = new_id
        self._on_disk_failed = on_disk_failed
        self._write_checkpoints = write_checkpoints
        self._moves: dict[TopicPartition, LogMove] = {}
        self._copied = RateWindow()
        self._wanted = asyncio.Event()

    def want(self, where: TopicPartition, path: str) -> ErrorCode:
        """Move a partition's log to this directory. Returns an error code if that cannot be."""
        if len(f"{where}.{FUTURE_SUFFIX}") + _ID_LENGTH > MAX_NAME:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if path in self._log_dirs.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if path not in {directory.path for directory in self._log_dirs.online}:
            return ErrorCode.LOG_DIR_NOT_FOUND
        origin = self._log_dirs.directory_of(where)
        if origin is None:
            return ErrorCode.REPLICA_NOT_AVAILABLE
        if origin.path == path:
            self._log_dirs.wanted.pop(where, None)
        else:
            self._log_dirs.wanted[where] = path
        self._wanted.set()
        return ErrorCode.NONE

    def want_once_here(self, where: TopicPartition, path: str) -> None:
        """Create a partition's log in this directory when the partition is assigned to this broker."""
        self._log_dirs.wanted[where] = path

    async def run(self) -> None:
        """Copy replicas to the directories that were asked for, until cancelled."""
        while True:
            await self._begin_and_drop()
            for move in list(self._moves.values()):
                await self._advance(move)
            if not self._moves:
                await self._pause()

    async def _pause(self) -> None:
        try:
            # A wanted move may have to wait until its partition is hosted, as moves of the previous run do at the start.
            async with asyncio.timeout(_LOOK_AGAIN_S if self._log_dirs.wanted else None):
                await self._wanted.wait()
        except TimeoutError:
            pass
        self._wanted.clear()

    async def _begin_and_drop(self) -> None:
        """Begin moves that are newly wanted, and give up those that are not wanted any more."""
        wanted = self._log_dirs.wanted
        for where, move in list(self._moves.items()):
            partition = self._partitions.get(*where)
            is_ours = partition is not None and partition.log is move.log
            if not is_ours or wanted.get(where) != move.target.path:
                await self._give_up(move)
        for where, path in list(wanted.items()):
            origin = self._log_dirs.directory_of(where)
            hosted = self._partitions.get(*where)
            if where not in self._moves and origin is not None and hosted is not None:
                if origin.path == path:
                    del wanted[where]
                else:
                    self._begin(hosted, origin, path)

    def _begin(self, partition: Partition, origin: LogDir, path: str) -> None:
        where = partition.topic_partition
        target = next((each for each in self._log_dirs.online if each.path == path), None)
        if target is None:
            _logger.error("%s cannot be moved to %s: that is not in use", where, path)
            del self._log_dirs.wanted[where]
            return
        try:
            self._moves[where] = LogMove(
                self._disk, origin, target, partition.log, now_ms=self._clock(), id_=self._new_id()
            )
        except DiskFailed as error:
            _logger.error("%s cannot be moved: %s", where, error)
            del self._log_dirs.wanted[where]
        else:
            _logger.info("%s moves from %s to %s", where, origin.path, path)

    async def _advance(self, move: LogMove) -> None:
        """Copy one chunk, or finish the move."""
        if self._is_too_fast():
            await asyncio.sleep(_PAUSE_S)
            return
        where = move.log.topic_partition
        try:
            move.align(now_ms=self._clock())
            try:
                records = move.read(_CHUNK_BYTES)
            except DiskFailed as error:
                self._on_disk_failed(where, error)
                raise
            move.write(records, now_ms=self._clock())
            self._copied.note(len(records), self._clock())
            if move.is_complete and not await self._is_synced(move):
                return
            if move.is_complete and not self._is_checkpointed(move):
                await self._write_checkpoints()  # the original may have changed meanwhile
                if not self._is_checkpointed(move):
                    await asyncio.sleep(_LOOK_AGAIN_S)  # the disk may be full
            elif move.is_complete:
                await self._finish(move)
            else:
                await asyncio.sleep(0)
        except LogClosed:
            await self._give_up(move)
        except (DiskFailed, CorruptBatch) as error:
            _logger.error("%s is not moved: %s", where, error)
            self._log_dirs.wanted.pop(where, None)
            await self._give_up(move)

    def _is_too_fast(self) -> bool:
        rate = self._live_settings.current.replica_alter_log_dirs_io_max_bytes_per_second
        return self._copied.bytes_per_second(self._clock()) > rate

    async def _is_synced(self, move: LogMove) -> bool:
        """Sync the copy in a worker thread. False if there was anything to sync, because the original may have grown meanwhile."""
        copy = move.copy
        if copy.recovery_point >= copy.log_end_offset:
            return True
        plan = copy.unflushed()
        await self._workers.run(plan.run)
        if not copy.is_closed:
            copy.mark_flushed(plan, self._clock())
        return False

    def _is_checkpointed(self, move: LogMove) -> bool:
        partition = self._partitions.get(*move.log.topic_partition)
        # Without a partition the move is given up soon.
        return partition is None or move.is_checkpointed(partition.seen_epoch)

    async def _finish(self, move: LogMove) -> None:
        where = move.log.topic_partition
        partition = self._partitions.get(*where)
        if partition is None or partition.log is not move.log:
            await self._give_up(move)
            return
        partition.log, left = move.take_over(now_ms=self._clock())
        del self._moves[where]
        self._log_dirs.wanted.pop(where, None)
        _logger.info("%s is in %s now", where, move.target.path)
        await self._remove(left)

    async def _give_up(self, move: LogMove) -> None:
        del self._moves[move.log.topic_partition]
        await self._remove(move.give_up())

    async def _remove(self, path: str) -> None:
        try:
            await self._workers.run(partial(self._disk.remove_tree, path))
        except DiskFailed as error:
            _logger.error("%s stays until the next start: %s", path, error)
