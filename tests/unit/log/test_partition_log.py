import shutil
import subprocess
import sys
import textwrap
from random import Random

import pytest

from headrace.errors import CorruptBatch, DiskFailed, DiskFull, LogClosed
from headrace.log.append_result import Appended
from headrace.log.files.file_slice import FileSlice
from headrace.log.files.os_disk import OsDisk
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.segments.txn_index import AbortedTxn
from headrace.records.batch_builder import BatchOptions
from headrace.records.batch_reader import read_batch
from headrace.records.batch_view import headers_in, read_header, stamp
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal
from tests.support.log_samples import (
    DIRECTORY,
    NOW_MS,
    append,
    make_batch,
    make_marker,
    make_producer_batch,
    open_sample,
    producers_of,
    read_slice,
    stored_batches,
    stored_records,
    try_append,
)
from tests.support.tools import require_all

THREE_BATCHES = LogConfig(segment_bytes=3 * len(make_batch(2)), file_delete_delay_ms=100)


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/data")
    disk.sync_directory("/")
    return disk


@pytest.fixture
def log(disk: MemoryDisk) -> PartitionLog:
    return open_sample(disk, THREE_BATCHES)


def fill(log: PartitionLog, batches: int = 8) -> None:
    """Batches of two records: segments start at 0, 6, 12 ..."""
    for _ in range(batches):
        append(log, make_batch(2))


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def names(disk: MemoryDisk) -> set[str]:
    return {stat.name.lstrip("0") for stat in disk.list_files(DIRECTORY)}


# ---- appending


def test_a_leader_stamps_offset_and_epoch_into_the_given_bytes(log: PartitionLog) -> None:
    fill(log, 1)
    batch = make_batch(3)
    assert append(log, batch, leader_epoch=4) == Appended(2, 4)
    header = read_header(batch)
    assert (header.base_offset, header.leader_epoch) == (2, 4)
    assert stored_batches(log)[1] == batch
    assert log.leader_epochs.entries == ((0, 0), (4, 2))


def test_a_refused_batch_changes_nothing(log: PartitionLog) -> None:
    fill(log, 1)
    before = (log.log_end_offset, log.size, stored_batches(log))
    damaged = make_batch()
    damaged[-1] ^= 1
    for batch in (damaged, make_batch()[:-1], make_batch(value=bytes(1000))):
        assert isinstance(log.append_as_leader([batch], leader_epoch=9, now_ms=NOW_MS), Refusal)
    client_marker = make_marker(ControlType.COMMIT, 1)
    refused = log.append_as_leader([client_marker], leader_epoch=9, now_ms=NOW_MS)
    assert isinstance(refused, Refusal)
    assert (log.log_end_offset, log.size, stored_batches(log)) == before
    assert log.leader_epochs.latest == 0


def test_append_time_is_the_brokers(disk: MemoryDisk) -> None:
    log = open_sample(disk, LogConfig(log_append_time=True))
    appended = append(log, make_batch(2, timestamp=5), now_ms=777)
    assert appended.log_append_time_ms == 777
    assert [record.timestamp for record in stored_records(log)] == [777, 777]


def test_a_batch_that_found_no_room_is_as_it_came(disk: MemoryDisk) -> None:
    """It is looked at again to say what is wrong with it, and must not seem to claim the broker's time."""
    log = open_sample(disk, LogConfig(log_append_time=True))
    append(log, make_batch())
    disk.capacity_bytes = disk.used_bytes
    batch = make_batch(2)
    given = bytes(batch)
    with pytest.raises(DiskFull):
        try_append(log, batch, leader_epoch=3)
    with pytest.raises(DiskFull):
        try_append(log, batch)
    assert batch == given


def test_a_topic_may_want_another_codec(disk: MemoryDisk) -> None:
    log = open_sample(disk, LogConfig(compression_type="lz4"))
    batch = make_batch(3, options=BatchOptions(codec=Codec.GZIP))
    expected = read_batch(batch)
    assert append(log, batch) == Appended(0, 2)
    assert read_header(stored_batches(log)[0]).codec == Codec.LZ4
    assert stored_records(log) == expected


def test_a_follower_writes_what_the_leader_wrote(disk: MemoryDisk, log: PartitionLog) -> None:
    fill(log)
    copy = open_sample(disk, THREE_BATCHES, directory="/data/copy-0")
    content = b"".join(stored_batches(log))
    assert copy.append_as_follower(content, now_ms=NOW_MS) == log.log_end_offset
    assert stored_batches(copy) == stored_batches(log)
    assert bases(copy) == bases(log)
    assert copy.leader_epochs.entries == log.leader_epochs.entries


def test_a_follower_refuses_damage_and_keeps_what_came_before_it(log: PartitionLog) -> None:
    first, second = make_batch(2), make_batch(2)
    stamp(second, 0, 2, 0)
    for position in (16, 30, len(second) - 1):  # magic, a header field, a record
        damaged = bytearray(second)
        damaged[position] ^= 0x04
        with pytest.raises(CorruptBatch):
            log.append_as_follower(first + damaged, now_ms=NOW_MS)
        assert log.log_end_offset == 2
        log.truncate_to(0, now_ms=NOW_MS)
    log.append_as_follower(first, now_ms=NOW_MS)
    with pytest.raises(CorruptBatch, match="behind"):
        log.append_as_follower(first, now_ms=NOW_MS)
    assert log.append_as_follower(second, now_ms=NOW_MS) == 4


def test_a_follower_of_a_compacted_log_accepts_gaps(log: PartitionLog) -> None:
    for offset in (5, 40, 10**12):
        batch = make_batch()
        stamp(batch, 0, offset, 0)
        log.append_as_follower(batch, now_ms=NOW_MS)
    assert log.log_end_offset == 10**12 + 1
    assert bases(log) == [0, 10**12], "a relative offset must fit 32 bits"
    assert [record.offset for record in stored_records(log)] == [5, 40, 10**12]
    found = read_slice(log, 41).copy()
    assert read_header(found).base_offset == 10**12, "a gap at a segment's end is skipped"


def test_a_repeated_batch_is_answered_and_not_written(log: PartitionLog) -> None:
    first = append(log, make_producer_batch(1, 0, 2))
    append(log, make_producer_batch(1, 2, 2))
    again = append(log, make_producer_batch(1, 0, 2))
    assert again.duplicate
    assert again[:2] == first[:2]
    assert log.log_end_offset == 4
    refused = try_append(log, make_producer_batch(1, 9))
    assert isinstance(refused, Refusal)
    assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# ---- transactions


def test_transactions_bound_what_is_stable_and_aborted_ones_are_listed(log: PartitionLog) -> None:
    append(log, make_producer_batch(1, 0, 2, transactional=True))  # 0
    append(log, make_producer_batch(2, 0, 2, transactional=True))  # 2
    assert log.producers.first_unstable_offset == 0
    append(log, make_marker(ControlType.ABORT, 2))  # 4
    append(log, make_producer_batch(2, 2, 2, transactional=True))  # 5
    append(log, make_marker(ControlType.COMMIT, 1))  # 7
    append(log, make_marker(ControlType.ABORT, 2))  # 8
    first, second = AbortedTxn(2, 2, 4, 0), AbortedTxn(2, 5, 8, 9)
    assert log.aborted_transactions(0, 9) == [first, second]
    assert log.aborted_transactions(0, 5) == [first]
    assert log.aborted_transactions(5, 9) == [second]
    assert log.aborted_transactions(4, 6) == [first, second]
    log.producers.on_high_watermark(9)
    assert log.producers.first_unstable_offset is None


def test_a_reader_is_told_of_the_aborted_transactions_in_what_it_is_given(
    log: PartitionLog,
) -> None:
    for number in range(5):  # offsets 2 * number and its marker behind it
        append(log, make_producer_batch(1, number, transactional=True))
        append(log, make_marker(ControlType.ABORT, 1))

    for max_bytes in (1, 200, 1 << 20):
        for offset in range(11):
            found = log.read(offset, max_bytes, 10)
            assert isinstance(found, FileSlice)
            end = max((header.last_offset + 1 for _, header in headers_in(found.copy())), default=0)
            expected = [first for first in range(0, 10, 2) if first < end and first + 1 >= offset]
            told = [txn.first_offset for txn in log.aborted_in(found, offset, 10)]
            assert told == expected, (offset, max_bytes)


def test_a_transaction_over_several_reads_is_told_with_each(log: PartitionLog) -> None:
    append(log, make_producer_batch(1, 0, transactional=True))
    append(log, make_producer_batch(2, 0, transactional=True))
    append(log, make_marker(ControlType.ABORT, 2))
    log.roll(0)
    append(log, make_producer_batch(1, 1, transactional=True))
    log.roll(0)
    append(log, make_marker(ControlType.ABORT, 1))
    told = {}
    for offset in range(5):
        found = log.read(offset, 1, 5)
        assert isinstance(found, FileSlice)
        told[offset] = [txn.producer_id for txn in log.aborted_in(found, offset, 5)]
    assert told == {0: [1], 1: [2, 1], 2: [2, 1], 3: [1], 4: [1]}


def test_an_old_coordinator_is_fenced(log: PartitionLog) -> None:
    append(log, make_producer_batch(1, 0, transactional=True))
    append(log, make_marker(ControlType.COMMIT, 1, coordinator_epoch=5))
    refused = try_append(log, make_marker(ControlType.ABORT, 1, coordinator_epoch=4))
    assert isinstance(refused, Refusal)
    assert refused.error_code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


# ---- rolling and reading


def test_segments_roll_by_size(log: PartitionLog) -> None:
    fill(log)
    assert bases(log) == [0, 6, 12]
    assert log.snapshots.offsets == {6, 12}
    assert log.size == sum(len(batch) for batch in stored_batches(log))


def test_segments_roll_by_time(disk: MemoryDisk) -> None:
    log = open_sample(disk, LogConfig(segment_ms=100))
    for timestamp in (0, 100, 101, 201, 202):
        append(log, make_batch(timestamp=NOW_MS + timestamp))
    assert bases(log) == [0, 2, 4]


@pytest.mark.parametrize("jitter_ms", [50, 100, 10**6])
def test_segments_roll_up_to_the_jitter_earlier(disk: MemoryDisk, jitter_ms: int) -> None:
    """Each at a time of its own, and never after every batch."""
    ages: set[int] = set()
    for number in range(300):
        config = LogConfig(segment_ms=100, segment_jitter_ms=jitter_ms)
        log = open_sample(disk, config, directory=f"/data/t-{number}")
        for age in range(120):
            append(log, make_batch(timestamp=NOW_MS + age))
            if len(log.segments) > 1:
                ages.add(age)
                break
    earliest = max(100 - jitter_ms, 0) + 1
    assert earliest < min(ages) + 10
    assert earliest <= min(ages)
    assert 92 < max(ages) <= 101
    assert len(ages) > 30


def test_the_jitter_is_no_more_than_what_makes_segments_roll(disk: MemoryDisk) -> None:
    config = LogConfig(
        cleanup_compact=True, max_compaction_lag_ms=100, segment_ms=10**6, segment_jitter_ms=10**5
    )
    for number in range(50):
        log = open_sample(disk, config, directory=f"/data/t-{number}")
        for _ in range(3):
            append(log, make_batch(timestamp=NOW_MS))
        assert len(log.segments) == 1


def test_segments_roll_when_an_index_is_full(disk: MemoryDisk) -> None:
    log = open_sample(disk, LogConfig(index_interval_bytes=1, segment_index_bytes=32))
    for timestamp in range(12):
        append(log, make_batch(timestamp=NOW_MS + timestamp))
    assert len(log.segments) > 3
    assert [record.offset for record in stored_records(log)] == list(range(12))


def test_an_empty_segment_is_not_rolled(log: PartitionLog) -> None:
    assert log.roll(NOW_MS) is log.segments.active
    fill(log, 1)
    rolled = log.roll(NOW_MS)
    assert log.roll(NOW_MS) is rolled
    assert bases(log) == [0, 2]


def test_reading_stays_in_one_segment_and_within_bounds(log: PartitionLog) -> None:
    fill(log)
    size = len(make_batch(2))
    for offset in range(16):
        left = 3 - offset % 6 // 2
        assert read_slice(log, offset).length == min(left, 8 - offset // 2) * size
        assert read_slice(log, offset, 2 * size + 5).length == min(2, left, 8 - offset // 2) * size
        assert read_slice(log, offset, 0).length == size
        assert read_slice(log, offset, 1 << 20, offset).length == 0
    assert read_slice(log, 0, 1 << 20, 4).length == 2 * size
    assert read_slice(log, 0, 1 << 20, 3).length == size, "never a batch that reaches past the end"
    assert read_slice(log, 16).length == 0
    hard = log.read(0, size - 1, 16, at_least_one=False)
    assert not isinstance(hard, Refusal)
    assert hard.length == 0


@pytest.mark.parametrize("offset", [-1, 3, 17])
def test_reading_outside_is_refused(log: PartitionLog, offset: int) -> None:
    fill(log)
    log.advance_log_start(4)
    refused = log.read(offset, 100, 16)
    assert isinstance(refused, Refusal)
    assert refused.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert str(offset) in refused.text


# ---- cutting


@pytest.mark.parametrize("offset", range(17))
def test_truncation_removes_the_batch_that_holds_the_offset_and_all_behind(
    disk: MemoryDisk, log: PartitionLog, offset: int
) -> None:
    fill(log)
    before = stored_batches(log)
    log.truncate_to(offset, now_ms=NOW_MS)
    assert stored_batches(log) == before[: offset // 2]
    assert log.log_end_offset == offset // 2 * 2
    assert all(base <= offset for base in bases(log))
    fill(log, 2)
    again = open_sample(disk, THREE_BATCHES)
    assert stored_batches(again) == stored_batches(log)
    assert again.log_end_offset == log.log_end_offset


def test_truncation_takes_producers_back(log: PartitionLog) -> None:
    states = []
    for number in range(8):
        states.append(producers_of(log.producers))
        append(log, make_producer_batch(number % 2, number // 2 * 2, 2, transactional=True))
    append(log, make_marker(ControlType.ABORT, 0))
    assert len(log.aborted_transactions(0, 17)) == 1
    for number in reversed(range(8)):
        log.truncate_to(2 * number, now_ms=NOW_MS)
        assert producers_of(log.producers) == states[number]
        assert log.aborted_transactions(0, 17) == []


def test_truncation_prunes_epochs_even_if_no_byte_goes(log: PartitionLog) -> None:
    """KAFKA-10706: an epoch that starts at the log's end was never replicated and must not be answered with."""
    fill(log, 2)
    log.assign_epoch(5, 4)
    assert log.leader_epochs.latest == 5
    log.truncate_to(4, now_ms=NOW_MS)
    assert log.leader_epochs.entries == ((0, 0),)
    assert open_sample(log.disk, THREE_BATCHES).leader_epochs.entries == ((0, 0),)


def test_truncation_lowers_start_and_recovery_point(log: PartitionLog) -> None:
    fill(log)
    log.flush(NOW_MS)
    log.advance_log_start(9)
    log.truncate_to(7, now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (6, 6, 6)


def test_truncation_before_the_first_segment_starts_anew(
    disk: MemoryDisk, log: PartitionLog
) -> None:
    log.truncate_fully_and_start_at(100, now_ms=NOW_MS)
    fill(log)
    log.truncate_to(50, now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (50, 50, [50])
    assert not any(name.endswith(".snapshot") for name in names(disk))


def test_truncating_fully_forgets_everything(disk: MemoryDisk, log: PartitionLog) -> None:
    append(log, make_producer_batch(1, 0))
    fill(log)
    log.truncate_fully_and_start_at(500, now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (500, 500, 500)
    assert (len(log.producers), log.leader_epochs.entries, log.size) == (0, (), 0)
    assert names(disk) == {"500.log", "500.index", "500.timeindex", "leader-epoch-checkpoint"}
    assert append(log, make_batch()).base_offset == 500
    assert open_sample(disk, THREE_BATCHES).log_start_offset == 500


def test_deleting_records_hides_them_and_moves_the_epochs(log: PartitionLog) -> None:
    fill(log)
    log.advance_log_start(7)
    log.advance_log_start(3)
    assert log.log_start_offset == 7
    assert log.leader_epochs.entries == ((0, 7),)
    assert [record.offset for record in stored_records(log)] == list(range(7, 16))
    with pytest.raises(AssertionError):
        log.advance_log_start(17)


def test_deleted_segments_stay_readable_for_a_while(disk: MemoryDisk, log: PartitionLog) -> None:
    fill(log)
    held = read_slice(log, 0)
    before = held.copy()
    log.delete_segments(list(log.segments)[:2], now_ms=NOW_MS)
    assert (log.log_start_offset, bases(log)) == (12, [12])
    assert held.copy() == before
    assert {"6.log.deleted", "6.index.deleted", "6.timeindex.deleted"} <= names(disk)
    assert "6.snapshot" not in names(disk)
    assert log.removable(NOW_MS + 99) == []
    paths = log.removable(NOW_MS + 100)
    assert len(paths) == 6
    assert all(disk.exists(path) for path in paths)
    assert log.removable(NOW_MS + 100) == []


def test_deleting_the_active_segment_rolls_first(log: PartitionLog) -> None:
    append(log, make_producer_batch(1, 0))
    log.delete_segments(list(log.segments), now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (1, 1, [1])
    assert append(log, make_producer_batch(1, 0)).duplicate, "its producers are still known"


# ---- durability


def test_flush_messages(disk: MemoryDisk) -> None:
    log = open_sample(disk, LogConfig(flush_messages=4))
    append(log, make_batch(3))
    assert log.recovery_point == 0
    append(log, make_batch(1))
    assert log.recovery_point == 4
    syncs = disk.syncs
    log.flush(NOW_MS)
    assert disk.syncs == syncs, "nothing to do"


def test_a_flush_covers_every_segment_since_the_last(disk: MemoryDisk, log: PartitionLog) -> None:
    fill(log, 4)
    log.flush(NOW_MS)
    fill(log, 4)
    log.flush(NOW_MS + 5)
    assert (log.recovery_point, log.last_flush_ms) == (16, NOW_MS + 5)
    before = stored_batches(log)
    disk.crash(Random(3))
    assert stored_batches(open_sample(disk, THREE_BATCHES)) == before


def test_the_first_flush_makes_the_directory_itself_durable() -> None:
    for seed in range(10):
        disk = MemoryDisk()
        disk.make_directory("/data")
        disk.sync_directory("/")
        log = open_sample(disk)
        append(log, make_batch())
        log.flush(NOW_MS)
        disk.crash(Random(seed))
        assert open_sample(disk).log_end_offset == 1


def test_a_plan_holds_a_bounded_number_of_descriptors(log: PartitionLog) -> None:
    for _ in range(200):
        append(log, make_batch())
        log.roll(NOW_MS)
    plan = log.unflushed()
    assert len(plan.syncs) < 300
    plan.run()
    log.mark_flushed(plan, NOW_MS)
    assert log.recovery_point == 64
    assert log.has_unflushed_segments
    log.flush(NOW_MS)
    assert log.recovery_point == 200


def test_sealed_segments_can_be_flushed_alone(disk: MemoryDisk, log: PartitionLog) -> None:
    fill(log, 4)
    assert log.has_unflushed_segments
    plan = log.unflushed(sealed_only=True)
    plan.run()
    log.mark_flushed(plan, NOW_MS)
    assert log.recovery_point == 6
    assert not log.has_unflushed_segments


def test_a_plan_that_ran_across_a_truncation_proves_nothing(log: PartitionLog) -> None:
    fill(log, 2)
    plan = log.unflushed()
    log.truncate_to(2, now_ms=NOW_MS)
    fill(log, 2)
    plan.run()
    log.mark_flushed(plan, NOW_MS)
    assert log.recovery_point == 0


def test_a_segment_sealed_while_its_flush_ran_stays_in_doubt(log: PartitionLog) -> None:
    """Its batches are durable, its indexes are not."""
    fill(log, 2)
    plan = log.unflushed()
    log.roll(NOW_MS)
    plan.run()
    log.mark_flushed(plan, NOW_MS)
    assert log.recovery_point == 3
    fill(log, 1)
    log.flush(NOW_MS)
    assert log.recovery_point == 6


@pytest.mark.parametrize("is_first_segment", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_a_flush_beside_a_plan_that_still_runs_makes_the_directory_durable(
    disk: MemoryDisk, is_first_segment: bool, seed: int
) -> None:
    """The plan runs in a worker thread. Until it is done, nothing tells that the name of a new segment is durable."""
    log = open_sample(disk, LogConfig(flush_messages=3))
    if not is_first_segment:
        append(log, make_batch(3))
        log.roll(NOW_MS)
    append(log, make_batch(1))
    log.unflushed()
    append(log, make_batch(2))
    end_offset = log.log_end_offset
    assert log.recovery_point == end_offset
    disk.crash(Random(seed))
    assert open_sample(disk, recovery_point=end_offset).log_end_offset == end_offset


def test_a_directory_that_changed_behind_a_plan_is_synced_with_the_next(
    disk: MemoryDisk, log: PartitionLog
) -> None:
    append(log, make_batch(1))
    plan = log.unflushed()
    log.roll(NOW_MS)
    append(log, make_batch(1))
    plan.run()
    log.mark_flushed(plan, NOW_MS)
    assert list(log.unflushed().directories) == [DIRECTORY]
    log.flush(NOW_MS)
    assert not log.unflushed().directories


def test_a_failed_sync_is_not_tried_again(disk: MemoryDisk, log: PartitionLog) -> None:
    fill(log, 2)
    plan = log.unflushed()
    disk.fail_syncs = True
    syncs = disk.syncs
    with pytest.raises(DiskFailed):
        plan.run()
    assert disk.syncs == syncs + 1, "the first failure ends it"
    assert log.recovery_point == 0
    with pytest.raises(DiskFailed):
        log.flush(NOW_MS)
    assert log.recovery_point == 0


DAY_MS = 86_400_000


@pytest.mark.parametrize("timestamp", [-1, NOW_MS - 400 * DAY_MS])
@pytest.mark.parametrize("is_truncated", [False, True])
def test_a_producer_of_old_records_is_known_for_as_long_as_one_of_new_ones(
    disk: MemoryDisk, timestamp: int, is_truncated: bool
) -> None:
    """It copies another topic, say. A retry behind a check must not be appended again."""
    log = open_sample(disk)
    batch = make_producer_batch(7, 0, 2, timestamp=timestamp)
    append(log, bytearray(batch))
    if is_truncated:
        append(log, make_batch(1))
        log.truncate_to(2, now_ms=NOW_MS)
    log.producers.expire(NOW_MS + DAY_MS - 1, DAY_MS)
    again = try_append(log, bytearray(batch))
    assert isinstance(again, Appended)
    assert again.duplicate
    assert log.log_end_offset == 2
    log.producers.expire(NOW_MS + DAY_MS, DAY_MS)
    assert not len(log.producers)


def test_a_follower_knows_a_producer_of_old_records_as_long(disk: MemoryDisk) -> None:
    log = open_sample(disk)
    batch = make_producer_batch(7, 0, 2, timestamp=NOW_MS - 400 * DAY_MS)
    stamp(batch, 0, 0, 0)
    log.append_as_follower(batch, now_ms=NOW_MS)
    assert log.producers.expire(NOW_MS + DAY_MS - 1, DAY_MS) == 0
    assert log.producers.expire(NOW_MS + DAY_MS, DAY_MS) == 1


def test_a_closed_log_is_closed(log: PartitionLog) -> None:
    fill(log, 1)
    log.close(NOW_MS)
    for use in (
        lambda: log.append_as_leader([make_batch()], leader_epoch=0, now_ms=NOW_MS),
        lambda: log.append_as_follower(make_batch(), now_ms=NOW_MS),
        lambda: log.read(0, 1, 1),
        lambda: log.truncate_to(0, now_ms=NOW_MS),
        lambda: log.truncate_fully_and_start_at(0, now_ms=NOW_MS),
        lambda: log.close(NOW_MS),
    ):
        with pytest.raises(LogClosed, match="t-0"):
            use()


def test_a_changed_configuration_reaches_the_segments(log: PartitionLog) -> None:
    fill(log, 1)
    log.update_config(LogConfig(segment_bytes=len(make_batch(2))))
    fill(log, 2)
    assert bases(log) == [0, 2, 4]


# ---- a full disk


def test_a_full_disk_refuses_and_nothing_is_torn(disk: MemoryDisk, log: PartitionLog) -> None:
    append(log, make_producer_batch(1, 0, 2))
    fill(log, 4)
    before = stored_batches(log)
    for space in range(0, 200, 20):
        disk.capacity_bytes = disk.used_bytes + min(space, len(make_batch(2)) - 1)
        for epoch in (0, 3):
            with pytest.raises(DiskFull):
                append(log, make_batch(2), leader_epoch=epoch)
        with pytest.raises(DiskFull):
            append(log, make_producer_batch(1, 2, 2))
        assert stored_batches(log) == before, "reads go on"
    disk.capacity_bytes = None
    assert append(log, make_producer_batch(1, 2, 2)).base_offset == 10, "and so do writes"
    again = open_sample(disk, THREE_BATCHES)
    assert stored_batches(again) == stored_batches(log)


def test_an_epoch_that_could_not_be_written_is_not_assigned(
    disk: MemoryDisk, log: PartitionLog
) -> None:
    fill(log, 1)
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(DiskFull):
        log.assign_epoch(3, 2)
    assert log.leader_epochs.latest == 0
    disk.capacity_bytes = None
    append(log, make_batch(), leader_epoch=3)
    assert open_sample(disk, THREE_BATCHES).leader_epochs.entries == ((0, 0), (3, 2))


def test_an_abort_is_listed_even_if_only_its_marker_fits(
    disk: MemoryDisk, log: PartitionLog
) -> None:
    append(log, make_producer_batch(1, 0, transactional=True))
    marker = make_marker(ControlType.ABORT, 1)
    disk.capacity_bytes = disk.used_bytes + len(marker)
    append(log, marker)
    assert log.aborted_transactions(0, 2) == [AbortedTxn(1, 0, 1, 2)]
    disk.capacity_bytes = None
    log.close(NOW_MS)
    again = open_sample(disk, THREE_BATCHES, clean=True)
    assert again.aborted_transactions(0, 2) == [AbortedTxn(1, 0, 1, 2)]


FILL_A_SMALL_DISK = """
    import sys
    from headrace.errors import DiskFull
    from headrace.log.files.os_disk import OsDisk
    from tests.support.log_samples import append, make_batch, open_sample, stored_records

    directory = sys.argv[1] + "/t-0"
    log = open_sample(OsDisk(), directory=directory)
    written = 0
    try:
        while True:
            append(log, make_batch(value=bytes(50_000)))
            written += 1
    except DiskFull:
        pass
    for _ in range(3):
        try:
            append(log, make_batch(value=bytes(50_000)))
            sys.exit("a full disk took a batch")
        except DiskFull:
            assert len(stored_records(log)) == written, "reads go on"
    again = open_sample(OsDisk(), directory=directory)
    assert again.log_end_offset == written, (again.log_end_offset, written)
    assert again.segments.active.size == written * len(make_batch(value=bytes(50_000)))
    print("written", written)
"""


def test_a_real_full_disk(tmp_path: object) -> None:
    """A file system of one megabyte, in a mount namespace of its own."""
    unshare = shutil.which("unshare")
    script = 'mount -t tmpfs -o size=1m none "$0" && exec "$1" -c "$2" "$0"'
    command = [str(tmp_path), sys.executable, textwrap.dedent(FILL_A_SMALL_DISK)]
    if unshare is None:
        done = None
    else:
        done = subprocess.run(
            [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", script, *command],
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        )
    if done is None or (done.returncode == 1 and "Operation not permitted" in done.stderr):
        assert not require_all(), "unshare and user namespaces are needed"
        pytest.skip("no user namespaces here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("written 2"), done.stdout


def test_the_real_disk_and_the_one_in_memory_hold_the_same(
    disk: MemoryDisk, log: PartitionLog, tmp_path: object
) -> None:
    real = open_sample(OsDisk(), THREE_BATCHES, directory=f"{tmp_path}/t-0")
    for target in (log, real):
        fill(target)
        append(target, make_producer_batch(1, 0, transactional=True))
        append(target, make_marker(ControlType.ABORT, 1))
        target.close(NOW_MS)
    stats = OsDisk().list_files(f"{tmp_path}/t-0")
    assert {stat.name for stat in stats} == {stat.name for stat in disk.list_files(DIRECTORY)}
    for stat in stats:
        expected = disk.read_bytes(f"{DIRECTORY}/{stat.name}")
        assert OsDisk().read_bytes(f"{tmp_path}/t-0/{stat.name}") == expected


def test_records_are_deleted_on_a_full_disk(disk: MemoryDisk, log: PartitionLog) -> None:
    for epoch in range(4):
        append(log, make_batch(2), leader_epoch=epoch)
    disk.capacity_bytes = disk.used_bytes
    log.advance_log_start(5)
    assert log.log_start_offset == 5
    assert log.leader_epochs.entries == ((2, 5), (3, 6))
    again = open_sample(disk, THREE_BATCHES, log_start_offset=5)
    assert again.leader_epochs.entries == log.leader_epochs.entries
