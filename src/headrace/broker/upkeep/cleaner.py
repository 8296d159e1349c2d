"""Compacts the dirtiest log, again and again. A rim module.

The event loop decides which log and puts the results in place; a process of its own does the reading and writing. A run
that fails puts its log aside for a while, and leaves the broker and the other logs alone.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from typing import NamedTuple

from headrace.broker.upkeep.cleaner_process import CleanerOrder, CleanerReport
from headrace.broker.upkeep.cleaner_worker import CleanerFailed
from headrace.broker.upkeep.uncleanable_logs import UncleanableLogs
from headrace.clock import Clock
from headrace.errors import CorruptBatch, DiskFailed, DiskFull
from headrace.log.compaction.compaction_job import (
    CompactionJob,
    CompactionLimits,
    CompactionProgress,
    RewrittenSegment,
)
from headrace.log.compaction.compaction_plan import Cleanable
from headrace.log.compaction.log_compaction import assess, discard, install, plan
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.settings.live_settings import LiveSettings

_logger = logging.getLogger(__name__)


class _Dirty(NamedTuple):
    partition: Partition
    state: Cleanable


class Cleaner:
    """The broker's compaction."""

    def __init__(
        self,
        partitions: PartitionTable,
        log_dirs: LogDirs,
        live_settings: LiveSettings,
        clock: Clock,
        *,
        on_disk_failed: Callable[[PartitionLog, DiskFailed], None],
        run_job: Callable[[CleanerOrder], AsyncGenerator[CleanerReport]],
    ) -> None:
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._live_settings = live_settings
        self._clock = clock
        self._on_disk_failed = on_disk_failed
        self._run_job = run_job
        self._uncleanable = UncleanableLogs()

    @property
    def uncleanable(self) -> Collection[PartitionLog]:
        """Logs whose compaction failed and is to be tried again."""
        return list(self._uncleanable)

    async def run(self) -> None:
        """Compact logs while any is due, then wait; until cancelled."""
        while True:
            settings = self._live_settings.current
            if not settings.log_cleaner_enable or not await self.compact_dirtiest():
                await asyncio.sleep(settings.log_cleaner_backoff_ms / 1000)

    async def compact_dirtiest(self) -> bool:
        """Compact the log with the highest dirty ratio. Returns whether its clean offset has moved."""
        self._uncleanable.forget_closed()
        dirty = await self._dirtiest()
        return dirty is not None and await self._compact(dirty)

    async def _dirtiest(self) -> _Dirty | None:
        dirtiest: _Dirty | None = None
        for count, partition in enumerate(list(self._partitions)):
            if count % 50 == 0:
                await asyncio.sleep(0)
            if partition.log.config.cleanup_compact and not partition.log.is_closed:
                state = self._assess(partition) if self._may_try(partition.log) else None
                if state is not None and (
                    dirtiest is None or _urgency(state) > _urgency(dirtiest.state)
                ):
                    dirtiest = _Dirty(partition, state)
        return dirtiest

    def _may_try(self, log: PartitionLog) -> bool:
        needed_bytes = self._uncleanable.needed_bytes(log, self._clock())
        if not needed_bytes:
            return needed_bytes is not None
        directory = self._log_dirs.directory_of(log.topic_partition)
        try:
            return (
                directory is not None
                and self._log_dirs.usage(directory).usable_bytes >= needed_bytes
            )
        except DiskFailed:
            return False

    def _assess(self, partition: Partition) -> Cleanable | None:
        where = partition.topic_partition
        # A log that is being moved is not compacted: its copy could hold the value of a key and miss the tombstone.
        if self._log_dirs.directory_of(where) is None or self._log_dirs.is_moving(where):
            return None
        try:
            state = assess(
                partition.log,
                last_stable_offset=partition.last_stable_offset,
                now_ms=self._clock(),
            )
        except CorruptBatch as error:
            self._put_aside(partition.log, str(error))
            return None
        except DiskFailed as error:
            self._on_disk_failed(partition.log, error)
            return None
        return state if state.is_due else None

    async def _compact(self, dirty: _Dirty) -> bool:
        """Run one job. Returns whether the log's clean offset has moved."""
        log = dirty.partition.log
        try:
            job = plan(log, dirty.state, now_ms=self._clock())
            progress = await self._rewrite(log, job)
        except DiskFull as error:
            self._put_aside(log, str(error), lacks_room=True)
            return False
        except DiskFailed as error:
            if not log.is_closed:
                self._on_disk_failed(log, error)
            return False
        except (CorruptBatch, CleanerFailed) as error:
            self._put_aside(log, str(error))
            return False
        if progress is None or log.is_closed:
            return False  # the log has changed meanwhile, or another has taken its place
        if self._uncleanable.succeeded(log):
            _logger.info("%s is compacted again", log.topic_partition)
        if progress.first_dirty_offset <= job.first_dirty_offset:
            return False
        if (
            log.truncations == job.truncations
        ):  # after a truncation, other records may have been appended below that offset
            log.cleaned_to = progress.first_dirty_offset
        _logger.info(
            "%s compacted up to %d: %d records kept, %d dropped",
            log.topic_partition,
            progress.first_dirty_offset,
            progress.records_kept,
            progress.records_dropped,
        )
        return True

    async def _rewrite(self, log: PartitionLog, job: CompactionJob) -> CompactionProgress | None:
        """Run the job in a cleaner process and put each rewritten segment in place. None if the log has changed meanwhile.

        Raises CleanerFailed, and DiskFull, which leave the log as it was; DiskFailed, if it cannot be used any more.
        """
        settings = self._live_settings.current
        order = CleanerOrder(
            job,
            CompactionLimits(dedupe_buffer_bytes=settings.log_cleaner_dedupe_buffer_size),
            settings.log_cleaner_io_max_bytes_per_second,
        )
        async with aclosing(self._run_job(order)) as reports:
            async for report in reports:
                if report.progress is not None:
                    return report.progress
                if report.error is not None:
                    # Not a fault: the cleaner process was reading what retention or a truncation has removed meanwhile.
                    if (
                        log.segments.first.base_offset > job.segments[0].base_offset
                        or log.truncations != job.truncations
                    ):
                        return None
                    raise (
                        DiskFull(report.error)
                        if report.is_disk_full
                        else CleanerFailed(report.error)
                    )
                if report.rewritten is not None and not self._install(log, report.rewritten):
                    return None
        raise CleanerFailed("the cleaner process ended without a result")

    def _install(self, log: PartitionLog, rewritten: RewrittenSegment) -> bool:
        if self._log_dirs.is_moving(log.topic_partition):
            discard(log.disk, log.directory, rewritten)
            return False
        return install(log, rewritten, now_ms=self._clock())

    def _put_aside(self, log: PartitionLog, reason: str, *, lacks_room: bool = False) -> None:
        if log.is_closed:
            return
        failure = self._uncleanable.failed(
            log,
            pause_ms=self._live_settings.current.log_cleaner_backoff_ms,
            now_ms=self._clock(),
            lacks_room=lacks_room,
        )
        _logger.error(
            "%s could not be compacted (%s); failure %d in a row, tried again in %d s%s",
            log.topic_partition,
            reason,
            failure.count,
            failure.pause_ms // 1000,
            f" if {failure.needed_bytes} bytes are free on its disk by then" if lacks_room else "",
        )


def _urgency(state: Cleanable) -> tuple[bool, float]:
    return state.overdue_ms > 0, state.dirty_ratio
