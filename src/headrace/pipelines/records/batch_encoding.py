"""Arrow columns as the insides of record batches, all records of a chunk at once: the way back of `arrow_columns`.

Everything of a record but its key, its value and its headers is a few small numbers; they are made with numpy as one block per
record, and Arrow joins blocks, keys and values. It must not know Spark or the wire.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.pipelines.options.known_options import BATCH_BYTES
from headrace.pipelines.records.record_spans import Int64s
from headrace.records.varints import append_varint
from headrace.schemas.columns.byte_columns import (
    Block,
    joined_blocks,
    lengths_of_blocks,
    varint_blocks,
    zigzag,
)

_OVERHEAD_BYTES: Final = 24  # an upper bound of the numbers in a record of ordinary size


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Records that go to one partition, in order. `headers` holds the encoded headers with their count in front."""

    key: pa.Array | None
    value: pa.Array
    headers: pa.Array | None

    def __len__(self) -> int:
        return len(self.value)

    def slice(self, start: int, count: int) -> Columns:
        return Columns(
            key=None if self.key is None else self.key.slice(start, count),
            value=self.value.slice(start, count),
            headers=None if self.headers is None else self.headers.slice(start, count),
        )


@dataclass(frozen=True, slots=True)
class Run:
    """Records of one batch: `client.idempotent_producer.RecordRun`."""

    columns: Columns
    payload: bytes | memoryview

    @property
    def record_count(self) -> int:
        return len(self.columns)

    def halves(self) -> Sequence[Run]:
        half = len(self.columns) // 2
        parts = (self.columns.slice(0, half), self.columns.slice(half, len(self.columns) - half))
        return [next(runs_of(part, batch_bytes=2**31 - 1)) for part in parts if len(part)]


def runs_of(columns: Columns, *, batch_bytes: int = BATCH_BYTES) -> Iterator[Run]:
    """Runs of about `batch_bytes` at most, unless a single record is longer."""
    count = len(columns)
    if not count:
        return
    lengths = _lengths(columns.value)
    sizes = np.maximum(lengths, 0) + _OVERHEAD_BYTES
    if columns.key is not None:
        sizes += np.maximum(_lengths(columns.key), 0)
    if columns.headers is not None:
        sizes += _lengths(columns.headers)
    firsts = _cuts(sizes, batch_bytes)
    records, ends = _joined(
        columns, np.arange(count) - np.repeat(firsts, np.diff(firsts, append=count))
    )
    payload = memoryview(records)
    for first, last in zip(firsts, np.append(firsts[1:], count), strict=True):
        part = columns.slice(int(first), int(last - first))
        yield Run(part, payload[int(ends[first]) : int(ends[last])])


def encode_headers(column: pa.Array) -> pa.Array:
    """Each record's headers, count first, as they stand in a record."""
    encoded = []
    for entries in column.to_pylist():
        block = bytearray()
        append_varint(block, len(entries or ()))
        for entry in entries or ():
            name = (entry["key"] or "").encode()
            append_varint(block, len(name))
            block += name
            value = entry["value"]
            append_varint(block, -1 if value is None else len(value))
            block += value or b""
        encoded.append(bytes(block))
    return pa.array(encoded, type=pa.binary())


def _cuts(sizes: Int64s, batch_bytes: int) -> Int64s:
    """The first record of each batch."""
    total = np.cumsum(sizes)
    firsts = [0]
    while True:
        before = int(total[firsts[-1] - 1]) if firsts[-1] else 0
        following = int(np.searchsorted(total, before + batch_bytes, side="right"))
        following = max(following, firsts[-1] + 1)
        if following >= len(sizes):
            return np.array(firsts, dtype=np.int64)
        firsts.append(following)


def _lengths(column: pa.Array) -> Int64s:
    """The length of each element, -1 for null."""
    found: Int64s = (
        pc.binary_length(column).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return found


def _joined(columns: Columns, offset_delta: Int64s) -> tuple[pa.Buffer, Int64s]:
    """All records one behind the other, and where each begins (one more for the end)."""
    count = len(columns)
    key_length = np.full(count, -1) if columns.key is None else _lengths(columns.key)
    value_length = _lengths(columns.value)
    header_length = (
        np.ones(count, np.int64) if columns.headers is None else _lengths(columns.headers)
    )
    offset_block = varint_blocks(zigzag(offset_delta))
    key_block = varint_blocks(zigzag(key_length))
    value_block = varint_blocks(zigzag(value_length))
    body = (
        2  # attributes and the timestamp's delta, both zero
        + lengths_of_blocks(offset_block)
        + lengths_of_blocks(key_block)
        + np.maximum(key_length, 0)
        + lengths_of_blocks(value_block)
        + np.maximum(value_length, 0)
        + header_length
    )
    zeros: Block = (np.zeros((count, 2), np.uint8), np.ones((count, 2), np.bool_))
    head = joined_blocks([varint_blocks(zigzag(body)), zeros, offset_block, key_block])
    middle = joined_blocks([value_block])
    tail = pa.scalar(b"\0", pa.binary()) if columns.headers is None else columns.headers
    key = [] if columns.key is None else [columns.key]
    joined = pc.binary_join_element_wise(
        head,
        *key,
        middle,
        columns.value,
        tail,
        pa.scalar(b"", pa.binary()),
        null_handling="replace",
    )
    _, offsets, data = joined.buffers()
    assert offsets is not None
    assert data is not None
    ends = np.frombuffer(memoryview(offsets), dtype=np.int32, count=count + 1).astype(np.int64)
    return data, ends
