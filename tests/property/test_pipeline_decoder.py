"""The decoder of whole fetches finds what the reader of single batches finds, for all records, codecs and damages."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from headrace.client.partition_fetch import next_offset
from headrace.errors import CorruptBatch
from headrace.pipelines.records import arrow_columns
from headrace.pipelines.records.record_spans import Aborted, RecordRange, spans_in
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import NO_TIMESTAMP, renew_crc
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType, build_marker

EVERYTHING = RecordRange(start=0, end=2**62)
TIMES = st.sampled_from((1, 1, 1, 40))  # records of one length in a row are found together

headers = st.lists(
    st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3
).map(tuple)
contents = st.tuples(
    st.integers(NO_TIMESTAMP, 2**45),
    st.none() | st.binary(max_size=80),
    st.none() | st.binary(max_size=200),
    headers,
)


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[list[Record], BatchOptions]]:
    offset = draw(st.integers(0, 2**50))
    found = []
    for _ in range(draw(st.integers(1, 5))):
        records = []
        for timestamp, key, value, its_headers in draw(st.lists(contents, min_size=1, max_size=6)):
            for _ in range(draw(TIMES)):
                records.append(Record(offset, timestamp, key, value, its_headers))
                offset += 1
            offset += draw(st.integers(0, 1000))
        append_time = draw(st.none() | st.integers(0, 2**45))
        options = BatchOptions(codec=draw(st.sampled_from(Codec)), log_append_time_ms=append_time)
        found.append((records, options))
    return found


def decoded(fetched: bytes, wanted: RecordRange = EVERYTHING, aborted: Any = ()) -> list[Record]:
    records = []
    for spans in spans_in(fetched, wanted, aborted):
        key, value = arrow_columns.key_and_value(spans, want_key=True, want_value=True)
        assert key is not None
        assert value is not None
        header_column = arrow_columns.headers(spans)
        for array in (key, value, header_column):
            array.validate(full=True)
        for number, (one_key, one_value, some) in enumerate(
            zip(key.to_pylist(), value.to_pylist(), header_column.to_pylist(), strict=True)
        ):
            pairs = tuple((each["key"], each["value"]) for each in some or ())
            place = int(spans.offset[number]), int(spans.timestamp_ms[number])
            records.append(Record(*place, one_key, one_value, pairs))
    return records


def expected(made: list[tuple[list[Record], BatchOptions]]) -> list[Record]:
    return [each for records, options in made for each in read_batch(build_batch(records, options))]


def joined(made: list[tuple[list[Record], BatchOptions]]) -> bytes:
    return b"".join(build_batch(records, options) for records, options in made)


@settings(deadline=None)  # the first call imports codecs
@given(batches())
def test_a_fetch_is_read_as_its_batches_are(made: list[tuple[list[Record], BatchOptions]]) -> None:
    assert decoded(joined(made)) == expected(made)


@settings(deadline=None)  # the first call imports codecs
@given(batches(), st.data())
def test_only_what_is_wanted_is_found(
    made: list[tuple[list[Record], BatchOptions]], data: st.DataObject
) -> None:
    records = expected(made)
    places = st.sampled_from([each.offset for each in records] + [records[-1].offset + 1])
    start, end = data.draw(places), data.draw(places)
    found = decoded(joined(made), RecordRange(start=start, end=end))
    assert found == [each for each in records if start <= each.offset < end]


@settings(deadline=None)  # the first call imports codecs
@given(batches(), st.data())
def test_a_cut_fetch_ends_with_its_last_whole_batch(
    made: list[tuple[list[Record], BatchOptions]], data: st.DataObject
) -> None:
    fetched = joined(made)
    cut = data.draw(st.integers(0, len(fetched)))
    whole, length = [], 0
    for records, options in made:
        length += len(build_batch(records, options))
        if length <= cut:
            whole.append((records, options))
    assert decoded(fetched[:cut]) == expected(whole)
    assert next_offset(fetched[:cut]) == (whole[-1][0][-1].offset + 1 if whole else None)


@settings(deadline=None)  # the first call imports codecs
@given(batches(), st.data())
def test_a_forged_fetch_is_read_as_its_batches_are_or_is_corrupt(
    made: list[tuple[list[Record], BatchOptions]], data: st.DataObject
) -> None:
    """The checksum is no proof against malice: it is renewed after the damage."""
    forged = []
    for records, options in made:
        batch = build_batch(records, options)
        if data.draw(st.booleans()):
            position = data.draw(st.integers(61, len(batch) - 1))
            batch[position] = data.draw(st.integers(0, 255))
            renew_crc(batch)
        forged.append(bytes(batch))
    fetched = b"".join(forged)
    try:
        records = [each for batch in forged for each in read_batch(batch, limit_bytes=1 << 20)]
    except CorruptBatch:
        with pytest.raises(CorruptBatch):
            decoded(fetched, RecordRange(start=0, end=2**62, limit_bytes=1 << 20))
        return
    assert decoded(fetched, RecordRange(start=0, end=2**62, limit_bytes=1 << 20)) == records


@settings(deadline=None)  # the first call imports codecs
@given(st.binary(max_size=400))
def test_noise_is_nothing_or_corrupt(noise: bytes) -> None:
    try:
        assert decoded(noise) == []
    except CorruptBatch:
        pass


def test_rows_of_records_whose_lengths_begin_with_the_same_byte() -> None:
    sizes = [90] * 40 + [154] * 40 + [26] * 40 + [90] * 17 + [154]
    records = [Record(offset, 0, None, b"v" * size, ()) for offset, size in enumerate(sizes)]
    assert decoded(bytes(build_batch(records, BatchOptions()))) == records


def test_a_record_with_very_many_headers() -> None:
    many = tuple((f"h{number}", b"x" * (number % 3) or None) for number in range(200))
    records = [
        Record(0, 5, b"k", b"v", many),
        Record(1, 6, None, None, many[:2]),
        Record(2, 7, b"", b"", ()),
    ]
    assert decoded(bytes(build_batch(records))) == records


def test_markers_and_aborted_transactions_are_left_out() -> None:
    def batch(producer_id: int, offset: int) -> bytes:
        options = BatchOptions(
            producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )
        return bytes(build_batch([Record(offset, 1, None, b"%d" % offset)], options))

    def marker(kind: ControlType, producer_id: int, offset: int) -> bytes:
        made = build_marker(
            kind,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=1,
            offset=offset,
        )
        return bytes(made)

    fetched = b"".join(
        [
            batch(7, 10),
            batch(8, 11),
            marker(ControlType.ABORT, 7, 12),
            batch(7, 13),
            marker(ControlType.COMMIT, 8, 14),
            marker(ControlType.COMMIT, 7, 15),
        ]
    )
    found = decoded(fetched, aborted=[Aborted(producer_id=7, first_offset=10)])
    assert [each.offset for each in found] == [11, 13]
    assert next_offset(fetched) == 16


def test_a_decompression_bomb_is_refused() -> None:
    bomb = build_batch([Record(0, 1, None, bytes(1 << 20))], BatchOptions(codec=Codec.ZSTD))
    with pytest.raises(CorruptBatch, match="inflates"):
        decoded(bytes(bomb), RecordRange(start=0, end=2**62, limit_bytes=1 << 16))
