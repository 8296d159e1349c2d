"""Checkpoints are written in a worker thread, and a broker that stops waits for it."""

import asyncio
import threading
from time import perf_counter
from uuid import UUID

import pytest

from headrace.broker.upkeep.housekeeping import Housekeeping, note_replicas
from headrace.broker.workers import Threads
from headrace.ids import TopicPartition
from headrace.log.files.checkpoint import LOG_START_FILE, RECOVERY_POINT_FILE, read_offsets
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import append, make_batch

NOW_MS = 1_700_000_000_000
HERE = TopicPartition("t", 0)


class SlowDisk(MemoryDisk):
    """Puts the first file of a worker thread in place only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.has_begun.set()
            assert self.may_go_on.wait(30)
        super().replace(path, data, durable=durable)


def housekeeping_of(log_dirs: LogDirs) -> Housekeeping:
    return Housekeeping(
        log_dirs=log_dirs,
        partitions=PartitionTable(),
        live_settings=LiveSettings(BrokerSettings.from_properties({})),
        clock=lambda: NOW_MS,
        workers=Threads(perf_counter),
        on_disk_failed=lambda _, error: pytest.fail(str(error)),
        close_idle_connections=lambda: None,
        retry_after_full_disk=lambda: None,
    )


def test_a_stop_waits_for_checkpoints_that_are_being_written() -> None:
    disk = SlowDisk()
    log_dirs = LogDirs(disk, ["/d"], config_for=lambda _: LogConfig(), new_id=lambda: UUID(int=7))
    log_dirs.open(NOW_MS)
    log = log_dirs.create(HERE, UUID(int=1), now_ms=NOW_MS)
    housekeeping = housekeeping_of(log_dirs)

    async def stop_meanwhile() -> None:
        writing = asyncio.create_task(housekeeping.checkpoint())
        await asyncio.to_thread(disk.has_begun.wait)
        append(log, make_batch(5))
        writing.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not writing.done()
        disk.may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        log_dirs.close(NOW_MS)

    asyncio.run(stop_meanwhile())
    assert read_offsets(disk, f"/d/{RECOVERY_POINT_FILE}") == {HERE: 5}
    assert not [stat.name for stat in disk.list_files("/d") if stat.name.endswith(".tmp")]


def test_a_log_that_is_not_hosted_keeps_its_high_watermark() -> None:
    """Roles may be applied long after the start, and a log whose topic cannot be read is not hosted at all."""
    log_dirs = LogDirs(
        MemoryDisk(), ["/d"], config_for=lambda _: LogConfig(), new_id=lambda: UUID(int=7)
    )
    log_dirs.open(NOW_MS)
    gone = TopicPartition("gone", 0)
    log = log_dirs.create(HERE, UUID(int=1), now_ms=NOW_MS)
    append(log, make_batch(5))
    (directory,) = log_dirs.online
    directory.high_watermarks = {HERE: 3, gone: 9}
    partitions = PartitionTable()
    note_replicas(log_dirs, partitions)
    assert directory.high_watermarks == {HERE: 3}
    partitions.add(
        Partition(HERE, UUID(int=1), log, high_watermark=4, on_disk_failed=lambda *_: None)
    )
    note_replicas(log_dirs, partitions)
    assert directory.high_watermarks == {HERE: 4}


def test_deleting_records_does_not_wait_for_room() -> None:
    disk = MemoryDisk()
    log_dirs = LogDirs(disk, ["/d"], config_for=lambda _: LogConfig(), new_id=lambda: UUID(int=7))
    log_dirs.open(NOW_MS)
    log = log_dirs.create(HERE, UUID(int=1), now_ms=NOW_MS)
    append(log, make_batch(5))
    log.advance_log_start(3)
    disk.capacity_bytes = disk.used_bytes
    asyncio.run(housekeeping_of(log_dirs).checkpoint())
    assert read_offsets(disk, f"/d/{LOG_START_FILE}") == {}
    assert log.durable_start == 3
    disk.capacity_bytes = None
    asyncio.run(housekeeping_of(log_dirs).checkpoint())
    assert read_offsets(disk, f"/d/{LOG_START_FILE}") == {HERE: 3}


def test_checkpoints_are_written_one_after_the_other() -> None:
    disk = SlowDisk()
    log_dirs = LogDirs(disk, ["/d"], config_for=lambda _: LogConfig(), new_id=lambda: UUID(int=7))
    log_dirs.open(NOW_MS)
    log = log_dirs.create(HERE, UUID(int=1), now_ms=NOW_MS)
    append(log, make_batch(5))
    log.advance_log_start(2)
    housekeeping = housekeeping_of(log_dirs)

    async def write_twice() -> None:
        first = asyncio.create_task(housekeeping.checkpoint())
        await asyncio.to_thread(disk.has_begun.wait)
        log.advance_log_start(4)
        second = asyncio.create_task(housekeeping.checkpoint())
        await asyncio.sleep(0)
        disk.may_go_on.set()
        await asyncio.gather(first, second)

    asyncio.run(write_twice())
    assert read_offsets(disk, f"/d/{LOG_START_FILE}") == {HERE: 4}
    assert log.durable_start == 4
