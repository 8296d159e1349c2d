"""New logs go where there is room, and what could not be finished leaves nothing behind."""

from uuid import UUID

import pytest

from headrace.errors import DiskFailed, DiskFull
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.log.recovery import Checkpointed, open_log
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import DIRECTORY, TOPIC_PARTITION, make_batch, open_sample

NOW_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=0x1234)
NEW = TopicPartition("new", 0)


class FullInOne(MemoryDisk):
    """Nothing can be written below /one once `is_full`."""

    is_full = False

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        if self.is_full and path.startswith("/one/"):
            raise DiskFull(f"{path}: no room")
        super().replace(path, data, durable=durable)


def open_dirs(disk: MemoryDisk, paths: list[str]) -> LogDirs:
    dirs = LogDirs(disk, paths, config_for=lambda _: LogConfig(), new_id=lambda: UUID(int=7))
    dirs.open(NOW_MS)
    return dirs


def test_a_full_directory_is_passed_over() -> None:
    disk = FullInOne()
    dirs = open_dirs(disk, ["/one", "/two"])
    disk.is_full = True
    assert dirs.create(NEW, TOPIC_ID, now_ms=NOW_MS).directory == "/two/new-0"
    assert not disk.exists("/one/new-0")


def test_without_any_room_the_failure_says_so() -> None:
    disk = FullInOne()
    dirs = open_dirs(disk, ["/one"])
    disk.is_full = True
    with pytest.raises(DiskFull):
        dirs.create(NEW, TOPIC_ID, now_ms=NOW_MS)
    assert list(dirs) == []
    disk.is_full = False
    assert dirs.create(NEW, TOPIC_ID, now_ms=NOW_MS).directory == "/one/new-0"


def test_records_can_be_deleted_on_a_full_disk() -> None:
    """What the epochs' file says too much is dropped when the log is opened again."""
    disk = MemoryDisk()
    log = open_sample(disk)
    for epoch in (1, 2, 3):
        log.append_as_leader([make_batch()], leader_epoch=epoch, now_ms=NOW_MS)
    disk.capacity_bytes = disk.used_bytes
    log.advance_log_start(2)
    assert log.log_start_offset == 2
    assert [entry.epoch for entry in log.leader_epochs.entries] == [3]
    disk.capacity_bytes = None
    checkpointed = Checkpointed(clean=False, log_start_offset=2)
    again = open_log(
        disk, DIRECTORY, TOPIC_PARTITION, LogConfig(), now_ms=NOW_MS, checkpointed=checkpointed
    )
    assert [entry.epoch for entry in again.leader_epochs.entries] == [3]
    assert (again.log_start_offset, again.log_end_offset) == (2, 3)


class Failing(MemoryDisk):
    """Nothing can be changed below the directories in `failed`."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: set[str] = set()

    def make_directory(self, directory: str) -> None:
        self._check(directory)
        super().make_directory(directory)

    def rename(self, source: str, target: str) -> None:
        self._check(source)
        super().rename(source, target)

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self._check(path)
        super().replace(path, data, durable=durable)

    def remove_tree(self, directory: str) -> None:
        self._check(directory)
        super().remove_tree(directory)

    def _check(self, path: str) -> None:
        if any(path.startswith(f"{failed}/") for failed in self.failed):
            raise DiskFailed(f"{path}: Input/output error")


@pytest.mark.parametrize("leftover", [False, True])
def test_a_directory_that_fails_goes_offline_and_the_next_takes_the_log(leftover: bool) -> None:
    disk = Failing()
    dirs = open_dirs(disk, ["/one", "/two"])
    if leftover:
        disk.make_directory("/one/new-0")
    disk.failed = {"/one"}
    assert dirs.create(NEW, TOPIC_ID, now_ms=NOW_MS).directory == "/two/new-0"
    assert list(dirs.offline) == ["/one"]
    assert [directory.path for directory in dirs.online] == ["/two"]


def test_if_every_directory_fails_all_go_offline() -> None:
    disk = Failing()
    dirs = open_dirs(disk, ["/one", "/two"])
    disk.failed = {"/one", "/two"}
    failed: list[str] = []
    with pytest.raises(DiskFailed):
        dirs.create(NEW, TOPIC_ID, now_ms=NOW_MS, on_failed=lambda path, _: failed.append(path))
    assert failed == ["/one", "/two"]
