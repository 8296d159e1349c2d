from dataclasses import replace

import pytest

from headrace.errors import BatchTooLarge, CorruptBatch
from headrace.log.batch_filter import (
    checked_slices,
    empty_batch,
    filter_batch,
    inflate,
    record_slices,
)
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import read_header
from headrace.records.compression import Codec

HORIZON_MS = 1_800_000_000_000
RECORDS = [
    Record(100, 1_700_000_000_050, b"a", b"x" * 200, (("h", b"1"), ("n", None))),
    Record(101, 1_700_000_000_900, b"b", None),
    Record(102, 1_700_000_000_000, None, b""),
    Record(103, -1, b"", b"y"),
]
OPTIONS = BatchOptions(leader_epoch=4, producer_id=9, producer_epoch=2, base_sequence=50)
KEPT_FIELDS = (
    "base_offset",
    "leader_epoch",
    "last_offset",
    "last_sequence",
    "base_sequence",
    "producer_id",
    "producer_epoch",
    "codec",
)


def without(*offsets: int, codec: int = 0, new_horizon_ms: int | None = None) -> list[Record]:
    """What is left of the sample, after checking that the batch still is what it was."""
    batch = build_batch(RECORDS, replace(OPTIONS, codec=codec))
    header = read_header(batch)
    filtered = filter_batch(
        inflate(batch, header),
        header,
        lambda offset, _: offset not in offsets,
        new_horizon_ms=new_horizon_ms,
    )
    assert filtered.batch is not None
    after = read_header(filtered.batch)
    for field in KEPT_FIELDS:
        assert getattr(after, field) == getattr(header, field), field
    left = read_batch(filtered.batch)
    assert after.max_timestamp == max(record.timestamp for record in left)
    assert (filtered.kept, filtered.dropped) == (len(left), len(RECORDS) - len(left))
    assert after.delete_horizon_ms == new_horizon_ms
    return left


@pytest.mark.parametrize("codec", list(Codec))
def test_survivors_are_what_they_were(codec: Codec) -> None:
    assert without(100, 102, codec=codec) == [RECORDS[1], RECORDS[3]]
    assert without(101, 103, codec=codec) == [RECORDS[0], RECORDS[2]]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_delete_horizon_leaves_the_timestamps(codec: Codec) -> None:
    assert without(codec=codec, new_horizon_ms=HORIZON_MS) == RECORDS
    assert without(102, codec=codec, new_horizon_ms=HORIZON_MS) == [*RECORDS[:2], RECORDS[3]]


def test_nothing_to_do_means_the_same_bytes() -> None:
    batch = build_batch(RECORDS, OPTIONS)
    header = read_header(batch)
    assert filter_batch(inflate(batch, header), header, lambda *_: True) == (None, 4, 0)
    assert filter_batch(inflate(batch, header), header, lambda *_: False) == (None, 0, 4)


def test_no_horizon_without_a_tombstone_and_none_over_an_older_one() -> None:
    def kept(records: list[Record], options: BatchOptions) -> bytearray | None:
        batch = build_batch(records, options)
        header = read_header(batch)
        payload = inflate(batch, header)
        return filter_batch(payload, header, lambda *_: True, new_horizon_ms=HORIZON_MS).batch

    assert kept(RECORDS[:1], OPTIONS) is None
    assert kept(RECORDS[:2], BatchOptions(delete_horizon_ms=5)) is None
    assert kept(RECORDS[:2], OPTIONS) is not None


def test_tombstones_go_when_their_time_is_over() -> None:
    batch = build_batch(RECORDS[:2], BatchOptions(delete_horizon_ms=HORIZON_MS))
    header = read_header(batch)
    filtered = filter_batch(inflate(batch, header), header, lambda *_: True, drops_tombstones=True)
    assert filtered.batch is not None
    assert read_batch(filtered.batch) == RECORDS[:1]
    assert read_header(filtered.batch).delete_horizon_ms == HORIZON_MS


def test_log_append_time_is_kept() -> None:
    batch = build_batch(RECORDS, BatchOptions(log_append_time_ms=77))
    header = read_header(batch)
    filtered = filter_batch(
        inflate(batch, header),
        header,
        lambda offset, _: offset < 102,
        new_horizon_ms=HORIZON_MS,
    )
    assert filtered.batch is not None
    assert [record.timestamp for record in read_batch(filtered.batch)] == [77, 77]
    assert read_header(filtered.batch).max_timestamp == 77


def test_an_empty_batch_remembers_offsets_sequence_and_time() -> None:
    fields = replace(OPTIONS, codec=Codec.ZSTD, transactional=True)
    header = read_header(build_batch(RECORDS, fields))
    batch = empty_batch(header)
    after = read_header(batch)
    assert read_batch(batch) == []
    assert (after.base_offset, after.last_offset, after.last_sequence) == (100, 103, 53)
    assert (after.max_timestamp, after.codec) == (header.max_timestamp, Codec.NONE)
    assert after.is_transactional


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_a_bomb_is_not_inflated(codec: Codec) -> None:
    batch = build_batch([Record(0, 0, b"k", bytes(100_000))], BatchOptions(codec=codec))
    with pytest.raises(BatchTooLarge):
        inflate(batch, read_header(batch), limit_bytes=10_000)


def test_damage_is_noticed_before_the_first_record_is_used() -> None:
    batch = build_batch(RECORDS)
    header = read_header(batch)
    payload = inflate(batch, header)
    for length in range(len(payload)):
        with pytest.raises(CorruptBatch):
            checked_slices(payload[:length], header)
    with pytest.raises(CorruptBatch, match="follow"):
        checked_slices(payload + b"\0", header)
    assert list(checked_slices(payload, header)) == list(record_slices(payload, header))
