import logging
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from headrace.errors import CorruptBatch
from headrace.log.files.checkpoint import LEADER_EPOCH_FILE
from headrace.log.files.os_disk import OsDisk
from headrace.log.files.recovery_notes import RECOVERY_NOTES_FILE
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import open_log
from headrace.log.segments.segment import offset_name
from headrace.log.steps import run_at_once
from headrace.log.time_lookup import first_at_or_after
from headrace.records.batch_view import read_header, stamp
from headrace.records.control_batch import ControlType
from headrace.testing.memory_disk import MemoryDisk
from tests.support.counting_disk import CountingDisk
from tests.support.log_samples import (
    DIRECTORY,
    NOW_MS,
    TOPIC_PARTITION,
    append,
    make_batch,
    make_marker,
    make_producer_batch,
    open_sample,
    producers_of,
    read_slice,
    stored_batches,
)

CONFIG = LogConfig(segment_bytes=3 * len(make_batch(2)), index_interval_bytes=100)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


def filled(disk: MemoryDisk, config: LogConfig = CONFIG) -> PartitionLog:
    """Segments at 0, 6, 12 and 17; producer 1 in all of them, an abort in the third."""
    log = open_sample(disk, config)
    for number in range(6):
        append(log, make_batch(2, timestamp=NOW_MS + number), leader_epoch=number)
    append(log, make_producer_batch(1, 0, 2, transactional=True), leader_epoch=9)
    append(log, make_marker(ControlType.ABORT, 1), leader_epoch=9)
    for number in range(3):
        append(log, make_producer_batch(2, 2 * number, 2), leader_epoch=9)
    return log


def state(log: PartitionLog) -> tuple[object, ...]:
    return (
        stored_batches(log),
        log.log_start_offset,
        log.log_end_offset,
        [(segment.base_offset, segment.size) for segment in log.segments],
        log.leader_epochs.entries,
        producers_of(log.producers),
        log.aborted_transactions(0, 1 << 40),
    )


def content(disk: MemoryDisk, name: str) -> bytes:
    return disk.read_bytes(f"{DIRECTORY}/{name}") or b""


def damage(disk: MemoryDisk, name: str, new: bytes) -> None:
    disk.create(f"{DIRECTORY}/{name}").append(new)


def test_a_new_directory_is_an_empty_log(disk: MemoryDisk) -> None:
    log = open_sample(disk)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (0, 0, 0)
    other = open_sample(disk, directory="/data/u-0", log_start_offset=40)
    assert (other.log_start_offset, other.log_end_offset) == (40, 40)


def test_a_clean_stop_and_start_changes_nothing(disk: MemoryDisk) -> None:
    log = filled(disk)
    before = state(log)
    log.close(NOW_MS)
    again = open_sample(disk, CONFIG, clean=True)
    assert state(again) == before
    assert again.recovery_point == again.log_end_offset


def test_a_kill_loses_nothing(disk: MemoryDisk) -> None:
    log = filled(disk)
    for recovery_point in (0, 5, 12, 17, 20, 1000):
        assert state(open_sample(disk, CONFIG, recovery_point=recovery_point)) == state(log)


def test_rebuilt_indexes_are_those_that_were_written(disk: MemoryDisk) -> None:
    filled(disk).close(NOW_MS)
    names = [stat.name for stat in disk.list_files(DIRECTORY) if "index" in stat.name]
    before = {name: content(disk, name) for name in names}
    assert any(before.values())
    for name in names:
        damage(disk, name, b"\xa5" * 24)
    open_sample(disk, CONFIG).close(NOW_MS)
    assert {name: content(disk, name) for name in names} == before


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_missing_or_torn_indexes_are_rebuilt(disk: MemoryDisk, suffix: str, clean: bool) -> None:
    log = filled(disk)
    before = state(log)
    log.close(NOW_MS)
    disk.remove(f"{DIRECTORY}/{offset_name(0)}.{suffix}")
    torn = f"{offset_name(6)}.{suffix}"
    damage(disk, torn, content(disk, torn) + b"odd")
    again = open_sample(disk, CONFIG, clean=clean, recovery_point=17)
    assert state(again) == before
    for number in range(6):
        found = run_at_once(first_at_or_after(again, NOW_MS + number))
        assert found is not None
        assert found.offset == 2 * number


def test_a_log_damaged_after_a_clean_stop_is_recovered(
    disk: MemoryDisk, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled(disk)
    before = stored_batches(log)
    log.close(NOW_MS)
    active = f"{log.segments.active.base_offset:020d}.log"
    damage(disk, active, content(disk, active)[:-5])
    with caplog.at_level(logging.WARNING):
        again = open_sample(disk, CONFIG, clean=True)
    assert stored_batches(again) == before[:-1]
    assert "stopped cleanly but is damaged" in caplog.text


def test_only_what_reaches_to_the_recovery_point_is_doubted(disk: MemoryDisk) -> None:
    log = filled(disk)
    log.flush(NOW_MS)
    end_offset = log.log_end_offset
    first = f"{offset_name(0)}.log"
    damaged = bytearray(content(disk, first))
    damaged[-1] ^= 1
    damage(disk, first, bytes(damaged))
    assert open_sample(disk, CONFIG, recovery_point=6).log_end_offset == end_offset
    assert open_sample(disk, CONFIG, recovery_point=5).log_end_offset == 4


def test_stray_files_are_no_segments(disk: MemoryDisk) -> None:
    log = filled(disk)
    before = state(log)
    for name in ("notes.txt", "1.log", f"{offset_name(3)}.index", f"{offset_name(4)}.timeindex"):
        damage(disk, name, b"?")
    assert state(open_sample(disk, CONFIG)) == before
    assert not disk.exists(f"{DIRECTORY}/{offset_name(3)}.index"), "an index without its log"
    assert disk.exists(f"{DIRECTORY}/notes.txt")


def test_deleted_segments_are_removed_at_the_next_start(disk: MemoryDisk) -> None:
    log = filled(disk)
    log.delete_segments(list(log.segments)[:1], now_ms=NOW_MS)
    assert open_sample(disk, CONFIG).log_start_offset == 6
    assert not any(stat.name.endswith(".deleted") for stat in disk.list_files(DIRECTORY))


def test_the_log_start_is_kept(disk: MemoryDisk) -> None:
    log = filled(disk)
    log.advance_log_start(9)
    again = open_sample(disk, CONFIG, log_start_offset=9)
    assert again.log_start_offset == 9
    assert again.leader_epochs.entries == log.leader_epochs.entries


def test_a_log_that_ends_before_its_start_goes_on_at_its_start(disk: MemoryDisk) -> None:
    filled(disk)
    log = open_sample(disk, CONFIG, log_start_offset=5000)
    assert (log.log_start_offset, log.log_end_offset) == (5000, 5000)
    assert append(log, make_batch()).base_offset == 5000


@pytest.mark.parametrize("damaged", [b"", b"0\n1\n", b"garbage", None])
@pytest.mark.parametrize("recovery_point", [0, 12])
def test_lost_leader_epochs_are_rebuilt_from_the_batches(
    disk: MemoryDisk, damaged: bytes | None, recovery_point: int
) -> None:
    log = filled(disk)
    if damaged is None:
        disk.remove(f"{DIRECTORY}/{LEADER_EPOCH_FILE}")
        recovery_point = 0  # a missing file means a log without epochs, up to what is read again
    else:
        damage(disk, LEADER_EPOCH_FILE, damaged)
    again = open_sample(disk, CONFIG, recovery_point=recovery_point)
    assert again.leader_epochs.entries == log.leader_epochs.entries


@pytest.mark.parametrize("segment_bytes", [CONFIG.segment_bytes, 1 << 20])
def test_epochs_that_a_leader_used_twice_do_not_cut_the_log(
    disk: MemoryDisk, segment_bytes: int
) -> None:
    """As a leader wrote them under a coordination store that was restored from a backup."""
    config = replace(CONFIG, segment_bytes=segment_bytes)
    log = open_sample(disk, config)
    for epoch in (0, 1, 2, 3, 4, 2, 2, 3):
        append(log, make_batch(2), leader_epoch=epoch)
    assert stored_batches(open_sample(disk, config)) == stored_batches(log)


@pytest.mark.parametrize("recovery_point", [0, 60])
def test_epochs_of_which_compaction_left_no_record_survive_a_crash(
    disk: MemoryDisk, recovery_point: int
) -> None:
    """A leader that forgot them would tell a follower that an older epoch ended later than it did."""
    config = replace(TWO_BATCHES, cleanup_compact=True)
    log = open_sample(disk, config)
    for epoch, offset in ((0, 0), (1, 5), (2, 40), (3, 60)):
        log.assign_epoch(epoch, offset)
    for epoch, offset in ((3, 60), (3, 61), (3, 75)):
        batch = make_batch()
        stamp(batch, 0, offset, epoch)
        log.append_as_follower(batch, now_ms=NOW_MS)
    again = open_sample(disk, config, recovery_point=recovery_point)
    assert again.leader_epochs.entries == ((0, 0), (1, 5), (2, 40), (3, 60))
    assert again.leader_epochs.end_offset_for(1, again.log_end_offset) == (1, 40)


def test_lost_epochs_and_a_torn_tail_at_once(disk: MemoryDisk) -> None:
    log = filled(disk)
    before = stored_batches(log)
    damage(disk, LEADER_EPOCH_FILE, b"?")
    active = log.segments.active.log
    active.truncate(active.size - 3)
    assert stored_batches(open_sample(disk, CONFIG)) == before[:-1]


def test_lost_epochs_and_no_sound_batch_behind_the_recovery_point(disk: MemoryDisk) -> None:
    """Without epochs a follower could not tell where its log and its leader's part."""
    log = open_sample(disk, CONFIG)
    for epoch in range(6):
        append(log, make_batch(2), leader_epoch=epoch)
    log.roll(NOW_MS)
    log.flush(NOW_MS)
    before = log.leader_epochs.entries
    append(log, make_batch(2), leader_epoch=9)
    damage(disk, LEADER_EPOCH_FILE, b"")
    active = log.segments.active.log
    active.truncate(active.size - 3)
    again = open_sample(disk, CONFIG, recovery_point=12)
    assert (again.log_end_offset, again.leader_epochs.entries) == (12, before)


def test_lost_snapshots_cost_only_time(disk: MemoryDisk) -> None:
    log = filled(disk)
    before = state(log)
    log.close(NOW_MS)
    for stat in disk.list_files(DIRECTORY):
        if stat.name.endswith(".snapshot"):
            damage(disk, stat.name, b"damaged")
    assert state(open_sample(disk, CONFIG, clean=True)) == before


def test_recovery_writes_the_snapshots_that_later_starts_need(disk: MemoryDisk) -> None:
    """Otherwise producers would be forgotten together with the segments that hold all their batches."""
    log = filled(disk)
    again = open_sample(disk, CONFIG)
    again.delete_segments(list(again.segments)[:3], now_ms=NOW_MS)
    last = open_sample(disk, CONFIG, recovery_point=again.recovery_point)
    assert producers_of(last.producers) == producers_of(log.producers)


def test_what_was_cut_does_not_come_back(disk: MemoryDisk) -> None:
    disk.make_directory(DIRECTORY)
    disk.sync_directory("/")
    disk.sync_directory("/data")
    for seed in range(10):
        log = filled(disk)
        log.flush(NOW_MS)
        middle = list(log.segments)[1].log
        middle.truncate(middle.size - 1)
        again = open_sample(disk, CONFIG)
        assert again.log_end_offset == 10
        append(again, make_batch(1), leader_epoch=20)
        disk.crash(Random(seed))
        last = open_sample(disk, CONFIG, recovery_point=10)
        assert last.log_end_offset in (10, 11)
        last.truncate_fully_and_start_at(0, now_ms=NOW_MS)
        last.close(NOW_MS)


def copied(disk: MemoryDisk, offsets: list[int], config: LogConfig) -> PartitionLog:
    """A replica of a compacted log: one batch for each offset, two in a segment."""
    log = open_sample(disk, config)
    for offset in offsets:
        batch = make_batch()
        stamp(batch, 0, offset, 0)
        log.append_as_follower(batch, now_ms=NOW_MS)
    return log


TWO_BATCHES = LogConfig(segment_bytes=2 * len(make_batch()))


def test_the_copy_of_a_compacted_log_keeps_its_gaps(disk: MemoryDisk) -> None:
    """Also when the topic is not compacted any more, and this broker never compacted it."""
    log = copied(disk, [5, 40, 60, 61, 70, 75, 90, 95], replace(TWO_BATCHES, cleanup_compact=True))
    before = stored_batches(log)
    for recovery_point in (0, 41, 80):
        again = open_sample(disk, TWO_BATCHES, recovery_point=recovery_point)
        assert (again.log_end_offset, stored_batches(again)) == (96, before)


def test_that_a_log_has_gaps_is_durable_with_its_batches(disk: MemoryDisk) -> None:
    for seed in range(20):
        directory = f"/data/{seed}"
        disk.make_directory(directory)
        disk.sync_directory("/")
        disk.sync_directory("/data")
        log = open_sample(disk, directory=directory)
        for offset in (0, 7):
            batch = make_batch()
            stamp(batch, 0, offset, 0)
            log.append_as_follower(batch, now_ms=NOW_MS)
        log.flush(NOW_MS)
        disk.crash(Random(seed))
        assert open_sample(disk, directory=directory).log_end_offset == 8


def test_a_gap_between_sound_batches_of_a_file_tells_that_the_log_has_gaps(
    disk: MemoryDisk,
) -> None:
    """For logs that were copied before gaps were noted."""
    copied(disk, [5, 40, 60, 61, 70, 75], TWO_BATCHES)
    disk.remove(f"{DIRECTORY}/{RECOVERY_NOTES_FILE}")
    again = open_sample(disk, TWO_BATCHES)
    assert again.log_end_offset == 76
    assert again.notes.has_gaps


def test_a_segment_that_lost_its_end_is_damage_in_a_log_without_gaps(disk: MemoryDisk) -> None:
    log = copied(disk, [0, 1, 2, 3, 4, 5], TWO_BATCHES)
    middle = list(log.segments)[1].log
    middle.truncate(middle.size // 2)
    assert open_sample(disk, TWO_BATCHES).log_end_offset == 3


def test_a_gap_that_the_next_batch_confirms_is_none(disk: MemoryDisk) -> None:
    """A topic may have been compacted once. A batch that was moved up would overlap with its successor."""
    log = open_sample(disk)
    for offset in (0, 40, 41):
        batch = make_batch()
        stamp(batch, 0, offset, 0)
        log.append_as_follower(batch, now_ms=NOW_MS)
    assert open_sample(disk).log_end_offset == 42


def test_a_broken_trusted_segment_is_reported(disk: MemoryDisk) -> None:
    filled(disk)
    damage(disk, f"{offset_name(0)}.log", b"not a batch")
    for suffix in ("index", "timeindex"):
        disk.remove(f"{DIRECTORY}/{offset_name(0)}.{suffix}")
    with pytest.raises(CorruptBatch):
        open_sample(disk, CONFIG, recovery_point=17)


# ---- what is read, and how often


def test_a_clean_start_does_not_read_the_segments(tmp_path: Path) -> None:
    directory = f"{tmp_path}/t-0"
    log = open_sample(OsDisk(), CONFIG, directory=directory)
    for _ in range(200):
        append(log, make_producer_batch(1, log.log_end_offset, 2))
    segments, written = len(log.segments), log.size
    log.close(NOW_MS)
    counting = CountingDisk(OsDisk())
    again = open_sample(counting, CONFIG, directory=directory, clean=True)
    assert len(again.segments) == segments >= 60
    assert again.log_end_offset == 400
    active = again.segments.active
    assert counting.bytes_read(".log") <= 3 * active.size < written / 30
    read = {path for path, _, _ in counting.reads}
    assert {path for path in read if path.endswith((".log", "index"))} <= {
        file.path for file in active.files()
    }


def test_recovery_reads_each_byte_once(disk: MemoryDisk) -> None:
    big = LogConfig(segment_bytes=60_000_000, max_message_bytes=20_000_000)
    log = open_sample(disk, big)
    chance = Random(1)
    for _ in range(
        20
    ):  # batches that straddle the chunks in which recovery reads, some larger than one
        append(log, make_batch(value=bytes(chance.choice((100, 3_000_000, 9_000_000)))))
    assert len(log.segments) > 1
    counting = CountingDisk(disk)
    again = open_sample(counting, big)
    assert again.log_end_offset == 20
    assert counting.bytes_read(".log") == log.size
    for segment in log.segments:
        reads = sorted(
            (at, length) for path, at, length in counting.reads if path == segment.log.path
        )
        position = 0
        for at, length in reads:
            assert at == position
            position += length
        assert position == segment.size


def test_a_read_is_a_slice_of_the_file_and_not_a_copy(tmp_path: Path) -> None:
    directory = f"{tmp_path}/t-0"
    log = open_sample(OsDisk(), directory=directory)
    for _ in range(40):
        append(log, make_batch(value=bytes(100_000)))
    counting = CountingDisk(OsDisk())
    again = open_log(
        counting, directory, TOPIC_PARTITION, LogConfig(), now_ms=NOW_MS, checkpointed=None
    )
    counting.reads.clear()
    found = read_slice(again, 3, 3_000_000)
    assert counting.bytes_read(".log") < 70_000, "finding the place reads a window of headers"
    first, second = found.view(), found.view()
    assert isinstance(first, memoryview)
    assert isinstance(second, memoryview)
    assert first.nbytes == found.length > 2_900_000
    assert first.readonly
    assert first.obj is second.obj, "two views of one mapping"
    position = found.position + found.length
    assert read_header(found.file.read(position, 61)).base_offset == 32


def test_views_are_not_allocated(tmp_path: Path) -> None:
    import tracemalloc

    log = open_sample(OsDisk(), directory=f"{tmp_path}/t-0")
    for _ in range(40):
        append(log, make_batch(value=bytes(100_000)))
    tracemalloc.start()
    try:
        views = [read_slice(log, offset, 3_000_000).view() for offset in range(40)]
        assert sum(map(len, views)) > 50_000_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
