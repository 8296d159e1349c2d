"""Which batches of a list are written together. tests/property/test_produce_runs.py compares it with one by one."""

import pytest

from headrace.errors import DiskFull, LogClosed
from headrace.log.append_result import Appended
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.records.batch_view import read_header
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal
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


def append_list(
    log: PartitionLog, *batches: bytearray, leader_epoch: int = 0
) -> Appended | Refusal:
    headers = [read_header(batch) for batch in batches]
    return log.append_as_leader(batches, headers, leader_epoch=leader_epoch, now_ms=NOW_MS)


def test_a_list_follows_what_is_there(log: PartitionLog) -> None:
    run = [make_batch(2), make_batch(3), make_batch()]
    assert append_list(log, *run) == Appended(1, 6, batches=3)
    assert log.log_end_offset == 7
    assert stored_batches(log)[1:] == run
    assert [read_header(batch).base_offset for batch in run] == [1, 3, 6]


def test_a_producers_next_batches_are_written_together(log: PartitionLog) -> None:
    appended = append_list(log, make_producer_batch(7, 1, 2), make_producer_batch(7, 3))
    assert appended == Appended(1, 3, batches=2)
    entry = log.producers.entry(7)
    assert entry is not None
    assert entry.last_sequence == 3


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([make_producer_batch(7, 1), make_producer_batch(7, 3)], id="a gap"),
        pytest.param([make_producer_batch(7, 1), make_producer_batch(7, 1)], id="a retry"),
        pytest.param([make_producer_batch(7, 1), make_producer_batch(7, 2, epoch=1)], id="epochs"),
        pytest.param([make_producer_batch(7, 1), make_producer_batch(8, 2)], id="two producers"),
        pytest.param([make_producer_batch(7, 1), make_batch()], id="a producer and none"),
        pytest.param([make_batch(), make_batch()[:-1]], id="one is cut"),
        pytest.param([make_batch(), make_batch(timestamp=-1)], id="one without a time"),
        pytest.param([make_batch(value=bytes(500))] * 2, id="no room in the segment"),
    ],
)
def test_a_batch_that_must_be_looked_at_behind_the_first_is_left(
    log: PartitionLog, batches: list[bytearray]
) -> None:
    first, second = (bytearray(batch) for batch in batches)
    assert append_list(log, first, second) == Appended(1, 1)
    assert second == batches[1], "its bytes are as they came"
    assert stored_batches(log)[1:] == [first]


def test_of_a_longer_list_those_before_it_are_written_together(log: PartitionLog) -> None:
    run = [make_producer_batch(7, 1), make_producer_batch(7, 2), make_producer_batch(7, 4)]
    assert append_list(log, *run) == Appended(1, 2, batches=2)
    assert log.log_end_offset == 3


def test_a_refusal_is_about_the_first(log: PartitionLog) -> None:
    run = [make_producer_batch(7, 3), make_producer_batch(7, 4)]
    given, stored = [bytes(batch) for batch in run], stored_batches(log)
    refused = append_list(log, *run)
    assert isinstance(refused, Refusal)
    assert refused.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [bytes(batch) for batch in run] == given
    assert stored_batches(log) == stored


def test_a_retry_is_answered_alone(log: PartitionLog) -> None:
    retried = append_list(log, make_producer_batch(7, 0), make_producer_batch(7, 1))
    assert isinstance(retried, Appended)
    assert (retried.duplicate, retried.batches, log.log_end_offset) == (True, 1, 1)


def test_the_first_batch_of_a_segment_goes_alone(disk: MemoryDisk) -> None:
    empty = open_sample(disk, LogConfig(segment_bytes=1000), directory="/data/empty-0")
    assert append_list(empty, make_batch(), make_batch()) == Appended(0, 0)
    assert append_list(empty, make_batch(), make_batch()) == Appended(1, 2, batches=2)


def test_the_first_batches_of_an_epoch_are_written_together(log: PartitionLog) -> None:
    assert append_list(log, make_batch(), make_batch(), leader_epoch=4) == Appended(1, 2, batches=2)
    assert log.leader_epochs.entries[-1] == (4, 1)


def test_a_closed_log_takes_none(log: PartitionLog) -> None:
    log.close(NOW_MS)
    with pytest.raises(LogClosed):
        append_list(log, make_batch(), make_batch())


def test_a_full_disk_takes_what_fits(disk: MemoryDisk, log: PartitionLog) -> None:
    run = [make_batch(), make_batch()]
    given = [bytes(batch) for batch in run]
    disk.capacity_bytes = disk.used_bytes + len(run[0])
    assert append_list(log, *run) == Appended(1, 1)
    assert run[1] == given[1], "it may be tried again"
    with pytest.raises(DiskFull):
        append_list(log, run[1])
    assert run[1] == given[1]
    assert log.log_end_offset == 2
