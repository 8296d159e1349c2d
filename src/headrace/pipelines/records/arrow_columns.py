"""Spans of records as Arrow arrays. Bytes are gathered by Arrow's own `take`: no Python object per record.

The payload is viewed as one binary array whose elements are, in turn, what lies before a key, the key, what lies between, the
value; every second element is then taken. It must not know Spark.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.errors import CorruptBatch
from headrace.pipelines.records.record_spans import Int64s, Spans, behind, varints
from headrace.records.varints import read_varint

HEADERS_TYPE: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")
_US_PER_MS: Final = 1000
_MAX_MS: Final = (2**63 - 1) // _US_PER_MS
_MANY_HEADERS: Final = (
    32  # a record with more is read by itself, so that one odd record costs its own size only
)


def key_and_value(
    spans: Spans, *, want_key: bool, want_value: bool
) -> tuple[pa.Array | None, pa.Array | None]:
    """The keys and the values, as binary arrays with nulls."""
    key_end = spans.key_start + np.maximum(spans.key_length, 0)
    value_end = spans.value_start + np.maximum(spans.value_length, 0)
    pieces = _alternating(spans.payload, (spans.key_start, key_end, spans.value_start, value_end))
    key = _taken(pieces, 1, 4, spans.key_length) if want_key else None
    value = _taken(pieces, 3, 4, spans.value_length) if want_value else None
    return key, value


def timestamps(spans: Spans) -> pa.Array:
    """Timestamps in microseconds; what lies beyond the years Arrow can say is kept at its edge."""
    bounded = np.clip(spans.timestamp_ms, -_MAX_MS, _MAX_MS)
    return pa.array(bounded * _US_PER_MS).cast(TIMESTAMP_TYPE)


def timestamp_types(spans: Spans) -> pa.Array:
    """0 where the producer's clock gave the timestamp, 1 where the broker's did."""
    return pa.array(spans.log_append_time.astype(np.int32))


def headers(spans: Spans) -> pa.Array:
    """The headers of each record as a list of (key, value); null where it has none."""
    has_some = spans.header_count > 0
    if not has_some.any():
        return pa.nulls(len(spans), HEADERS_TYPE)
    rows, keys, values = _header_spans(spans)
    pieces = _alternating(
        spans.payload,
        (keys[0], keys[0] + keys[1], values[0], values[0] + np.maximum(values[1], 0)),
    )
    try:
        names = _taken(pieces, 1, 4, keys[1]).cast(pa.string())
    except pa.ArrowInvalid as error:
        raise CorruptBatch(f"a header's key is not UTF-8: {error}") from error
    entries = pa.StructArray.from_arrays(
        [names, _taken(pieces, 3, 4, values[1])],
        fields=[pa.field("key", pa.string()), pa.field("value", pa.binary())],
    )
    counts = np.bincount(rows, minlength=len(spans))
    ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(ends), entries, type=HEADERS_TYPE, mask=pa.array(~has_some)
    )


def header_values(spans: Spans, name: str) -> pa.Array | None:
    """The value of the first header of this name in each record, null where there is none; None where no record has it."""
    if not (spans.header_count > 0).any():
        return None
    rows, keys, values = _header_spans(spans)
    wanted = name.encode()
    candidates = np.flatnonzero(keys[1] == len(wanted))
    data = np.frombuffer(spans.payload, dtype=np.uint8)
    letters = data[keys[0][candidates][:, None] + np.arange(len(wanted))]
    found = candidates[(letters == np.frombuffer(wanted, dtype=np.uint8)).all(axis=1)]
    found = found[values[1][found] >= 0]
    if not found.size:
        return None
    owners, first = np.unique(rows[found], return_index=True)
    start, length = values[0][found[first]], values[1][found[first]]
    pieces = _alternating(spans.payload, (start, start + length))
    places = np.zeros(len(spans), dtype=np.int64)
    places[owners] = 2 * np.arange(len(owners)) + 1
    absent = np.ones(len(spans), dtype=np.bool_)
    absent[owners] = False
    return pieces.take(pa.array(places, mask=absent))


def _alternating(payload: bytes, boundaries: tuple[Int64s, ...]) -> pa.Array:
    """The payload cut at all boundaries, which rise from the first of a record to the first of the next."""
    cuts = np.empty(len(boundaries) * len(boundaries[0]) + 1, dtype=np.int32)
    cuts[0] = 0
    for place, positions in enumerate(boundaries):
        cuts[1 + place :: len(boundaries)] = positions
    buffers = [None, pa.py_buffer(cuts), pa.py_buffer(payload)]
    return pa.Array.from_buffers(pa.binary(), len(cuts) - 1, buffers, null_count=0)


def _taken(pieces: pa.Array, first: int, step: int, lengths: Int64s) -> pa.Array:
    indices = np.arange(first, first + step * len(lengths), step, dtype=np.int64)
    is_null = lengths < 0
    return pieces.take(pa.array(indices, mask=is_null if is_null.any() else None))


Extent = tuple[Int64s, Int64s]  # starts and lengths


def _header_spans(spans: Spans) -> tuple[Int64s, Extent, Extent]:
    """Row, key and value of every header, in the order in which they stand."""
    data = np.frombuffer(spans.payload, dtype=np.uint8)
    rows = np.flatnonzero((spans.header_count > 0) & (spans.header_count <= _MANY_HEADERS))
    position, left = spans.header_start[rows], spans.header_count[rows]
    ends = spans.record_end[rows]
    found: list[tuple[Int64s, Int64s, Int64s, Int64s, Int64s]] = []
    while rows.size:
        key_length, key_start = varints(data, position, ends)
        if (key_length < 0).any():
            raise CorruptBatch("a header has no key")
        value_length, value_start = varints(data, behind(key_start, key_length, ends), ends)
        position = behind(value_start, value_length, ends)
        found.append((rows, key_start, key_length, value_start, value_length))
        left = left - 1
        if ((left == 0) & (position != ends)).any():
            raise CorruptBatch("a record's length is off")
        more = left > 0
        rows, position, left, ends = rows[more], position[more], left[more], ends[more]
    odd = np.flatnonzero(spans.header_count > _MANY_HEADERS)
    found += [_many_headers(spans, int(row)) for row in odd]
    columns: list[npt.NDArray[Any]] = [
        np.concatenate(column) for column in zip(*found, strict=True)
    ]
    order = np.lexsort((columns[1], columns[0]))
    all_rows, key_starts, key_lengths, value_starts, value_lengths = (
        each[order] for each in columns
    )
    return all_rows, (key_starts, key_lengths), (value_starts, value_lengths)


def _many_headers(spans: Spans, row: int) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
    position, end = int(spans.header_start[row]), int(spans.record_end[row])
    found: list[tuple[int, int, int, int, int]] = []
    for _ in range(int(spans.header_count[row])):
        key_length, key_start = read_varint(spans.payload, position)
        value_length, value_start = read_varint(spans.payload, key_start + max(key_length, 0))
        position = value_start + max(value_length, 0)
        if key_length < 0 or position > end:
            raise CorruptBatch("a header claims more bytes than its record has, or has no key")
        found.append((row, key_start, key_length, value_start, value_length))
    if position != end:
        raise CorruptBatch("a record's length is off")
    rows, key_starts, key_lengths, value_starts, value_lengths = np.array(found, dtype=np.int64).T
    return rows, key_starts, key_lengths, value_starts, value_lengths
