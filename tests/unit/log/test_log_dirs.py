import logging
from pathlib import Path
from random import Random
from uuid import UUID, uuid4

import pytest

from headrace.errors import DiskFailed, SettingError
from headrace.ids import TopicPartition
from headrace.log.clean_run import CLEAN_SHUTDOWN_FILE, CleanRun
from headrace.log.files.checkpoint import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    read_offsets,
)
from headrace.log.files.disk import Disk, FileStat
from headrace.log.files.meta_properties import claim_directory, read_cluster_id
from headrace.log.files.os_disk import OsDisk
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs, parse_directory_name
from headrace.log.retention import delete_old_segments
from headrace.log.segments.segment import offset_name
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import NOW_MS, append, make_batch, stored_records

PATHS = ["/one", "/two"]
ORDERS = [TopicPartition("orders", number) for number in range(4)]
TOPIC_ID = UUID(int=0x1234)


def log_dirs(disk: Disk, paths: list[str] | None = None) -> LogDirs:
    dirs = LogDirs(
        disk, paths or PATHS, config_for=lambda _: LogConfig(), new_id=lambda: UUID(int=7)
    )
    dirs.open(NOW_MS)
    return dirs


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def dirs(disk: MemoryDisk) -> LogDirs:
    """Four partitions over two directories, with one record each."""
    dirs = log_dirs(disk)
    for topic_partition in ORDERS:
        append(dirs.create(topic_partition, TOPIC_ID, now_ms=NOW_MS), make_batch())
    return dirs


def write_checkpoints(disk: MemoryDisk, dirs: LogDirs) -> None:
    for checkpoints in dirs.checkpoints():
        for path, content in checkpoints.files:
            disk.replace(path, content)
        dirs.checkpointed(checkpoints)


def kill(disk: MemoryDisk, dirs: LogDirs) -> LogDirs:
    for directory in dirs.online:
        directory.release()
    return log_dirs(disk)


def test_logs_spread_over_the_directories(dirs: LogDirs) -> None:
    assert [len(directory.logs) for directory in dirs.online] == [2, 2]
    assert {log.topic_partition for log in dirs} == set(ORDERS)
    directory = dirs.directory_of(ORDERS[3])
    assert directory is not None
    assert directory.path == "/two"
    assert dirs.get(TopicPartition("orders", 9)) is None
    assert dirs.directory_of(TopicPartition("orders", 9)) is None


def test_a_clean_stop_leaves_checkpoints_and_a_marker(disk: MemoryDisk, dirs: LogDirs) -> None:
    for directory in dirs.online:
        directory.high_watermarks[next(iter(directory.logs))] = 1
        next(iter(directory.logs.values())).cleaned_to = 0
    log = dirs.get(ORDERS[0])
    assert log is not None
    append(log, make_batch())
    log.advance_log_start(1)
    dirs.close(NOW_MS, run=CleanRun(33, 12))
    assert disk.exists(f"/one/{CLEAN_SHUTDOWN_FILE}")
    assert read_offsets(disk, f"/one/{RECOVERY_POINT_FILE}") == {ORDERS[0]: 2, ORDERS[2]: 1}
    assert read_offsets(disk, f"/one/{LOG_START_FILE}") == {ORDERS[0]: 1}
    assert read_offsets(disk, f"/two/{LOG_START_FILE}") == {}
    assert read_offsets(disk, f"/two/{HIGH_WATERMARK_FILE}") == {ORDERS[1]: 1}
    again = log_dirs(disk)
    assert not disk.exists(f"/one/{CLEAN_SHUTDOWN_FILE}"), "gone while the broker runs"
    assert again.previous_run == CleanRun(33, 12)
    found = again.get(ORDERS[0])
    assert found is not None
    assert (found.log_start_offset, found.log_end_offset, found.topic_id) == (1, 2, TOPIC_ID)
    assert read_offsets(disk, f"/one/{CLEANER_FILE}") == {ORDERS[0]: 0}
    assert found.cleaned_to == 0
    assert again.online[1].high_watermarks == {ORDERS[1]: 1}


def test_the_marker_is_gone_for_good_before_anything_is_written(
    disk: MemoryDisk, dirs: LogDirs
) -> None:
    """If it came back, the next start would trust files that were never synced."""
    dirs.close(NOW_MS)
    for path in ("/", *PATHS):
        disk.sync_directory(path)
    log_dirs(disk)
    for seed in range(5):
        disk.crash(Random(seed))
        assert not disk.exists(f"/one/{CLEAN_SHUTDOWN_FILE}")


def test_a_kill_loses_nothing(disk: MemoryDisk, dirs: LogDirs) -> None:
    write_checkpoints(disk, dirs)
    again = kill(disk, dirs)
    assert {log.topic_partition: log.log_end_offset for log in again} == dict.fromkeys(ORDERS, 1)


def test_a_log_start_counts_when_it_is_in_the_checkpoint(disk: MemoryDisk, dirs: LogDirs) -> None:
    log = dirs.get(ORDERS[0])
    assert log is not None
    append(log, make_batch(5))
    log.advance_log_start(3)
    assert log.durable_start == 0
    for checkpoints in dirs.checkpoints():
        log.advance_log_start(4)  # while the files are written
        for path, content in checkpoints.files:
            disk.replace(path, content)
        dirs.checkpointed(checkpoints)
    assert (log.durable_start, log.log_start_offset) == (3, 4)
    again = kill(disk, dirs).get(ORDERS[0])
    assert again is not None
    assert (again.durable_start, again.log_start_offset) == (3, 3)


def test_a_log_start_from_before_a_truncation_does_not_count(
    disk: MemoryDisk, dirs: LogDirs
) -> None:
    log = dirs.get(ORDERS[0])
    assert log is not None
    append(log, make_batch(5))
    log.advance_log_start(5)
    write_checkpoints(disk, dirs)
    assert log.durable_start == 5
    log.truncate_to(2, now_ms=NOW_MS)
    assert log.durable_start <= 2
    append(log, make_batch(3))
    log.advance_log_start(4)
    assert log.durable_start <= 2


def test_damaged_checkpoints_are_started_anew(
    disk: MemoryDisk, dirs: LogDirs, caplog: pytest.LogCaptureFixture
) -> None:
    write_checkpoints(disk, dirs)
    disk.replace(f"/one/{RECOVERY_POINT_FILE}", b"rubbish")
    with caplog.at_level(logging.WARNING):
        again = kill(disk, dirs)
    assert len(list(again)) == 4
    assert RECOVERY_POINT_FILE in caplog.text


def test_one_broken_partition_does_not_keep_the_others_from_opening(
    disk: MemoryDisk, dirs: LogDirs, caplog: pytest.LogCaptureFixture
) -> None:
    dirs.close(NOW_MS)
    disk.replace("/one/orders-0/partition.metadata", b"rubbish")
    with caplog.at_level(logging.ERROR):
        again = log_dirs(disk)
    assert {log.topic_partition for log in again} == set(ORDERS[1:])
    assert "partition.metadata" in again.broken[ORDERS[0]]
    assert again.offline == {}


def test_a_directory_that_fails_takes_only_its_own_logs_along(
    disk: MemoryDisk, dirs: LogDirs
) -> None:
    gone = dirs.take_offline("/one", "the disk burns")
    assert set(gone) == {ORDERS[0], ORDERS[2]}
    assert dirs.offline == {"/one": "the disk burns"}
    assert {log.topic_partition for log in dirs} == {ORDERS[1], ORDERS[3]}
    assert dirs.take_offline("/one", "again") == []
    created = dirs.create(TopicPartition("new", 0), TOPIC_ID, now_ms=NOW_MS)
    assert created.directory == "/two/new-0"
    dirs.close(NOW_MS)
    assert not disk.exists(f"/one/{CLEAN_SHUTDOWN_FILE}")
    assert disk.exists(f"/two/{CLEAN_SHUTDOWN_FILE}")


def test_a_failed_sync_at_the_stop_leaves_no_marker(disk: MemoryDisk, dirs: LogDirs) -> None:
    disk.fail_syncs = True
    dirs.close(NOW_MS)
    assert set(dirs.offline) == set(PATHS)
    disk.fail_syncs = False
    assert not disk.exists(f"/one/{CLEAN_SHUTDOWN_FILE}")


def test_some_unusable_directory_is_survived_and_all_of_them_is_not(
    disk: MemoryDisk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.create("/one")
    with caplog.at_level(logging.ERROR):
        dirs = log_dirs(disk)
        assert [directory.path for directory in dirs.online] == ["/two"]
        disk.create("/three")
        with pytest.raises(DiskFailed, match="no usable log directory"):
            log_dirs(disk, ["/one", "/three"])
    dirs.take_offline("/two", "also gone")
    with pytest.raises(DiskFailed, match="no log directory is online"):
        dirs.create(ORDERS[0], TOPIC_ID, now_ms=NOW_MS)


def test_two_brokers_cannot_share_a_directory(tmp_path: Path) -> None:
    first = log_dirs(OsDisk(), [f"{tmp_path}/one"])
    with pytest.raises(DiskFailed, match="another broker"):
        log_dirs(OsDisk(), [f"{tmp_path}/one"])
    first.close(NOW_MS)
    log_dirs(OsDisk(), [f"{tmp_path}/one"]).close(NOW_MS)


def test_a_log_set_aside_frees_its_name_and_is_left_over_at_the_next_start(
    disk: MemoryDisk, dirs: LogDirs
) -> None:
    path = dirs.set_aside(ORDERS[0], "delete")
    assert path == f"/one/orders-0.{UUID(int=7).hex}-delete"
    assert dirs.set_aside(ORDERS[0], "delete") is None
    assert disk.exists(f"{path}/{offset_name(0)}.log")
    again = dirs.create(ORDERS[0], UUID(int=9), now_ms=NOW_MS)
    assert again.log_end_offset == 0
    stray = dirs.set_aside(ORDERS[1], "stray")
    assert stray is not None
    last = kill(disk, dirs)
    assert last.leftovers == [path]
    assert disk.exists(stray), "a stray log may still be wanted by someone"
    assert {log.topic_partition for log in last} == {ORDERS[0], ORDERS[2], ORDERS[3]}


def test_a_long_name_is_cut_when_it_is_set_aside(disk: MemoryDisk) -> None:
    dirs = log_dirs(disk)
    topic_partition = TopicPartition("x" * 249, 0)
    dirs.create(topic_partition, TOPIC_ID, now_ms=NOW_MS)
    path = dirs.set_aside(topic_partition, "delete")
    assert path is not None
    assert len(path.rpartition("/")[2]) == 255


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("my-topic.v1-12", TopicPartition("my-topic.v1", 12)),
        ("orders", None),
        ("-0", None),
        ("orders-", None),
        ("orders-x", None),
        ("orders-\u0663", None),
        ("orders-0.0000-delete", None),
    ],
)
def test_directory_names(name: str, parsed: TopicPartition | None) -> None:
    assert parse_directory_name(name) == parsed


def test_real_directories(tmp_path: Path) -> None:
    paths = [f"{tmp_path}/one", f"{tmp_path}/two"]
    dirs = log_dirs(OsDisk(), paths)
    for topic_partition in ORDERS:
        append(dirs.create(topic_partition, TOPIC_ID, now_ms=NOW_MS), make_batch(3))
    dirs.close(NOW_MS)
    again = log_dirs(OsDisk(), paths)
    assert [len(stored_records(log)) for log in again] == [3] * 4
    assert again.usage(again.online[0]).total_bytes > 0
    again.close(NOW_MS)


# ---- meta.properties


def claim(disk: MemoryDisk, *, cluster_id: str = "c1", node_id: int = 3) -> tuple[str, int, str]:
    return claim_directory(
        disk, "/one", cluster_id=cluster_id, node_id=node_id, new_directory_id=UUID(int=5)
    )


def test_a_directory_is_claimed_once(disk: MemoryDisk) -> None:
    disk.make_directory("/one")
    assert read_cluster_id(disk, "/one") is None
    first = claim(disk)
    assert disk.read_bytes("/one/meta.properties") == (
        b"version=1\ncluster.id=c1\nnode.id=3\ndirectory.id=AAAAAAAAAAAAAAAAAAAABQ\n"
    )
    assert claim(disk) == first == ("c1", 3, "AAAAAAAAAAAAAAAAAAAABQ")
    assert read_cluster_id(disk, "/one") == "c1"
    with pytest.raises(SettingError, match=r"cluster\.id is c1"):
        claim(disk, cluster_id="c2")
    with pytest.raises(SettingError, match=r"node\.id is 3"):
        claim(disk, node_id=4)


def test_files_of_kafka_are_understood(disk: MemoryDisk) -> None:
    disk.make_directory("/one")
    disk.replace(
        "/one/meta.properties",
        b"#\n#Sat Jan 01 00:00:00 UTC 2026\ncluster.id=c1\ndirectory.id=abc\nnode.id=3\nversion=1\n",
    )
    assert claim(disk) == ("c1", 3, "abc")
    disk.replace("/one/meta.properties", b"broker.id=3\nversion=0\ncluster.id=c1\n")
    assert claim(disk)[:2] == ("c1", 3)


@pytest.mark.parametrize("content", [b"", b"cluster.id=c1\n", b"cluster.id=c1\nnode.id=x\n"])
def test_other_files_are_refused(disk: MemoryDisk, content: bytes) -> None:
    disk.make_directory("/one")
    disk.replace("/one/meta.properties", content)
    with pytest.raises(SettingError, match="not a meta"):
        claim(disk)


class Unreadable(MemoryDisk):
    """The directories in `unreadable` cannot be listed."""

    def __init__(self) -> None:
        super().__init__()
        self.unreadable: set[str] = set()

    def list_files(self, directory: str) -> list[FileStat]:
        if directory in self.unreadable:
            raise DiskFailed(f"{directory}: Input/output error")
        return super().list_files(directory)


@pytest.mark.parametrize("seed", range(20))
def test_a_log_that_could_not_be_opened_is_recovered_after_a_clean_stop(seed: int) -> None:
    def run(*, is_unreadable: bool) -> tuple[int, int, int | None, int | None]:
        disk = Unreadable()
        dirs = log_dirs(disk, ["/one"])
        log = dirs.create(ORDERS[0], TOPIC_ID, now_ms=NOW_MS)
        dirs.create(ORDERS[1], TOPIC_ID, now_ms=NOW_MS)
        for directory, new_log_sync in list(dirs.new_log_syncs(10)):
            new_log_sync.run()
            dirs.mark_durable(directory, new_log_sync)
        for _ in range(10):
            append(log, make_batch(value=b"v" * 500))
        log.flush(NOW_MS)
        log.advance_log_start(5)
        log.cleaned_to = 4
        dirs.online[0].high_watermarks[ORDERS[0]] = 9
        write_checkpoints(disk, dirs)
        for _ in range(10):
            append(log, make_batch(value=b"v" * 500))
        disk.crash(Random(seed))
        if is_unreadable:
            disk.unreadable.add("/one/orders-0")
            dirs = log_dirs(disk, ["/one"])
            disk.unreadable.clear()
            assert set(dirs.broken) == {ORDERS[0]}
            dirs.online[0].high_watermarks = {}  # as the broker does: only of what it hosts
            write_checkpoints(disk, dirs)
            dirs.close(NOW_MS)
            assert disk.exists(f"/one/{CLEAN_SHUTDOWN_FILE}")
        dirs = log_dirs(disk, ["/one"])
        assert dirs.broken == {}
        found = dirs.get(ORDERS[0])
        assert found is not None
        stored_records(found)
        high_watermark = dirs.online[0].high_watermarks.get(ORDERS[0])
        return found.log_start_offset, found.log_end_offset, found.cleaned_to, high_watermark

    assert run(is_unreadable=True) == run(is_unreadable=False)


def test_the_leader_epochs_that_replicas_heard_of_survive_a_stop_and_a_crash(
    disk: MemoryDisk, dirs: LogDirs
) -> None:
    dirs.online[0].seen_epochs = {ORDERS[0]: 7}
    write_checkpoints(disk, dirs)
    assert kill(disk, dirs).online[0].seen_epochs == {ORDERS[0]: 7}


def test_a_new_log_inherits_neither_the_epoch_nor_the_high_watermark_of_its_name(
    disk: MemoryDisk,
) -> None:
    """The checkpoints of the deleted log are replaced seconds later, and a crash may come before that."""
    dirs = log_dirs(disk, ["/one"])
    dirs.create(ORDERS[0], TOPIC_ID, now_ms=NOW_MS)
    dirs.online[0].seen_epochs = {ORDERS[0]: 7}
    dirs.online[0].high_watermarks = {ORDERS[0]: 3}
    write_checkpoints(disk, dirs)
    dirs.set_aside(ORDERS[0], "delete")
    log = dirs.create(ORDERS[0], uuid4(), now_ms=NOW_MS)
    for _ in range(5):
        append(log, make_batch())
    for each in dirs.online:
        each.release()
    (found,) = log_dirs(disk, ["/one"]).online
    assert found.seen_epochs == {}
    assert found.high_watermarks == {ORDERS[0]: 0}


def test_a_new_log_inherits_nothing_of_checkpoints_that_are_being_written(disk: MemoryDisk) -> None:
    """They were begun before the log with its name was deleted, and are in place after the new one was created."""
    dirs = log_dirs(disk, ["/one"])
    deleted = dirs.create(ORDERS[0], TOPIC_ID, now_ms=NOW_MS)
    append(deleted, make_batch(100))
    deleted.advance_log_start(100)
    dirs.online[0].high_watermarks = {ORDERS[0]: 100}
    (checkpoints,) = dirs.checkpoints()
    dirs.set_aside(ORDERS[0], "delete")
    append(dirs.create(ORDERS[0], uuid4(), now_ms=NOW_MS), make_batch(10))
    for path, content in checkpoints.files:
        disk.replace(path, content)
    dirs.checkpointed(checkpoints)
    for each in dirs.online:
        each.release()
    again = log_dirs(disk, ["/one"])
    log = again.get(ORDERS[0])
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (0, 10)
    assert again.online[0].high_watermarks == {ORDERS[0]: 0}


@pytest.mark.parametrize("seed", range(20))
def test_deleted_records_are_not_back_after_a_power_loss(disk: MemoryDisk, seed: int) -> None:
    """The removal of their segments may be undone: only the checkpoint tells that they were deleted."""
    config = LogConfig(segment_bytes=3 * len(make_batch(2)))

    def opened() -> LogDirs:
        dirs = LogDirs(disk, ["/one"], config_for=lambda _: config, new_id=uuid4)
        dirs.open(NOW_MS)
        return dirs

    dirs = opened()
    log = dirs.create(ORDERS[0], TOPIC_ID, now_ms=NOW_MS)
    for _ in range(6):
        append(log, make_batch(2))
    log.roll(NOW_MS)
    log.flush(NOW_MS)
    disk.sync_directory(log.directory)
    log.advance_log_start(12)
    write_checkpoints(disk, dirs)
    delete_old_segments(log, high_watermark=12, now_ms=NOW_MS)
    write_checkpoints(disk, dirs)
    assert log.durable_start == 12
    disk.crash(Random(seed))
    again = opened().get(ORDERS[0])
    assert again is not None
    assert again.log_start_offset == 12
