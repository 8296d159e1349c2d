"""Batches for all records: built and read again, and whatever bytes come, either records or CorruptBatch."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import CorruptBatch
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import HEADER_BYTES, has_valid_crc, read_header, renew_crc, stamp
from headrace.records.compression import Codec
from headrace.records.varints import append_varint, read_varint

headers = st.lists(
    st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3
).map(tuple)
contents = st.tuples(
    st.integers(-1, 2**45), st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=200)
)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    offset = draw(st.integers(0, 2**50))
    records = []
    for timestamp, key, value in draw(st.lists(contents, min_size=1, max_size=8)):
        records.append(Record(offset, timestamp, key, value, draw(headers)))
        offset += draw(st.integers(1, 1000))
    return records


@given(record_lists(), st.sampled_from(Codec))
def test_what_is_built_is_read(records: list[Record], codec: Codec) -> None:
    assert read_batch(build_batch(records, BatchOptions(codec=codec))) == records


@given(record_lists(), st.integers(0, 2**60), st.integers(-1, 2**31 - 1))
def test_a_stamp_keeps_checksum_and_content(records: list[Record], offset: int, epoch: int) -> None:
    batch = build_batch(records)
    stamp(batch, 0, offset, epoch)
    assert has_valid_crc(batch)
    assert read_header(batch).leader_epoch == epoch
    shift = offset - records[0].offset
    assert read_batch(batch) == [
        record._replace(offset=record.offset + shift) for record in records
    ]


@given(record_lists(), st.sampled_from(Codec), st.data())
def test_a_forged_batch_yields_records_or_is_corrupt(
    records: list[Record], codec: Codec, data: st.DataObject
) -> None:
    """The checksum is no proof against malice: it is renewed after the damage."""
    batch = build_batch(records, BatchOptions(codec=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(21, len(batch) - 1))
        batch[position] = data.draw(st.integers(0, 255))
    renew_crc(batch)
    try:
        found = read_batch(batch, limit_bytes=1 << 20)
    except CorruptBatch:
        return
    assert len(found) == read_header(batch).record_count
    if found:
        build_batch(found)


@given(st.binary(max_size=200))
def test_noise_is_corrupt(noise: bytes) -> None:
    padded = noise.ljust(HEADER_BYTES, b"\x00")
    for candidate in (noise, padded):
        try:
            read_batch(candidate)
        except CorruptBatch:
            pass


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_varints(number: int, behind: bytes) -> None:
    target = bytearray()
    append_varint(target, number)
    assert len(target) <= 10
    assert read_varint(bytes(target) + behind, 0) == (number, len(target))
