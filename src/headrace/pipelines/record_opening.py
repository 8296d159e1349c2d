"""Records as the rows a query asked for: the wanted columns in the wanted order, and what becomes of records that cannot be decoded.

It must not know Spark or the wire: spans in, Arrow batches out, undecodable records beside them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.pipelines import arrow_columns
from headrace.pipelines.options import OptionError
from headrace.pipelines.record_spans import Spans
from headrace.pipelines.source_options import OnDecodeError, Opening
from headrace.pipelines.value_formats import check_type, decode_column

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


class Opener:
    """Makes rows of a schema. Raises OptionError where the schema asks for what there is not."""

    def __init__(self, schema: pa.Schema, opening: Opening) -> None:
        self._schema = schema
        self._opening = opening
        self._formats = {"key": opening.key_format, "value": opening.value_format}
        for column in schema:
            self._check(column)

    def open(self, spans: Spans, partition: TopicPartition) -> Opened:
        """The rows of these records. Raises DecodeFailed."""
        names = self._schema.names
        key, value = arrow_columns.key_and_value(
            spans, want_key="key" in names, want_value="value" in names
        )
        decoded: dict[str, pa.Array] = {}
        errors: dict[int, str] = {}
        for name, raw in (("key", key), ("value", value)):
            if raw is not None:
                found = decode_column(raw, self._schema.field(name).type)
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
        if name in self._formats:
            self._check_format(column, self._formats[name])
            return
        if name == "headers" and not self._opening.include_headers:
            raise OptionError("the column headers needs includeHeaders=true")
        if name not in COLUMNS:
            known = ", ".join(("key", "value", *COLUMNS))
            raise OptionError(f"there is no column '{name}': there are {known}")
        if not column.type.equals(COLUMNS[name]):
            raise OptionError(f"the column {name} has the type {COLUMNS[name]}, not {column.type}")

    def _check_format(self, column: pa.Field, its_format: str) -> None:
        import pyarrow.types as pt

        fits = {"binary": pt.is_binary, "string": pt.is_string, "json": pt.is_struct}[its_format]
        if not fits(column.type):
            kind = {"binary": "binary", "string": "string", "json": "a struct"}[its_format]
            name = column.name
            raise OptionError(
                f"the column {name} is {kind} with {name}Format={its_format}, not {column.type}"
            )
        if its_format == "json":
            check_type(column, column.name)


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
