import pytest

from headrace.errors import BatchTooLarge, CorruptBatch
from headrace.records.batch_builder import (
    BatchOptions,
    append_record,
    build_batch,
    build_batch_spanning,
    records_at,
)
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import BatchHeader, pack_header, read_header, renew_crc
from headrace.records.compression import Codec, compress
from headrace.records.varints import append_varint

RECORDS = [
    Record(100, 5000, b"key", b"value", (("h", b"1"), ("", None), ("ü", b""))),
    Record(101, 4000, None, b"", ()),
    Record(105, 9000, b"", None, ()),
]


@pytest.mark.parametrize("codec", Codec)
def test_records_read_as_they_were_built(codec: Codec) -> None:
    batch = build_batch(RECORDS, BatchOptions(codec=codec))
    assert read_header(batch).codec == codec
    assert read_batch(batch) == RECORDS
    assert read_batch(memoryview(batch)) == RECORDS
    assert read_batch(bytes(batch)) == RECORDS


def test_offsets_may_have_gaps_and_the_batch_keeps_its_span() -> None:
    batch = build_batch_spanning(RECORDS[1:2], 100, 105, BatchOptions())
    header = read_header(batch)
    assert (header.base_offset, header.last_offset, header.record_count) == (100, 105, 1)
    assert read_batch(batch) == RECORDS[1:2]


def test_a_batch_may_be_empty() -> None:
    batch = build_batch_spanning([], 100, 105, BatchOptions(producer_id=4))
    assert read_batch(batch) == []
    assert read_header(batch).next_offset == 106


def test_delete_horizon_is_the_base_of_the_timestamps() -> None:
    batch = build_batch(RECORDS, BatchOptions(delete_horizon_ms=123_456))
    assert read_header(batch).delete_horizon_ms == 123_456
    assert read_batch(batch) == RECORDS


def test_log_append_time_overrides_timestamps() -> None:
    batch = build_batch(RECORDS, BatchOptions(log_append_time_ms=77))
    assert {record.timestamp for record in read_batch(batch)} == {77}


def test_pairs_become_records_with_consecutive_offsets() -> None:
    assert records_at(7, 50, [(b"a", b"1"), (None, None)]) == [
        Record(7, 50, b"a", b"1"),
        Record(8, 50, None, None),
    ]


# ---- what is not a batch


def forged(payload: bytes, *, count: int = 1, codec: int = 0, delta: int = 0) -> bytes:
    """A batch with a fitting checksum and any payload."""
    header = BatchHeader(0, 49 + len(payload), 0, 2, 0, codec, delta, 0, 0, -1, -1, -1, count)
    batch = bytearray(pack_header(header) + payload)
    renew_crc(batch)
    return bytes(batch)


def varints(*numbers: int) -> bytes:
    encoded = bytearray()
    for number in numbers:
        append_varint(encoded, number)
    return bytes(encoded)


def one_record(*fields: bytes | int) -> bytes:
    body = b"\x00" + b"".join(f if isinstance(f, bytes) else varints(f) for f in fields)
    return varints(len(body)) + body


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x80",
        b"\xff" * 11,
        varints(50),
        varints(-1),
        one_record(),
        one_record(0, 0, 5),
        one_record(0, 0, 1000, b"k"),
        one_record(0, 0, -1, -1),
        one_record(0, 0, -1, -1, -1),
        one_record(0, 0, -1, -1, 1_000_000),
        one_record(0, 0, -1, -1, 1),
        one_record(0, 0, -1, -1, 1, -1, -1),
        one_record(0, 0, -1, -1, 1, 2, b"\xff\xfe", -1),
        one_record(0, 0, -1, -1, 0, b"more"),
        one_record(0, 1, -1, -1, 0),
        one_record(0, -1, -1, -1, 0),
        one_record(2**63 - 1, 0, -1, -1, 0) + b"x",
        one_record(b"\xff" * 9 + b"\x7f", 0, -1, -1, 0),
        one_record(0, 0, -1, -1, 0) + b"\x00",
    ],
)
def test_malformed_records_are_corrupt(payload: bytes) -> None:
    with pytest.raises(CorruptBatch):
        read_batch(forged(payload))


def test_the_forger_can_also_forge_sound_batches() -> None:
    assert read_batch(forged(one_record(3, 0, -1, 1, b"v", 0))) == [Record(0, 3, None, b"v")]


def test_a_timestamp_beyond_64_bits_is_corrupt() -> None:
    header = BatchHeader(0, 0, 0, 2, 0, 0, 0, 2**63 - 1, 0, -1, -1, -1, 1)
    payload = one_record(1, 0, -1, -1, 0)
    batch = bytearray(pack_header(header._replace(length=49 + len(payload))) + payload)
    renew_crc(batch)
    with pytest.raises(CorruptBatch, match="timestamp"):
        read_batch(batch)


@pytest.mark.parametrize("count", [-1, 0, 2, 2**31 - 1])
def test_a_wrong_count_is_corrupt(count: int) -> None:
    with pytest.raises(CorruptBatch):
        read_batch(forged(one_record(0, 0, -1, -1, 0), count=count))


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 7])
def test_a_payload_of_another_codec_is_corrupt(codec: int) -> None:
    with pytest.raises(CorruptBatch):
        read_batch(forged(one_record(0, 0, -1, -1, 0), codec=codec))


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_cut_payload_is_corrupt(codec: Codec) -> None:
    payload = bytearray()
    for number in range(50):
        append_record(payload, Record(number, 0, b"k%d" % number, b"v"), number, 0)
    packed = compress(codec, payload)
    assert len(read_batch(forged(packed, count=50, codec=codec, delta=49))) == 50
    for size in range(len(packed)):
        with pytest.raises(CorruptBatch):
            read_batch(forged(packed[:size], count=50, codec=codec, delta=49))


@pytest.mark.parametrize("size", [0, 11, 60])
def test_less_than_a_header_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatch, match="less than"):
        read_batch(bytes(build_batch(RECORDS))[:size])


def test_size_format_and_checksum_are_checked() -> None:
    batch = bytes(build_batch(RECORDS))
    with pytest.raises(CorruptBatch, match="claims"):
        read_batch(batch + b"x")
    with pytest.raises(CorruptBatch, match="claims"):
        read_batch(batch[:-1])
    old = bytearray(batch)
    old[16] = 1
    with pytest.raises(CorruptBatch, match="format 1"):
        read_batch(old)
    damaged = bytearray(batch)
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        read_batch(damaged)


def test_the_limit_is_the_readers() -> None:
    batch = build_batch([Record(0, 0, None, bytes(10_000))], BatchOptions(codec=Codec.ZSTD))
    assert len(batch) < 200
    with pytest.raises(BatchTooLarge):
        read_batch(batch, limit_bytes=9_999)
    assert read_batch(batch, limit_bytes=20_000)
