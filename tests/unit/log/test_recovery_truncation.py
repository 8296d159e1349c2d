"""A truncation, and then the power goes before the checkpoints of the directory were written again."""

from random import Random
from uuid import UUID

import pytest

from headrace.ids import TopicPartition
from headrace.log.files.recovery_notes import RECOVERY_NOTES_FILE, RecoveryNotes
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import NOW_MS, append, make_batch, stored_batches

HERE = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=3 * len(make_batch(2)), index_interval_bytes=100)
SEEDS = range(40)


def open_dirs(disk: MemoryDisk) -> LogDirs:
    dirs = LogDirs(disk, ["/one"], config_for=lambda _: CONFIG, new_id=lambda: UUID(int=9))
    dirs.open(NOW_MS)
    return dirs


def keep_house(disk: MemoryDisk, dirs: LogDirs) -> None:
    """What the broker does every few seconds."""
    for directory, new_log_sync in list(dirs.new_log_syncs(10)):
        new_log_sync.run()
        dirs.mark_durable(directory, new_log_sync)
    for log in dirs:
        log.flush(NOW_MS)
    for checkpoints in dirs.checkpoints():
        for path, content in checkpoints.files:
            disk.replace(path, content)
        dirs.checkpointed(checkpoints)


def new_log() -> tuple[MemoryDisk, LogDirs, PartitionLog]:
    """Forty records, all of them durable, and a checkpoint that says so."""
    disk = MemoryDisk()
    dirs = open_dirs(disk)
    log = dirs.create(HERE, UUID(int=7), now_ms=NOW_MS)
    for _ in range(20):
        append(log, make_batch(2))
    keep_house(disk, dirs)
    return disk, dirs, log


def after_power_loss(disk: MemoryDisk, dirs: LogDirs, seed: int) -> PartitionLog:
    disk.crash(Random(seed))
    again = open_dirs(disk)
    assert again.broken == {}
    log = again.get(HERE)
    assert log is not None
    return log


@pytest.mark.parametrize("cut", [0, 11, 13, 25])
def test_the_log_opens_without_a_gap_and_with_what_was_durable(cut: int) -> None:
    for seed in SEEDS:
        disk, dirs, log = new_log()
        common = stored_batches(log)[: cut // 2]
        log.truncate_to(cut, now_ms=NOW_MS)
        for _ in range(Random(seed).randrange(25)):
            append(log, make_batch(2, value=b"other"), leader_epoch=1)
        written = stored_batches(log)
        again = after_power_loss(disk, dirs, seed)
        found = stored_batches(again)
        assert found == written[: len(found)]
        assert found[: len(common)] == common


@pytest.mark.parametrize("start", [0, 13, 100])
def test_a_log_that_was_emptied_opens_without_a_gap(start: int) -> None:
    for seed in SEEDS:
        disk, dirs, log = new_log()
        log.truncate_fully_and_start_at(start, now_ms=NOW_MS)
        for _ in range(Random(seed).randrange(25)):
            append(log, make_batch(2, value=b"other"), leader_epoch=1)
        written = stored_batches(log)
        again = after_power_loss(disk, dirs, seed)
        found = stored_batches(again)
        assert found == written[: len(found)]
        assert again.log_start_offset == start


def test_a_power_loss_in_the_midst_of_it_leaves_a_prefix() -> None:
    """The checkpoint of the first truncation is there, that of the second one is not."""
    for seed in SEEDS:
        disk, dirs, log = new_log()
        log.truncate_to(30, now_ms=NOW_MS)
        keep_house(disk, dirs)
        log.truncate_to(20, now_ms=NOW_MS)
        for _ in range(4):
            append(log, make_batch(2, value=b"other"), leader_epoch=1)
        log.flush(NOW_MS)
        log.truncate_to(24, now_ms=NOW_MS)
        durable = stored_batches(log)
        for _ in range(8):
            append(log, make_batch(2, value=b"third"), leader_epoch=2)
        written = stored_batches(log)
        found = stored_batches(after_power_loss(disk, dirs, seed))
        assert found == written[: len(found)]
        assert found[: len(durable)] == durable


def test_the_note_goes_with_the_next_checkpoints() -> None:
    disk, dirs, log = new_log()
    path = f"/one/{HERE}/{RECOVERY_NOTES_FILE}"
    log.truncate_to(30, now_ms=NOW_MS)
    assert log.notes == RecoveryNotes(truncated_to=30)
    (checkpoints,) = dirs.checkpoints()
    log.truncate_to(20, now_ms=NOW_MS)  # while they are written
    dirs.checkpointed(checkpoints)
    assert log.notes == RecoveryNotes(truncated_to=20)
    assert disk.exists(path)
    keep_house(disk, dirs)
    assert log.notes == RecoveryNotes()
    assert not disk.exists(path)
    append(log, make_batch(4))
    log.truncate_to(20, now_ms=NOW_MS)
    assert not disk.exists(path), "the checkpoints say no more than that"


def test_a_clean_stop_leaves_no_note() -> None:
    disk, dirs, log = new_log()
    log.truncate_to(20, now_ms=NOW_MS)
    for _ in range(3):
        append(log, make_batch(2))
    log.advance_log_start(23)
    dirs.close(NOW_MS)
    assert not disk.exists(f"/one/{HERE}/{RECOVERY_NOTES_FILE}")
    again = open_dirs(disk).get(HERE)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset) == (23, 26)


def test_what_was_compacted_is_no_more_than_what_was_not_cut() -> None:
    """Or new records below the old mark would never be compacted."""
    disk, dirs, log = new_log()
    log.cleaned_to = 36
    keep_house(disk, dirs)
    log.truncate_to(20, now_ms=NOW_MS)
    assert log.cleaned_to == 20
    for _ in range(10):
        append(log, make_batch(2))
    log.flush(NOW_MS)
    assert after_power_loss(disk, dirs, 1).cleaned_to == 20


@pytest.mark.parametrize("loses_power", [True, False])
def test_a_log_with_the_name_of_a_deleted_one_owes_it_nothing(loses_power: bool) -> None:
    for seed in SEEDS if loses_power else [0]:
        disk, dirs, log = new_log()
        log.advance_log_start(39)
        keep_house(disk, dirs)
        assert dirs.set_aside(HERE, "delete") is not None
        disk.sync_directory("/one")
        log = dirs.create(HERE, UUID(int=8), now_ms=NOW_MS)
        for directory, new_log_sync in list(dirs.new_log_syncs(10)):
            new_log_sync.run()
            dirs.mark_durable(directory, new_log_sync)
        for _ in range(25):
            append(log, make_batch(2, value=b"other"))
        written = stored_batches(log)
        if loses_power:
            again = after_power_loss(disk, dirs, seed)
        else:
            dirs.take_offline("/one", "killed")
            again = next(iter(open_dirs(disk)))
        assert again.log_start_offset == 0
        found = stored_batches(again)
        assert found == written[: len(found)]
        assert loses_power or found == written
