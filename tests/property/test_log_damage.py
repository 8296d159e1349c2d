"""Damage to a segment that was not flushed: what is left is a prefix of what was written, never anything else."""

from collections.abc import Callable

import pytest

from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.segments.segment import offset_name
from headrace.records.batch_builder import BatchOptions
from headrace.records.batch_reader import Record
from headrace.records.batch_view import read_header, stamp
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import (
    DIRECTORY,
    append,
    make_batch,
    make_marker,
    make_producer_batch,
    open_sample,
    stored_batches,
    stored_records,
)

SMALL_INDEX = LogConfig(index_interval_bytes=100)


def fill_one_segment(log: PartitionLog) -> None:
    append(log, make_batch(2), leader_epoch=0)
    append(log, make_batch(3, options=BatchOptions(codec=Codec.ZSTD)), leader_epoch=1)
    append(log, make_producer_batch(7, 0, 2, transactional=True), leader_epoch=1)
    append(log, make_marker(ControlType.ABORT, 7), leader_epoch=4)
    append(log, make_batch(1), leader_epoch=6)


def fill_three_segments(log: PartitionLog) -> None:
    append(log, make_batch(1), leader_epoch=0)
    log.roll(0)
    append(log, make_batch(2), leader_epoch=2)
    append(log, make_batch(1), leader_epoch=2)
    log.roll(0)
    append(log, make_batch(1), leader_epoch=2)


FILLS = pytest.mark.parametrize("fill", [fill_one_segment, fill_three_segments])
Fill = Callable[[PartitionLog], None]


def without_epochs(batches: list[bytes]) -> list[bytes]:
    copies = [bytearray(batch) for batch in batches]
    for copy in copies:
        stamp(copy, 0, read_header(copy).base_offset, 0)
    return [bytes(copy) for copy in copies]


class Damaged:
    """A filled log whose `.log` files can be given other content, over and over."""

    def __init__(self, fill: Fill) -> None:
        self.disk = MemoryDisk()
        log = open_sample(self.disk, SMALL_INDEX)
        fill(log)
        self.batches = stored_batches(log)
        self.records = stored_records(log)
        self.paths = [segment.log.path for segment in log.segments]
        names = [stat.name for stat in self.disk.list_files(DIRECTORY)]
        self._contents = {name: self.disk.read_bytes(f"{DIRECTORY}/{name}") for name in names}

    def content(self, path: str) -> bytes:
        content = self._contents[path.removeprefix(f"{DIRECTORY}/")]
        assert content is not None
        return content

    def reopened_with(self, path: str, content: bytes) -> PartitionLog:
        for stat in self.disk.list_files(DIRECTORY):
            self.disk.remove(f"{DIRECTORY}/{stat.name}")
        for name, original in self._contents.items():
            self.disk.create(f"{DIRECTORY}/{name}").append(original or b"")
        self.disk.create(path).append(content)
        return open_sample(self.disk, SMALL_INDEX)

    def check_prefix(self, log: PartitionLog, whole_until: int) -> None:
        """Only what was written is there, in order, and all of it before the damage."""
        records = stored_records(log)
        assert records == self.records[: len(records)]
        batches = stored_batches(log)
        assert without_epochs(batches) == without_epochs(self.batches[: len(batches)])
        # No checksum covers the epoch. It may be wrong between two others, but never ahead of every leader.
        epochs = [read_header(batch).leader_epoch for batch in batches]
        assert epochs == sorted(epochs)
        assert max(epochs, default=0) <= read_header(self.batches[-1]).leader_epoch
        assert len(batches) >= whole_until
        assert log.log_end_offset == (read_header(batches[-1]).next_offset if batches else 0)
        self._check_goes_on(log, records)

    @staticmethod
    def _check_goes_on(log: PartitionLog, before: list[Record]) -> None:
        appended = append(log, make_batch(2), leader_epoch=9)
        assert [record.offset for record in stored_records(log)[len(before) :]] == [
            appended.base_offset,
            appended.last_offset,
        ]

    def whole_before(self, path: str, position: int) -> int:
        """How many batches lie wholly before a byte of a file."""
        number = 0
        for earlier in self.paths:
            end = len(self.content(earlier)) if earlier != path else position
            at = 0
            while at < len(self.content(earlier)):
                at += len(self.batches[number])
                if at > end:
                    return number
                number += 1
            if earlier == path:
                return number
        raise AssertionError(f"{path} is not a segment")


@FILLS
def test_a_tail_cut_at_any_byte_loses_only_what_it_cut(fill: Fill) -> None:
    damaged = Damaged(fill)
    for path in damaged.paths:
        content = damaged.content(path)
        for size in range(len(content)):
            log = damaged.reopened_with(path, content[:size])
            damaged.check_prefix(log, damaged.whole_before(path, size))


@FILLS
def test_a_flipped_bit_loses_only_what_lies_behind_it(fill: Fill) -> None:
    damaged = Damaged(fill)
    for path in damaged.paths:
        content = damaged.content(path)
        for bit in range(len(content) * 8):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            log = damaged.reopened_with(path, bytes(flipped))
            damaged.check_prefix(log, damaged.whole_before(path, bit // 8))


def test_zeros_behind_the_end_are_cut() -> None:
    damaged = Damaged(fill_one_segment)
    path = damaged.paths[0]
    log = damaged.reopened_with(path, damaged.content(path) + bytes(5000))
    assert log.segments.active.size == len(damaged.content(path))
    damaged.check_prefix(log, len(damaged.batches))


def test_a_segment_behind_the_damage_is_dropped() -> None:
    damaged = Damaged(fill_three_segments)
    middle = damaged.paths[1]
    log = damaged.reopened_with(middle, damaged.content(middle)[:-1])
    assert log.log_end_offset == 3
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    assert not damaged.disk.exists(f"{DIRECTORY}/{offset_name(4)}.log")
