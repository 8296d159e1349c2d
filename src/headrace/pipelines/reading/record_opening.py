"""Records as the rows a query asked for: the wanted columns in the wanted order, and what becomes of records that cannot be decoded.

It must not know Spark or the wire: spans in, Arrow batches out, undecodable records beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.pipelines.columns.decoding import DecodeColumn, column_decoder
from headrace.pipelines.options.known_options import OptionError
from headrace.pipelines.options.source_options import OnDecodeError, Opening
from headrace.pipelines.records import arrow_columns
from headrace.pipelines.records.record_spans import Spans
from headrace.schemas.wire_format import KEY_HEADER, VALUE_HEADER

if TYPE_CHECKING:
    from headrace.schemas.columns.codec import PinnedSchema

# In the order in which Spark's Kafka connector has them.
COLUMNS: Final = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": arrow_columns.TIMESTAMP_TYPE,
    "timestampType": pa.int32(),
    "headers": arrow_columns.HEADERS_TYPE,
}


class DecodeFailed(HeadraceError):
    """A record is not what its format says, and onDecodeError=fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecodable:
    """A record that could not be decoded, as it is."""

    partition: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    error: str


@dataclass(frozen=True, slots=True)
class Opened:
    """Rows, and the records that are not among them."""

    rows: pa.RecordBatch
    undecodable: tuple[Undecodable, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns to make, and the schemas that they are read with, where a registry has them."""

    schema: pa.Schema
    pinned: Mapping[str, PinnedSchema] = field(default_factory=dict)


class Opener:
    """Makes rows of columns. Raises OptionError where these ask for what there is not."""

    def __init__(self, columns: SourceColumns, opening: Opening) -> None:
        self._schema = schema = columns.schema
        self._opening = opening
        self._decoders: dict[str, DecodeColumn] = {}
        formats = {"key": opening.key, "value": opening.value}
        for column in schema:
            if column.name in formats:
                self._decoders[column.name] = column_decoder(
                    column, formats[column.name], opening.registry, columns.pinned
                )
            else:
                self._check(column)

    def open(self, spans: Spans, partition: TopicPartition) -> Opened:
        """The rows of these records. Raises DecodeFailed."""
        names = self._schema.names
        key, value = arrow_columns.key_and_value(
            spans, want_key="key" in names, want_value="value" in names
        )
        decoded: dict[str, pa.Array] = {}
        errors: dict[int, str] = {}
        for name, raw, header in (("key", key, KEY_HEADER), ("value", value, VALUE_HEADER)):
            if raw is not None:
                has_registry = self._opening.registry is not None
                found = self._decoders[name](
                    raw, arrow_columns.header_values(spans, header) if has_registry else None
                )
                decoded[name] = found.values
                errors |= {row: f"{name}: {why}" for row, why in found.errors.items()}
        arrays = [
            decoded[name] if name in decoded else _column(name, spans, partition) for name in names
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return self._without(rows, errors, spans, partition) if errors else Opened(rows)

    def _without(
        self,
        rows: pa.RecordBatch,
        errors: Mapping[int, str],
        spans: Spans,
        partition: TopicPartition,
    ) -> Opened:
        match self._opening.on_decode_error:
            case OnDecodeError.NULL:
                return Opened(rows)
            case OnDecodeError.FAIL:
                row = min(errors)
                raise DecodeFailed(
                    f"the record at offset {spans.offset[row]} of {partition} cannot be decoded: {errors[row]}"
                    " (onDecodeError=null, skip or deadLetterTopic go on without it)"
                )
            case OnDecodeError.SKIP:
                return Opened(_without_rows(rows, errors))
            case OnDecodeError.DEAD_LETTER_TOPIC:
                kept = _without_rows(rows, errors)
                return Opened(kept, _undecodable(errors, spans, partition))

    def _check(self, column: pa.Field) -> None:
        name = column.name
        if name == "headers" and not self._opening.include_headers:
            raise OptionError("the column headers needs includeHeaders=true")
        if name not in COLUMNS:
            known = ", ".join(("key", "value", *COLUMNS))
            raise OptionError(f"there is no column '{name}': there are {known}")
        if not column.type.equals(COLUMNS[name]):
            raise OptionError(f"the column {name} has the type {COLUMNS[name]}, not {column.type}")


def _without_rows(rows: pa.RecordBatch, left_out: Iterable[int]) -> pa.RecordBatch:
    keep = np.ones(rows.num_rows, dtype=np.bool_)
    keep[list(left_out)] = False
    return rows.take(pa.array(np.flatnonzero(keep)))


def _column(name: str, spans: Spans, partition: TopicPartition) -> pa.Array:
    match name:
        case "topic":
            return pa.repeat(partition.topic, len(spans))
        case "partition":
            return pa.repeat(pa.scalar(partition.partition, pa.int32()), len(spans))
        case "offset":
            return pa.array(spans.offset)
        case "timestamp":
            return arrow_columns.timestamps(spans)
        case "timestampType":
            return arrow_columns.timestamp_types(spans)
    return arrow_columns.headers(spans)


def _undecodable(
    errors: Mapping[int, str], spans: Spans, partition: TopicPartition
) -> tuple[Undecodable, ...]:
    rows = sorted(errors)
    places = pa.array(rows)
    key, value = arrow_columns.key_and_value(spans, want_key=True, want_value=True)
    assert key is not None
    assert value is not None
    columns = (each.take(places).to_pylist() for each in (key, value, arrow_columns.headers(spans)))
    return tuple(
        Undecodable(
            partition=partition,
            offset=int(spans.offset[row]),
            key=its_key,
            value=its_value,
            headers=tuple((each["key"], each["value"]) for each in some or ()),
            error=errors[row],
        )
        for row, its_key, its_value, some in zip(rows, *columns, strict=True)
    )
