"""Takes columns of serialised keys or values apart: which schema each row refers to, and where its payload lies. Pure.

The same wire format as `wire_format`, over all rows at once. A record's header beats what the value begins with, because a value
in header transport begins with anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.schemas.columns.byte_columns import ByteSpans, Int64s
from headrace.schemas.wire_format import NotFramed, SchemaReference, parse

_ID_BYTES: Final = 5
_GUID_BYTES: Final = 17
_HIGHEST_ID: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class SameSchema:
    """Rows that refer to one schema in one way."""

    reference: SchemaReference
    rows: Int64s
    payload: ByteSpans
    header_rest: (
        bytes | None
    )  # what followed the reference in the rows' header; None where there was no header


@dataclass(frozen=True, slots=True, eq=False)
class TakenApart:
    """Rows by schema, and why the others refer to none."""

    groups: list[SameSchema]
    errors: dict[int, str]


def take_apart(values: pa.Array, headers: pa.Array | None) -> TakenApart:
    """`values` is a binary array without nulls; `headers` has the value of each row's schema header, null where it has none."""
    spans = ByteSpans.of(values)
    found = TakenApart([], {})
    framed = np.arange(len(spans))
    if headers is not None and headers.null_count < len(headers):
        has_header = headers.is_valid().to_numpy(zero_copy_only=False)
        _by_header(np.flatnonzero(has_header), headers, spans, found)
        framed = np.flatnonzero(~has_header)
    _by_prefix(framed, spans, found)
    return found


def _by_header(rows: Int64s, headers: pa.Array, spans: ByteSpans, found: TakenApart) -> None:
    encoded = pc.dictionary_encode(headers.take(pa.array(rows)))
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    texts = encoded.dictionary.to_pylist()
    for code, places in _by_number(codes):
        header, of_header = texts[code], rows[places]
        try:
            framed = parse(b"", header)
        except NotFramed as error:
            found.errors.update((int(row), f"schema header: {error}") for row in of_header)
            continue
        found.groups.append(
            SameSchema(framed.schema, of_header, spans.take(of_header), framed.header_rest)
        )


def _by_prefix(rows: Int64s, spans: ByteSpans, found: TakenApart) -> None:
    start, length = spans.start[rows], spans.end[rows] - spans.start[rows]
    is_id = (spans.buffer.data[start] == 0) & (length >= _ID_BYTES)
    ids = spans.buffer.numbers(">u4", start + 1).astype(np.int64)
    is_id &= ids <= _HIGHEST_ID
    with_id = rows[is_id]
    for number, places in _by_number(ids[is_id]):
        of_id = with_id[places]
        found.groups.append(SameSchema(number, of_id, spans.take(of_id).behind(_ID_BYTES), None))
    by_guid: dict[SchemaReference, list[int]] = {}
    for row in rows[
        ~is_id
    ].tolist():  # GUIDs within values, which no known writer makes, and damaged rows
        try:
            by_guid.setdefault(parse(spans.piece(row)).schema, []).append(row)
        except NotFramed as error:
            found.errors[row] = str(error)
    for guid, some in by_guid.items():
        of_guid = np.array(some, dtype=np.int64)
        payload = spans.take(of_guid).behind(_GUID_BYTES)
        found.groups.append(SameSchema(guid, of_guid, payload, None))


def _by_number(numbers: Int64s) -> list[tuple[int, Int64s]]:
    """The numbers that occur, each with its places in rising order. One sort, however many numbers there are."""
    if not numbers.size:
        return []
    order = np.argsort(numbers, kind="stable").astype(np.int64)
    found, first = np.unique(numbers[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, first[1:]), strict=True))
