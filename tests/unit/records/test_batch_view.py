import pytest

from headrace.errors import CorruptBatch
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import (
    HEADER_BYTES,
    NO_SEQUENCE,
    attributes_of,
    has_valid_crc,
    headers_in,
    pack_header,
    read_header,
    read_offset_and_size,
    read_size,
    renew_crc,
    sequence_after,
    stamp,
    stamp_append_time,
)
from headrace.records.crc32c import crc32c

RECORDS = [Record(0, 1000, b"k", b"v"), Record(1, 1010, None, b"w"), Record(2, 990, b"k", None)]
OPTIONS = BatchOptions(
    producer_id=77, producer_epoch=3, base_sequence=40, transactional=True, leader_epoch=5
)


def test_a_header_reads_as_it_was_built() -> None:
    batch = build_batch(RECORDS, OPTIONS)
    header = read_header(batch)
    assert header.size == len(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (0, 2, 3)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1010)
    assert (header.producer_id, header.producer_epoch) == (77, 3)
    assert (header.base_sequence, header.last_sequence) == (40, 42)
    assert (header.leader_epoch, header.magic, header.record_count) == (5, 2, 3)
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert header.has_producer_id
    assert header.delete_horizon_ms is None
    assert header.crc == crc32c(bytes(batch[21:]))
    assert pack_header(header) == batch[:HEADER_BYTES]


def test_a_header_is_read_at_a_position() -> None:
    batch = build_batch(RECORDS, OPTIONS)
    stamp(batch, 0, 900, 5)
    buffer = b"xxx" + bytes(batch)
    assert read_header(buffer, 3).base_offset == 900
    assert read_offset_and_size(buffer, 3) == (900, len(batch))
    assert read_size(memoryview(buffer), 3) == len(batch)


@pytest.mark.parametrize(("base_offset", "epoch"), [(0, 0), (2**62, 2**31 - 1), (5, -1)])
def test_a_stamp_moves_the_batch_and_keeps_the_checksum(base_offset: int, epoch: int) -> None:
    batch = build_batch(RECORDS, OPTIONS)
    buffer = bytearray(b"abc" + batch + b"xyz")
    stamp(memoryview(buffer), 3, base_offset, epoch)
    stamped = bytes(buffer[3:-3])
    assert has_valid_crc(stamped)
    assert bytes(buffer[:3] + buffer[-3:]) == b"abcxyz"
    assert [record.offset for record in read_batch(stamped)] == [base_offset + n for n in range(3)]
    assert read_header(stamped).leader_epoch == epoch


def test_append_time_replaces_every_timestamp_and_renews_the_checksum() -> None:
    batch = build_batch(RECORDS)
    stamp_append_time(batch, 5555)
    assert has_valid_crc(batch)
    assert read_header(batch).is_log_append_time
    assert [record.timestamp for record in read_batch(batch)] == [5555] * 3


def test_every_byte_from_the_attributes_on_is_under_the_checksum_and_none_before() -> None:
    batch = build_batch(RECORDS, OPTIONS)
    for position in range(len(batch)):
        damaged = bytearray(batch)
        damaged[position] ^= 0x10
        assert has_valid_crc(damaged) == (position < 17), position
        if position >= 17:
            renew_crc(damaged)
            assert has_valid_crc(damaged)


def test_sequences_wrap() -> None:
    assert sequence_after(-1, 1) == 0
    assert sequence_after(5, 3) == 8
    assert sequence_after(2**31 - 1, 1) == 0
    assert sequence_after(2**31 - 2, 3) == 1
    assert sequence_after(1, -3) == 2**31 - 2
    options = BatchOptions(producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert read_header(build_batch(RECORDS, options)).last_sequence == 0
    assert read_header(build_batch(RECORDS)).last_sequence == NO_SEQUENCE


def test_attribute_bits() -> None:
    assert attributes_of() == 0
    assert attributes_of(codec=4, transactional=True) == 0x14
    assert attributes_of(log_append_time=True, control=True, delete_horizon=True) == 0x68


def test_headers_of_several_batches() -> None:
    batch = bytes(build_batch(RECORDS))
    found = list(headers_in(batch + batch))
    assert [position for position, _ in found] == [0, len(batch)]


@pytest.mark.parametrize("cut", [1, 20, 60, 61, 70])
def test_headers_stop_where_batches_are_not_whole(cut: int) -> None:
    batch = bytes(build_batch(RECORDS))
    headers = headers_in(batch + batch[:cut])
    assert next(headers)[0] == 0
    with pytest.raises(CorruptBatch):
        next(headers)
    assert list(headers_in(b"")) == []


def test_headers_refuse_a_length_that_is_too_small() -> None:
    batch = build_batch(RECORDS)
    batch[8:12] = (10).to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch, match="claims 22"):
        list(headers_in(batch))
    batch[8:12] = (-1).to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch):
        list(headers_in(batch))
