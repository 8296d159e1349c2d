"""What goes together into a log, and what has to go one by one. tests/property/test_produce_runs.py compares the two."""

import pytest

from headrace.errors import DiskFull
from headrace.log.append_run import append_run
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.records.batch_view import read_header
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import (
    NOW_MS,
    append,
    make_batch,
    make_producer_batch,
    open_sample,
    stored_batches,
)


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/data")
    return disk


@pytest.fixture
def log(disk: MemoryDisk) -> PartitionLog:
    log = open_sample(disk, LogConfig(segment_bytes=1000))
    append(log, make_producer_batch(7, 0))
    return log


def together(log: PartitionLog, *batches: bytearray, leader_epoch: int = 0) -> int | None:
    headers = [read_header(batch) for batch in batches]
    return append_run(log, batches, headers, leader_epoch=leader_epoch, now_ms=NOW_MS)


def test_a_run_follows_what_is_there(log: PartitionLog) -> None:
    run = [make_batch(2), make_batch(3), make_batch()]
    assert together(log, *run) == 1
    assert log.log_end_offset == 7
    assert stored_batches(log)[1:] == run
    assert [read_header(batch).base_offset for batch in run] == [1, 3, 6]


def test_a_producers_next_batches_are_a_run(log: PartitionLog) -> None:
    assert together(log, make_producer_batch(7, 1, 2), make_producer_batch(7, 3)) == 1
    entry = log.producers.entry(7)
    assert entry is not None
    assert entry.last_sequence == 3


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([make_producer_batch(7, 0), make_producer_batch(7, 1)], id="a retry"),
        pytest.param([make_producer_batch(7, 1), make_producer_batch(7, 3)], id="a gap"),
        pytest.param([make_producer_batch(7, 1), make_producer_batch(7, 2, epoch=1)], id="epochs"),
        pytest.param([make_producer_batch(7, 1), make_producer_batch(8, 2)], id="two producers"),
        pytest.param([make_producer_batch(7, 1), make_batch()], id="a producer and none"),
        pytest.param([make_batch(), make_batch()[:-1]], id="one is cut"),
        pytest.param([make_batch(), make_batch(timestamp=-1)], id="one without a time"),
        pytest.param([make_batch(value=bytes(500))] * 2, id="no room in the segment"),
    ],
)
def test_nothing_is_done_for_what_must_go_one_by_one(
    log: PartitionLog, batches: list[bytearray]
) -> None:
    given = [bytes(batch) for batch in batches]
    stored = stored_batches(log)
    assert together(log, *batches) is None
    assert batches == given
    assert stored_batches(log) == stored


def test_the_first_batch_of_a_segment_or_of_an_epoch_goes_alone(
    disk: MemoryDisk, log: PartitionLog
) -> None:
    assert together(log, make_batch(), make_batch(), leader_epoch=1) is None
    empty = open_sample(disk, LogConfig(segment_bytes=100), directory="/data/empty-0")
    empty.assign_epoch(0, 0)
    assert together(empty, make_batch(), make_batch()) is None


def test_a_closed_log_takes_none(log: PartitionLog) -> None:
    log.close(NOW_MS)
    assert together(log, make_batch(), make_batch()) is None


def test_a_full_disk_takes_all_or_none(disk: MemoryDisk, log: PartitionLog) -> None:
    run = [make_batch(), make_batch()]
    given, stored = [bytes(batch) for batch in run], stored_batches(log)
    disk.capacity_bytes = disk.used_bytes + len(run[0])
    with pytest.raises(DiskFull):
        together(log, *run)
    assert run == given
    assert (log.log_end_offset, stored_batches(log)) == (1, stored)
