"""Compaction by the broker: whatever fails costs a run, and the log is tried again."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from uuid import UUID

import pytest

from headrace.broker.pages.partition_families import cleaner_families
from headrace.broker.upkeep.cleaner import Cleaner
from headrace.broker.upkeep.cleaner_process import CleanerOrder, CleanerReport, do_job
from headrace.broker.upkeep.cleaner_worker import CleanerFailed, run_in_process
from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.compaction.compaction_job import CompactionLimits
from headrace.log.compaction.log_compaction import plan
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.records.control_batch import ControlType
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from tests.support.failing_disk import FailingDisk
from tests.support.log_samples import (
    NOW_MS,
    append,
    make_batch,
    make_marker,
    make_producer_batch,
    stored_records,
)

HERE = TopicPartition("t", 0)
CONFIG = LogConfig(
    cleanup_compact=True, cleanup_delete=False, min_cleanable_dirty_ratio=0.0, segment_bytes=2000
)
BACKOFF_MS = 15_000


class World:
    """One compacted partition with ten records of two keys in a sealed segment."""

    def __init__(self) -> None:
        self.disk = FailingDisk()
        self.now_ms = NOW_MS
        self.failures: list[str] = []
        self.jobs = 0
        self.log_dirs = LogDirs(
            self.disk, ["/d"], config_for=lambda _: CONFIG, new_id=lambda: UUID(int=7)
        )
        self.log_dirs.open(NOW_MS)
        self.log = self.log_dirs.create(HERE, UUID(int=1), now_ms=NOW_MS)
        for _ in range(5):
            append(self.log, make_batch(2))
        self.log.roll(NOW_MS)
        self.partition = Partition(
            HERE,
            UUID(int=1),
            self.log,
            high_watermark=0,
            on_disk_failed=lambda _, error: pytest.fail(str(error)),
        )
        partitions = PartitionTable()
        partitions.add(self.partition)
        self.cleaner = Cleaner(
            partitions,
            self.log_dirs,
            LiveSettings(BrokerSettings.from_properties({})),
            lambda: self.now_ms,
            on_disk_failed=self.on_disk_failed,
            run_job=self.run_job,
        )
        self.commit()

    def commit(self) -> None:
        end_offset = self.log.log_end_offset
        self.partition._high_watermark = end_offset
        self.log.producers.on_high_watermark(end_offset)

    def on_disk_failed(self, log: PartitionLog, error: DiskFailed) -> None:
        self.failures.append(str(error))
        self.log_dirs.take_offline("/d", str(error))

    async def run_job(self, order: CleanerOrder) -> AsyncGenerator[CleanerReport]:
        self.jobs += 1
        for report in do_job(self.disk, order):
            yield report

    def compact(self) -> bool:
        return asyncio.run(self.cleaner.compact_dirtiest())

    def uncleanable(self) -> list[str]:
        families = cleaner_families(self.log_dirs, self.cleaner.uncleanable)
        return [line.rstrip() for line in families if not line.startswith("#")]


def test_the_newest_of_each_key_stay() -> None:
    world = World()
    assert world.compact()
    assert [record.offset for record in stored_records(world.log)] == [8, 9]
    assert world.log.cleaned_to == 10
    assert not world.compact(), "nothing is left to do"


def test_a_full_disk_puts_a_log_aside_until_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.disk.capacity_bytes = world.disk.used_bytes + 100
    assert not world.compact()
    size = world.log.size
    assert "t-0 could not be compacted" in caplog.text
    assert f"tried again in 15 s if {size} bytes are free" in caplog.text
    assert world.uncleanable() == [
        'kafka_log_logcleanermanager_uncleanable_partitions_count{logDirectory="/d"} 1',
        f'kafka_log_logcleanermanager_uncleanable_bytes{{logDirectory="/d"}} {size}',
    ]
    world.now_ms += BACKOFF_MS
    assert not world.compact()
    assert world.jobs == 1, "there is no room yet"
    world.disk.capacity_bytes = None
    assert world.compact()
    assert world.uncleanable()[0].endswith(" 0")
    assert world.failures == []


def test_pauses_grow() -> None:
    world = World()
    pauses_s = []
    for _ in range(9):
        world.disk.fail(0, DiskFailed)
        before, tries = world.now_ms, world.jobs
        while world.jobs == tries:
            world.compact()
            world.now_ms += 1000
        pauses_s.append((world.now_ms - before) // 1000 - 1)
        world.disk.work()
    assert pauses_s == [0, 14, 29, 59, 119, 239, 479, 899, 899]


def test_a_full_disk_while_a_run_is_planned(caplog: pytest.LogCaptureFixture) -> None:
    """An abort whose index entry had no room is written first."""
    world = World()
    append(world.log, make_producer_batch(1, 0, transactional=True))
    marker = make_marker(ControlType.ABORT, 1)
    world.disk.capacity_bytes = world.disk.used_bytes + len(marker)
    append(world.log, marker)
    world.commit()
    assert not world.compact()
    assert "t-0 could not be compacted" in caplog.text
    assert world.jobs == 0
    world.disk.capacity_bytes = None
    world.now_ms += BACKOFF_MS
    assert world.compact()


def test_a_disk_that_fails_while_results_are_put_in_place_takes_its_directory_offline() -> None:
    for operations in range(100):
        world = World()
        records = stored_records(world.log)
        world.disk.fail(operations, DiskFailed)
        world.compact()
        world.disk.work()
        if not world.disk.has_failed:
            break
        if not world.failures:
            assert stored_records(world.log) in (records, records[-2:])
        again = LogDirs(world.disk, ["/d"], config_for=lambda _: CONFIG, new_id=lambda: UUID(int=7))
        world.log_dirs.take_offline("/d", "stopped")
        again.open(NOW_MS)
        log = again.get(HERE)
        assert log is not None
        assert stored_records(log) in (records, records[-2:])
        assert log.log_end_offset == 10
    else:
        pytest.fail("there are not so many operations")


def test_a_truncation_during_a_run_leaves_new_records_dirty() -> None:
    world = World()
    append(world.log, make_batch(2))
    world.log.roll(NOW_MS)
    world.commit()

    async def truncate_then_report(order: CleanerOrder) -> AsyncGenerator[CleanerReport]:
        async for report in world.run_job(order):
            if report.progress is not None:
                world.log.truncate_to(10, now_ms=NOW_MS)
                append(world.log, make_batch(4))
            yield report

    world.cleaner._run_job = truncate_then_report
    world.compact()
    assert (world.log.cleaned_to or 0) <= 10


# ---- the process


def order(world: World) -> CleanerOrder:
    state = world.cleaner._assess(world.partition)
    assert state is not None
    return CleanerOrder(plan(world.log, state, now_ms=NOW_MS), CompactionLimits(), 1e9)


async def reports(order: CleanerOrder) -> list[CleanerReport]:
    return [report async for report in run_in_process(order)]


@pytest.mark.parametrize(
    ("program", "what"),
    [("/nowhere/python", "cannot be started"), ("/bin/echo", "cannot be understood")],
)
def test_a_process_that_does_not_work_is_a_failed_run(
    monkeypatch: pytest.MonkeyPatch, program: str, what: str
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(CleanerFailed, match=what):
        asyncio.run(reports(order(World())))


def test_a_process_tells_what_it_could_not_do() -> None:
    (report,) = asyncio.run(reports(order(World())))
    assert report.error is not None, "there is no such directory outside of this test's memory"
    assert not report.is_disk_full
