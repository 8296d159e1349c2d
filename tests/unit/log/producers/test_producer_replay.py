"""Retries of batches that were written before the log was opened."""

import pytest

from headrace.log.append_result import Appended
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.producers import producer_snapshot
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.refusal import Refusal
from tests.support.log_samples import (
    NOW_MS,
    append,
    make_batch,
    make_producer_batch,
    open_sample,
    try_append,
)

INDEXED = LogConfig(index_interval_bytes=1)
BATCHES = 8
BATCHES_KEPT = 6


def stopped_after(disk: MemoryDisk, *, others_between: int = 0) -> None:
    """A log with eight batches of producer 7, stopped in order."""
    log = open_sample(disk, INDEXED)
    for number in range(BATCHES):
        append(log, make_producer_batch(7, 2 * number, 2))
        for _ in range(others_between):
            append(log, make_batch())
    log.close(NOW_MS)


def retry(log: PartitionLog, number: int) -> Appended | Refusal:
    return try_append(log, make_producer_batch(7, 2 * number, 2))


@pytest.mark.parametrize("is_of_kafka", [False, True])
def test_a_clean_start_knows_the_last_batches_of_a_producer(
    is_of_kafka: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = MemoryDisk()
    if is_of_kafka:
        monkeypatch.setattr(producer_snapshot, "_encode_earlier_batches", lambda _: b"")
    stopped_after(disk)
    log = open_sample(disk, INDEXED, clean=True)
    for number in range(BATCHES - BATCHES_KEPT, BATCHES):
        assert retry(log, number) == Appended(2 * number, 2 * number + 1, NOW_MS, duplicate=True)
    assert isinstance(retry(log, BATCHES - BATCHES_KEPT - 1), Refusal)
    assert log.log_end_offset == 2 * BATCHES
    append(log, make_producer_batch(7, 2 * BATCHES, 2))


def test_a_cut_log_knows_the_batches_before_the_cut() -> None:
    disk = MemoryDisk()
    stopped_after(disk)
    log = open_sample(disk, INDEXED, clean=True)
    log.truncate_to(10, now_ms=NOW_MS)
    assert retry(log, 3) == Appended(6, 7, NOW_MS, duplicate=True)
    assert retry(log, 5) == Appended(10, 11)


@pytest.mark.parametrize("segment_bytes", [1 << 30, 400])
def test_a_clean_start_knows_batches_far_before_the_end(segment_bytes: int) -> None:
    """The batches that a producer had in flight may have those of others between them, and lie in several segments."""
    disk = MemoryDisk()
    config = LogConfig(index_interval_bytes=1, segment_bytes=segment_bytes)
    log = open_sample(disk, config)
    for number in range(BATCHES):
        append(log, make_producer_batch(7, 2 * number, 2))
        for _ in range(20):
            append(log, make_batch())
    log.close(NOW_MS)
    log = open_sample(disk, config, clean=True)
    for number in range(BATCHES - BATCHES_KEPT, BATCHES):
        answer = retry(log, number)
        assert isinstance(answer, Appended)
        assert answer.duplicate
    assert log.log_end_offset == BATCHES * 22
    assert isinstance(retry(log, BATCHES - BATCHES_KEPT - 1), Refusal)


def test_what_stands_far_before_the_end_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a snapshot that Kafka wrote, which knows each producer's last batch."""
    disk = MemoryDisk()
    monkeypatch.setattr(producer_snapshot, "_encode_earlier_batches", lambda _: b"")
    stopped_after(disk, others_between=20)
    log = open_sample(disk, INDEXED, clean=True)
    assert isinstance(retry(log, BATCHES - 1), Appended)
    assert isinstance(retry(log, BATCHES - 2), Refusal)
    assert log.log_end_offset == BATCHES * 22


@pytest.mark.parametrize("epoch", [0, 1])
def test_batches_of_an_older_epoch_are_not_recalled(epoch: int) -> None:
    disk = MemoryDisk()
    log = open_sample(disk)
    append(log, make_producer_batch(7, 0, 2))
    append(log, make_producer_batch(7, 2 if epoch == 0 else 0, 3, epoch=epoch))
    log.close(NOW_MS)
    known = open_sample(disk, clean=True).producers.entry(7)
    assert known is not None
    assert [batch.base_offset for batch in known.batches] == ([0, 2] if epoch == 0 else [2])
