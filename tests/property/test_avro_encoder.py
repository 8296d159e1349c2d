"""Avro columns written and read again: by our decoder, and by fastavro."""

import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings

from headrace.schemas.columns.avro.decoder import AvroDecoder
from headrace.schemas.columns.avro.derivation import avro_schema_of
from headrace.schemas.columns.avro.encoder import AvroEncoder
from headrace.schemas.columns.avro.types import arrow_type
from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.formats.avro.parser import parse_avro
from tests.property.avro_samples import columns

FEW = settings(max_examples=80, deadline=None)


@FEW
@given(columns())
def test_the_same_bytes_as_fastavro(case: tuple[Any, list[bytes], list[Any]]) -> None:
    schema, rows, shown = case
    type_, _ = parse_avro(json.dumps(schema))
    column = pa.array(shown, arrow_type(type_))
    if type_.kind == "bytes" or None in shown:
        return  # such a value is not in Avro's form, or not there at all
    assert AvroEncoder(type_, column.type).encode(column).to_pylist() == rows
    padded = pa.concat_arrays([column, column]).slice(len(rows))
    assert AvroEncoder(type_, column.type).encode(padded).to_pylist() == rows


@FEW
@given(columns(root="record"))
def test_a_derived_schema_carries_its_columns(case: tuple[Any, list[bytes], list[Any]]) -> None:
    schema, _, shown = case
    column = pa.array(shown, arrow_type(parse_avro(json.dumps(schema))[0]))
    derived, _ = parse_avro(
        json.dumps(avro_schema_of(column.type, "orders-2")), check_defaults=True
    )
    written = AvroEncoder(derived, column.type).encode(column)
    read = AvroDecoder(derived, derived).decode(ByteSpans.of(written))
    assert read.errors == {}
    assert read.values.equals(column)
