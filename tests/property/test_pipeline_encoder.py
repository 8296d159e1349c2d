"""What the encoder of Arrow columns writes, the reader of batches reads; keys go where the plain murmur2 sends them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

import pyarrow as pa

from headrace.client.key_partition import partition_of_key
from headrace.pipelines.records.arrow_columns import HEADERS_TYPE
from headrace.pipelines.records.batch_encoding import Columns, Run, encode_headers, runs_of
from headrace.pipelines.records.key_partitions import partitions_of_keys
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    BatchHeader,
    pack_header,
    renew_crc,
)

contents = st.tuples(
    st.none() | st.binary(max_size=80),
    st.none() | st.binary(max_size=300),
    st.none()
    | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3),
)


def as_batch(run: Run) -> bytearray:
    header = BatchHeader(
        0, HEADER_BYTES - LOG_OVERHEAD + len(run.payload), -1, 2, 0, 0,
        run.record_count - 1, 5, 5, -1, -1, -1, run.record_count,
    )  # fmt: skip
    batch = bytearray(pack_header(header)) + bytes(run.payload)
    renew_crc(batch)
    return batch


def read(runs: list[Run]) -> list[tuple[Any, Any, Any]]:
    found: list[Record] = []
    for run in runs:
        records = read_batch(as_batch(run))
        assert [each.offset for each in records] == list(range(run.record_count))
        found += records
    return [(each.key, each.value, each.headers) for each in found]


@settings(deadline=None)
@given(
    st.lists(contents, max_size=30),
    st.integers(1, 2000),
    st.booleans(),
    st.booleans(),
)
def test_what_is_encoded_is_read(
    rows: list[tuple[Any, Any, Any]], batch_bytes: int, with_key: bool, with_headers: bool
) -> None:
    entries = [
        None if some is None else [{"key": name, "value": value} for name, value in some]
        for _, _, some in rows
    ]
    columns = Columns(
        key=pa.array([key for key, _, _ in rows], pa.binary()) if with_key else None,
        value=pa.array([value for _, value, _ in rows], pa.binary()),
        headers=encode_headers(pa.array(entries, HEADERS_TYPE)) if with_headers else None,
    )
    runs = list(runs_of(columns, batch_bytes=batch_bytes))
    expected = [
        (key if with_key else None, value, tuple(some or ()) if with_headers else ())
        for key, value, some in rows
    ]
    assert read(runs) == expected
    assert read([half for run in runs for half in run.halves()]) == expected
    assert all(run.record_count == 1 or len(run.payload) <= batch_bytes for run in runs)


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=70) | st.binary(min_size=250, max_size=300), max_size=20),
    st.integers(1, 100),
    st.integers(0, 3),
)
def test_keys_go_where_the_plain_hash_sends_them(keys: list[bytes], count: int, skip: int) -> None:
    column = pa.array(keys, pa.binary()).slice(skip)
    assert partitions_of_keys(column, count).tolist() == [
        partition_of_key(key, count) for key in keys[skip:]
    ]


@pytest.mark.parametrize(
    ("key", "hashed"),
    # From the tests of Kafka's own murmur2.
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_kafkas(key: bytes, hashed: int) -> None:
    assert partition_of_key(key, 2**31) == hashed & 0x7FFFFFFF
