import pytest

from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.steps import run_at_once
from headrace.log.time_lookup import FoundTimestamp, first_at_or_after, with_max_timestamp
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record
from headrace.records.compression import Codec
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import NOW_MS, append, make_batch, open_sample

# Three batches of three records: times wander, the largest is not the last.
TIMES = [[100, 120, 110], [130, 200, 140], [150, 160, 190]]


@pytest.fixture(params=[1, 2, 3])
def log(request: pytest.FixtureRequest) -> PartitionLog:
    """The same records in one, two or three segments."""
    log = open_sample(MemoryDisk(), LogConfig(index_interval_bytes=1))
    for number, times in enumerate(TIMES):
        if number and number < request.param:
            log.roll(NOW_MS)
        records = [Record(n, NOW_MS + time, None, b"v") for n, time in enumerate(times)]
        append(log, build_batch(records, BatchOptions(codec=Codec.ZSTD)), leader_epoch=number)
    return log


def lookup(log: PartitionLog, time: int) -> tuple[int, int, int] | None:
    found = run_at_once(first_at_or_after(log, NOW_MS + time))
    return None if found is None else (found.timestamp - NOW_MS, found.offset, found.leader_epoch)


@pytest.mark.parametrize(
    ("time", "found"),
    [
        (0, (100, 0, 0)),  # before everything
        (100, (100, 0, 0)),  # exact
        (101, (120, 1, 0)),  # between
        (120, (120, 1, 0)),
        (121, (130, 3, 1)),
        (141, (200, 4, 1)),
        (200, (200, 4, 1)),
        (201, None),  # after everything
    ],
)
def test_the_first_record_at_or_after_a_time(
    log: PartitionLog, time: int, found: tuple[int, int, int] | None
) -> None:
    assert lookup(log, time) == found


def test_deleted_records_are_not_found(log: PartitionLog) -> None:
    log.advance_log_start(5)
    assert lookup(log, 0) == (140, 5, 1)
    assert lookup(log, 141) == (150, 6, 2)
    assert lookup(log, 191) is None
    assert run_at_once(with_max_timestamp(log)) == FoundTimestamp(NOW_MS + 190, 8, 2)


@pytest.mark.parametrize("start", range(9))
def test_the_largest_timestamp_of_what_is_left(log: PartitionLog, start: int) -> None:
    log.advance_log_start(start)
    left = [time for times in TIMES for time in times][start:]
    found = run_at_once(with_max_timestamp(log))
    assert found is not None
    assert found.timestamp == NOW_MS + max(left)
    assert found.offset == start + left.index(max(left))


def test_a_log_without_times() -> None:
    log = open_sample(MemoryDisk())
    assert run_at_once(with_max_timestamp(log)) is None
    assert run_at_once(first_at_or_after(log, 0)) is None
    append(log, make_batch(timestamp=-1))
    assert run_at_once(with_max_timestamp(log)) is None
    assert run_at_once(first_at_or_after(log, 0)) is None
    log.advance_log_start(1)
    assert run_at_once(with_max_timestamp(log)) is None
