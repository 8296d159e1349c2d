"""Compacts the dirtiest log, again and again. A rim module.

The event loop decides which log and puts the results in place; a process of its own does the reading and writing.
"""

import asyncio
import logging
import sys
from typing import NamedTuple

import msgspec

from headrace.broker.cleaner_process import CleanerOrder, CleanerReport
from headrace.broker.clock import Clock
from headrace.broker.live_settings import LiveSettings
from headrace.errors import CorruptBatch, DiskFailed
from headrace.log.compaction import assess, discard, install, plan
from headrace.log.compaction_job import (
    CompactionJob,
    CompactionLimits,
    CompactionProgress,
    RewrittenSegment,
)
from headrace.log.compaction_plan import Cleanable
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable

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
    ) -> None:
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._live_settings = live_settings
        self._clock = clock
        self._uncleanable: set[PartitionLog] = set()  # failed once; tried again after a restart

    async def run(self) -> None:
        """Compact what is due, wait, look again; until cancelled."""
        while True:
            settings = self._live_settings.current
            dirty = await self._dirtiest() if settings.log_cleaner_enable else None
            if dirty is None or not await self._compact(dirty):
                await asyncio.sleep(settings.log_cleaner_backoff_ms / 1000)

    async def _dirtiest(self) -> _Dirty | None:
        dirtiest: _Dirty | None = None
        for count, partition in enumerate(list(self._partitions)):
            if count % 50 == 0:
                await asyncio.sleep(0)
            if partition.log.config.cleanup_compact and not partition.log.is_closed:
                state = None if partition.log in self._uncleanable else self._assess(partition)
                if state is not None and (
                    dirtiest is None or _urgency(state) > _urgency(dirtiest.state)
                ):
                    dirtiest = _Dirty(partition, state)
        return dirtiest

    def _assess(self, partition: Partition) -> Cleanable | None:
        where = partition.topic_partition
        directory = self._log_dirs.directory_of(where)
        # While a log is copied nothing may go: of a key the copy could have the value, and then miss that it was deleted.
        if directory is None or self._log_dirs.is_moving(where):
            return None
        try:
            state = assess(
                partition.log,
                checkpointed=directory.cleaned_to.get(partition.topic_partition),
                last_stable_offset=partition.last_stable_offset,
                now_ms=self._clock(),
            )
        except (CorruptBatch, DiskFailed) as error:
            _logger.error("%s cannot be compacted: %s", partition.topic_partition, error)
            return None
        return state if state.is_due else None

    async def _compact(self, dirty: _Dirty) -> bool:
        """One run. Returns whether it got anywhere."""
        log = dirty.partition.log
        job = plan(log, dirty.state, now_ms=self._clock())
        limits = CompactionLimits(
            dedupe_buffer_bytes=self._live_settings.current.log_cleaner_dedupe_buffer_size
        )
        progress = await self._rewrite(log, job, limits)
        if progress is None or progress.first_dirty_offset <= job.first_dirty_offset:
            return False
        if log.is_closed:
            return False  # another log has taken its place
        directory = self._log_dirs.directory_of(log.topic_partition)
        if directory is not None:
            directory.cleaned_to[log.topic_partition] = progress.first_dirty_offset
        _logger.info(
            "%s compacted up to %d: %d records kept, %d dropped",
            log.topic_partition,
            progress.first_dirty_offset,
            progress.records_kept,
            progress.records_dropped,
        )
        return True

    async def _rewrite(
        self, log: PartitionLog, job: CompactionJob, limits: CompactionLimits
    ) -> CompactionProgress | None:
        """Have the job done elsewhere, and put each result in place. None if any of it failed."""
        rate = self._live_settings.current.log_cleaner_io_max_bytes_per_second
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headrace.broker.cleaner_process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(CleanerOrder(job, limits, rate)) + b"\n")
            async for line in process.stdout:
                report = msgspec.json.decode(line, type=CleanerReport)
                if report.progress is not None:
                    return report.progress
                if report.error is not None:
                    # Retention may have taken segments away under the cleaner's hands: nobody's fault.
                    if log.segments.first.base_offset <= job.segments[0].base_offset:
                        self._give_up(log, report.error)
                    return None
                if report.rewritten is not None and not self._install(log, report.rewritten):
                    return None
        except (DiskFailed, ConnectionError) as error:
            self._give_up(log, str(error))
            return None
        finally:
            if process.returncode is None:
                try:
                    process.kill()
                except ProcessLookupError:
                    pass
                await process.wait()
        self._give_up(log, "the cleaner ended without a result")
        return None

    def _install(self, log: PartitionLog, rewritten: RewrittenSegment) -> bool:
        if self._log_dirs.is_moving(log.topic_partition):
            discard(log.disk, log.directory, rewritten)
            return False
        return install(log, rewritten, now_ms=self._clock())

    def _give_up(self, log: PartitionLog, reason: str) -> None:
        if not log.is_closed:
            _logger.error("%s is not compacted any more: %s", log.topic_partition, reason)
            self._uncleanable.add(log)


def _urgency(state: Cleanable) -> tuple[bool, float]:
    return state.overdue_ms > 0, state.dirty_ratio
