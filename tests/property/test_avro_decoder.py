"""Avro columns: what fastavro writes is read, damaged values cost themselves only, and both ways of reading agree."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.columns.avro.decoder import AvroDecoder
from headrace.schemas.columns.avro.resolution import resolve
from headrace.schemas.columns.avro.types import arrow_type
from headrace.schemas.columns.avro.values import read_value
from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.columns.decoded import Undecodable
from headrace.schemas.formats.avro.parser import parse_avro
from tests.property.avro_samples import Schemas, columns, encoded, without_logical_types

FEW = settings(max_examples=80, deadline=None)


@FEW
@given(columns())
def test_what_fastavro_writes_is_read(case: tuple[Any, list[bytes], list[Any]]) -> None:
    schema, rows, shown = case
    type_, _ = parse_avro(json.dumps(schema))
    decoded = AvroDecoder(type_, type_).decode(ByteSpans.of(pa.array(rows, pa.binary())))
    assert decoded.errors == {}
    wanted = pa.array(shown, arrow_type(type_))
    assert decoded.values.equals(wanted), (decoded.values.to_pylist(), wanted.to_pylist())


@FEW
@given(columns(), st.data())
def test_damaged_rows_cost_themselves_only(
    case: tuple[Any, list[bytes], list[Any]], data: st.DataObject
) -> None:
    schema, rows, _ = case
    type_, _ = parse_avro(json.dumps(schema))
    rows = [data.draw(damaged(row)) for row in rows]
    plan = resolve(type_, type_)
    wanted: list[Any] = []
    errors = {}
    for number, row in enumerate(rows):
        try:
            wanted.append(read_value(plan, row))
        except Undecodable as error:
            wanted.append(None)
            errors[number] = str(error)
    decoded = AvroDecoder(type_, type_).decode(ByteSpans.of(pa.array(rows, pa.binary())))
    assert decoded.errors == errors
    assert same(decoded.values, pa.array(wanted, arrow_type(type_)))


def same(one: pa.Array, other: pa.Array) -> bool:
    """Equal, and NaN is NaN."""
    return repr(one.to_pylist()) == repr(other.to_pylist())


@st.composite
def damaged(draw: Any, row: bytes) -> bytes:
    """A row, perhaps cut, lengthened or with a byte changed."""
    if not row or draw(st.booleans()):
        return row
    at = draw(st.integers(0, len(row) - 1))
    byte = draw(st.sampled_from([0x00, 0x01, 0x02, 0x03, 0x7F, 0x80, 0xFF]))
    return draw(  # type: ignore[no-any-return]
        st.sampled_from([row[:at], row[:at] + bytes([byte]) + row[at + 1 :], row + bytes([byte])])
    )


@st.composite
def evolved(draw: Any) -> tuple[Any, Any, list[bytes]]:
    """A writer's record, a reader's record that it can be read as, and encoded rows."""
    writer = Schemas(draw).record(2)
    fields = []
    for each in draw(st.permutations(writer.schema["fields"])):
        match draw(st.sampled_from(["keep", "keep", "drop", "rename", "promote", "nullable"])):
            case "keep":
                fields.append(each)
            case "rename":
                fields.append({**each, "name": f"new_{each['name']}", "aliases": [each["name"]]})
            case "promote":
                fields.append({**each, "type": _promoted(each["type"])})
            case "nullable":
                is_union = isinstance(each["type"], list)
                fields.append(
                    {**each, "type": each["type"] if is_union else ["null", each["type"]]}
                )
    if draw(st.booleans()):
        added = draw(
            st.sampled_from(
                [
                    ("int", 7),
                    ("string", "x"),
                    (["null", "long"], None),
                    ({"type": "array", "items": "int"}, [1, 2]),
                    ({"type": "map", "values": "string"}, {"a": "b"}),
                    ("double", 1.5),
                ]
            )
        )
        fields.insert(0, {"name": "added", "type": added[0], "default": added[1]})
    reader = {**writer.schema, "fields": fields}
    plain = fastavro.parse_schema(without_logical_types(writer.schema))
    rows = draw(st.lists(writer.values, max_size=6))
    return writer.schema, reader, [encoded(plain, each) for each, _ in rows]


def _promoted(type_: Any) -> Any:
    return {"int": "double", "long": "float", "float": "double", "string": "bytes"}.get(
        type_ if isinstance(type_, str) else "", type_
    )


@FEW
@given(evolved())
def test_resolution_as_fastavro_does_it(case: tuple[Any, Any, list[bytes]]) -> None:
    writer, reader, rows = (without_logical_types(case[0]), without_logical_types(case[1]), case[2])
    reading = parse_avro(json.dumps(reader))[0]
    decoder = AvroDecoder(parse_avro(json.dumps(writer))[0], reading)
    decoded = decoder.decode(ByteSpans.of(pa.array(rows, pa.binary())))
    assert decoded.errors == {}
    parsed = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    theirs = [fastavro.schemaless_reader(io.BytesIO(row), *parsed) for row in rows]
    shown = [_shown(each, reader) for each in theirs]
    assert same(decoded.values, pa.array(shown, arrow_type(reading)))


def _shown(value: Any, schema: Any) -> Any:
    """fastavro's value in the form of the column."""
    if isinstance(schema, list):
        if value is None:
            return None
        if len(schema) == 2:
            return _shown(value, next(each for each in schema if each != "null"))
        kinds = {str: 0, bool: 1, float: 2, list: 3}
        member = [each for each in schema if each != "null"][kinds[type(value)]]
        return {f"member{kinds[type(value)]}": _shown(value, member)}
    if not isinstance(schema, dict):
        return value.encode() if schema == "bytes" and isinstance(value, str) else value
    match schema["type"]:
        case "record":
            return {
                each["name"]: _shown(value[each["name"]], each["type"]) for each in schema["fields"]
            }
        case "array":
            return [_shown(each, schema["items"]) for each in value]
        case "map":
            return [(name, _shown(each, schema["values"])) for name, each in value.items()]
    return value
