"""Thousands of logs in one directory: what it costs to create, stop and start them is counted in syncs."""

import logging
from random import Random
from uuid import UUID

import pytest

from headrace.ids import TopicPartition
from headrace.log.clean_run import CLEAN_SHUTDOWN_FILE
from headrace.log.files.checkpoint import RECOVERY_POINT_FILE, read_offsets, read_topic_id
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import NOW_MS, append, make_batch, stored_records

PATH = "/data"
TOPIC_ID = UUID(int=0x1234)
COUNT = 100
PARTITIONS = [TopicPartition("many", number) for number in range(COUNT)]
SYNCS_OF_A_STOP = 1 + 6 * 2  # the volume; five checkpoints and the marker with the directory


class CountingDisk(MemoryDisk):
    """Notes the files that are put in place."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[str] = []

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.replaced.append(path)
        super().replace(path, data, durable=durable)


class WithoutVolumes(MemoryDisk):
    """A system that cannot sync a volume."""

    def volume_syncer(self, directory: str) -> None:  # type: ignore[override]  # the protocol allows None
        return None


def open_dirs(disk: MemoryDisk, config: LogConfig | None = None) -> LogDirs:
    dirs = LogDirs(
        disk, [PATH], config_for=lambda _: config or LogConfig(), new_id=lambda: UUID(int=7)
    )
    dirs.open(NOW_MS)
    return dirs


def create_all(dirs: LogDirs, partitions: list[TopicPartition] | None = None) -> None:
    for topic_partition in partitions or PARTITIONS:
        dirs.create(topic_partition, TOPIC_ID, now_ms=NOW_MS)


def append_to_all(dirs: LogDirs) -> None:
    for log in dirs:
        append(log, make_batch())


def sync_new_logs(dirs: LogDirs) -> None:
    while syncs := list(dirs.new_log_syncs(limit=30)):
        for directory, some in syncs:
            some.run()
            dirs.mark_durable(directory, some)


def end_offsets(dirs: LogDirs) -> dict[TopicPartition, int]:
    return {log.topic_partition: log.log_end_offset for log in dirs}


def test_creating_logs_syncs_nothing() -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    before = disk.syncs
    create_all(dirs)
    append_to_all(dirs)
    assert disk.syncs == before


def test_a_new_log_belongs_to_its_topic_for_good_once_that_is_synced() -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs)
    sync_new_logs(dirs)
    disk.crash(Random(1))
    again = open_dirs(disk)
    assert {log.topic_id for log in again} == {TOPIC_ID}
    assert len(list(again)) == COUNT


def test_what_a_killed_broker_had_not_synced_is_synced_by_the_next() -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs, PARTITIONS[:10])
    dirs.online[0].release()  # killed: the files are as it left them, but not durable
    again = open_dirs(disk)
    append_to_all(again)
    sync_new_logs(again)
    disk.crash(Random(1))
    assert {log.topic_id for log in open_dirs(disk)} == {TOPIC_ID}


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_before_that_breaks_no_log(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs, PARTITIONS[:10])
    append_to_all(dirs)
    disk.sync_directory(PATH)
    disk.crash(Random(seed))
    with caplog.at_level(logging.CRITICAL):
        again = open_dirs(disk)
    assert again.broken == {}
    for log in again:
        assert log.topic_id in (None, TOPIC_ID)
        assert log.log_end_offset in (0, 1)


def test_a_log_without_a_readable_id_is_given_one() -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs, PARTITIONS[:1])
    dirs.online[0].release()
    disk.replace(f"{PATH}/many-0/partition.metadata", b"")
    again = open_dirs(disk)
    (log,) = again
    assert log.topic_id is None
    again.adopt(log, TOPIC_ID)
    assert log.topic_id == read_topic_id(disk, log.directory) == TOPIC_ID


def test_a_torn_id_under_the_checkpoints_of_a_deleted_log_of_that_name() -> None:
    """The checkpoints are rewritten only later: they must not make a new log look like one that was flushed."""
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs, PARTITIONS[:1])
    append_to_all(dirs)
    sync_new_logs(dirs)
    for log in dirs:
        log.flush(NOW_MS)
    for checkpoints in dirs.checkpoints():
        for path, content in checkpoints.files:
            disk.replace(path, content)
        dirs.checkpointed(checkpoints)
    dirs.set_aside(PARTITIONS[0], "delete")
    create_all(dirs, PARTITIONS[:1])
    dirs.online[0].release()
    disk.replace(f"{PATH}/many-0/partition.metadata", b"version: 0")
    again = open_dirs(disk)
    assert again.broken == {}
    (log,) = again
    assert log.topic_id is None


def test_a_torn_id_is_gone_for_good_before_the_log_is_flushed() -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs, PARTITIONS[:1])
    sync_new_logs(dirs)
    dirs.online[0].release()
    disk.replace(f"{PATH}/many-0/partition.metadata", b"version: 0")
    again = open_dirs(disk)
    (log,) = again
    append(log, make_batch())
    log.flush(NOW_MS)
    for checkpoints in again.checkpoints():
        for path, content in checkpoints.files:
            disk.replace(path, content)
    disk.crash(Random(5))
    last = open_dirs(disk)
    assert (last.broken, end_offsets(last)) == ({}, {PARTITIONS[0]: 1})


def test_a_log_whose_id_is_not_durable_counts_as_never_flushed() -> None:
    """Or its damaged id would be taken for the work of a broken disk, after a crash."""
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs, PARTITIONS[:1])
    (log,) = dirs
    append(log, make_batch())
    log.flush(NOW_MS)

    def checkpointed() -> dict[TopicPartition, int]:
        for checkpoints in dirs.checkpoints():
            for path, content in checkpoints.files:
                disk.replace(path, content)
        return read_offsets(disk, f"{PATH}/{RECOVERY_POINT_FILE}")

    assert checkpointed() == {PARTITIONS[0]: 0}
    sync_new_logs(dirs)
    assert checkpointed() == {PARTITIONS[0]: 1}


def test_births_pass_over_logs_that_were_deleted_meanwhile() -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs, PARTITIONS[:2])
    ((directory, new_log_sync),) = dirs.new_log_syncs(limit=10)
    path = dirs.set_aside(PARTITIONS[0], "delete")
    assert path is not None
    disk.remove_tree(path)
    new_log_sync.run()
    dirs.mark_durable(directory, new_log_sync)
    assert list(dirs.new_log_syncs(limit=10)) == []


def test_many_logs_stop_with_one_sync_of_their_volume() -> None:
    disk = CountingDisk()
    dirs = open_dirs(disk)
    create_all(dirs)
    append_to_all(dirs)
    before = disk.syncs
    dirs.close(NOW_MS)
    assert disk.syncs - before == SYNCS_OF_A_STOP
    disk.crash(Random(2))
    before = disk.syncs
    again = open_dirs(disk)
    assert disk.syncs - before == 1, "only the marker goes for good"
    assert end_offsets(again) == dict.fromkeys(PARTITIONS, 1)
    assert {log.recovery_point for log in again} == {1}
    assert {log.leader_epochs.latest for log in again} == {0}
    assert [len(stored_records(log)) for log in again] == [1] * COUNT
    disk.replaced.clear()
    again.close(NOW_MS)
    touched = [path for path in disk.replaced if "/many-" in path]
    assert touched == [], "nothing has changed since"


def test_without_a_sync_of_volumes_each_log_is_synced() -> None:
    disk = WithoutVolumes()
    dirs = open_dirs(disk)
    create_all(dirs)
    append_to_all(dirs)
    before = disk.syncs
    dirs.close(NOW_MS)
    assert disk.syncs - before > COUNT
    disk.crash(Random(3))
    again = open_dirs(disk)
    assert end_offsets(again) == dict.fromkeys(PARTITIONS, 1)
    assert {log.topic_id for log in again} == {TOPIC_ID}


def test_a_failed_sync_of_the_volume_leaves_no_marker() -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs)
    disk.fail_syncs = True
    dirs.close(NOW_MS)
    assert list(dirs.offline) == [PATH]
    assert not disk.exists(f"{PATH}/{CLEAN_SHUTDOWN_FILE}")


def test_a_start_after_a_kill_syncs_nothing() -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs)
    append_to_all(dirs)
    dirs.online[0].release()
    before = disk.syncs
    again = open_dirs(disk)
    assert disk.syncs == before
    assert end_offsets(again) == dict.fromkeys(PARTITIONS, 1)
    assert {log.recovery_point for log in again} == {0}, "nor does it say that it did"


def test_what_must_be_durable_before_it_is_read_is_so_after_a_kill() -> None:
    """A batch that was written and not yet synced when the process died is found, and will be served."""
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs, PARTITIONS[:1])
    append_to_all(dirs)
    dirs.online[0].release()
    strict = LogConfig(flush_messages=1)
    again = open_dirs(disk, strict)
    assert {log.recovery_point for log in again} == {1}
    disk.crash(Random(4))
    assert end_offsets(open_dirs(disk, strict)) == {PARTITIONS[0]: 1}


def test_progress_is_told_for_each_log() -> None:
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    create_all(dirs, PARTITIONS[:3])
    dirs.close(NOW_MS)
    told: list[tuple[str, int, int]] = []
    again = LogDirs(disk, [PATH], config_for=lambda _: LogConfig(), new_id=lambda: UUID(int=7))
    again.open(NOW_MS, lambda path, done, of: told.append((path, done, of)))
    assert told == [(PATH, 1, 3), (PATH, 2, 3), (PATH, 3, 3)]
