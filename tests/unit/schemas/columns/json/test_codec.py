"""JSON Schemas as columns: types, references, what becomes text, and rows that a schema does not allow."""

import json
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.columns.codec import PinnedSchema
from headrace.schemas.columns.decoded import Unencodable
from headrace.schemas.columns.json.codec import JsonSchemaCodec
from headrace.schemas.formats.schema_format import InvalidSchema
from headrace.schemas.registry_client import JSON_SCHEMA, NamedSchema, Schema

CODEC = JsonSchemaCodec()


def pin(document: Any, **references: Any) -> PinnedSchema:
    named = [
        NamedSchema(name.replace("_", "."), Schema(json.dumps(each), JSON_SCHEMA))
        for name, each in references.items()
    ]
    return CODEC.pin(Schema(json.dumps(document), JSON_SCHEMA), named)


def column(**properties: Any) -> pa.DataType:
    return CODEC.column_type(pin({"type": "object", "properties": properties}))


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "int64"),
        ({"type": "integer", "connect.type": "int16"}, "int16"),
        ({"type": "number"}, "double"),
        ({"type": "number", "connect.type": "float32"}, "float"),
        ({"type": "boolean"}, "bool"),
        ({"type": ["null", "boolean"]}, "bool"),
        ({"type": ["integer", "number"]}, "double"),
        ({"type": ["integer", "string"]}, "string"),
        ({"type": "string", "format": "date-time"}, "timestamp[us, tz=UTC]"),
        ({"type": "string", "format": "date"}, "date32[day]"),
        ({"type": "string", "format": "email"}, "string"),
        ({"type": "string", "contentEncoding": "base64"}, "binary"),
        ({"type": "array", "items": {"type": "integer"}}, "list<element: int64>"),
        ({"items": {"type": "boolean"}}, "list<element: bool>"),
        ({"type": "array"}, "list<element: string>"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "map<string, double>"),
        ({"type": "object"}, "string"),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, "int64"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "double"),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "string"),
        ({"enum": ["a", "b", None]}, "string"),
        ({"enum": [1, 2]}, "int64"),
        ({"const": True}, "bool"),
        (True, "string"),
        ({}, "string"),
        ({"allOf": [{"properties": {"a": {"type": "integer"}}}], "properties": {"b": {"type": "string"}}},
         "struct<a: int64, b: string>"),
    ],
)  # fmt: skip
def test_the_types_of_columns(schema: Any, wanted: str) -> None:
    found = column(x=schema).field(0).type
    assert str(found).replace(" ('element')", "") == wanted


def test_references_are_followed_and_recursion_is_text() -> None:
    schema = pin(
        {
            "type": "object",
            "properties": {
                "who": {"$ref": "person.json"},
                "tree": {"$ref": "#/definitions/tree"},
            },
            "definitions": {
                "tree": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/definitions/tree"}}}
            },
        },
        person_json={"type": "object", "properties": {"name": {"type": "string"}}},
    )  # fmt: skip
    assert str(CODEC.column_type(schema)) == (
        "struct<who: struct<name: string>, tree: struct<v: int64, next: string>>"
    )
    values = [b'{"who":{"name":"x"},"tree":{"v":1,"next":{"v":2}}}', b"[]"]
    decoder = CODEC.decoder(schema, schema, CODEC.column_type(schema))
    found = decoder.decode(ByteSpans.of(pa.array(values, pa.binary())))
    assert found.values.to_pylist() == [
        {"who": {"name": "x"}, "tree": {"v": 1, "next": '{"v":2}'}},
        None,
    ]
    assert found.errors == {1: "not the wanted JSON: not an object"}


def test_values_need_not_be_objects() -> None:
    schema = pin({"type": "integer"})
    decoder = CODEC.decoder(schema, schema, CODEC.column_type(schema))
    found = decoder.decode(ByteSpans.of(pa.array([b"7", b'"x"', b"", b"-1"], pa.binary())))
    assert found.values.to_pylist() == [7, None, None, -1]
    assert sorted(found.errors) == [1, 2]
    numbers = pa.array([7, None], pa.int64())
    assert CODEC.encoder(schema, pa.int64()).encode(numbers).to_pylist() == [b"7", None]


COLUMN = pa.struct(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("data", pa.binary()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("counts", pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int32()))),
        ("inner", pa.struct([("x", pa.float32())])),
    ]
)  # fmt: skip


def test_a_derived_schema_carries_its_columns() -> None:
    rows = [
        {"id": 1, "name": "é", "data": b"\xff", "at": 1_500_000, "day": 3, "tags": ["a", None],
         "counts": [("k", 1), ("n", None)], "inner": {"x": 0.5}},
        {"id": 2, "name": None, "data": None, "at": None, "day": None, "tags": None, "counts": None, "inner": None},
    ]  # fmt: skip
    values = pa.array(rows, COLUMN)
    schema = CODEC.pin(CODEC.derived(COLUMN, "orders"))
    assert CODEC.record_name(schema) == "orders"
    written = CODEC.encoder(schema, COLUMN).encode(values)
    assert written[1].as_py() == b'{"id":2}'
    assert json.loads(written[0].as_py()) == {
        "id": 1,
        "name": "é",
        "data": "/w==",
        "at": "1970-01-01T00:00:01.500000Z",
        "day": "1970-01-04",
        "tags": ["a", None],
        "counts": {"k": 1, "n": None},
        "inner": {"x": 0.5},
    }
    read = CODEC.decoder(schema, schema, CODEC.column_type(schema)).decode(ByteSpans.of(written))
    assert read.errors == {}
    assert read.values.to_pylist() == values.to_pylist()


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"type": "object", "required": ["a"]}, {"a": None}, '"a" is a required property'),
        ({"type": "object", "properties": {"a": {"minimum": 5}}}, {"a": 3}, r"value\.a: 3 is less than"),
        ({"type": "object", "properties": {"a": {"$ref": "b.json"}}}, {"a": 3}, r"value\.a: 3 is not of type"),
    ],
)  # fmt: skip
def test_rows_that_the_schema_does_not_allow(schema: Any, value: Any, words: str) -> None:
    pytest.importorskip("jsonschema_rs")
    values = pa.array([value], pa.struct([("a", pa.int64())]))
    encoder = CODEC.encoder(pin(schema, b_json={"type": "string"}), values.type)
    with pytest.raises(Unencodable, match=words):
        encoder.encode(values)


def test_what_is_no_schema_or_no_column_is_told() -> None:
    with pytest.raises(InvalidSchema, match="not JSON"):
        CODEC.pin(Schema("{", JSON_SCHEMA))
    anything = pin({})
    with pytest.raises(InvalidSchema, match="which JSON cannot be read as"):
        CODEC.decoder(anything, anything, pa.struct([("a", pa.duration("us"))]))
    with pytest.raises(InvalidSchema, match="which JSON has no form for"):
        CODEC.encoder(anything, pa.struct([("a", pa.duration("us"))]))
    with pytest.raises(InvalidSchema, match="which JSON has no form for"):
        CODEC.derived(pa.duration("us"), "x")


def read(wanted: pa.DataType, *texts: str) -> tuple[list[Any], dict[int, str]]:
    schema = pin({"type": "object"})
    payload = ByteSpans.of(pa.array([each.encode() for each in texts], pa.binary()))
    found = CODEC.decoder(schema, schema, wanted).decode(payload)
    return found.values.to_pylist(), found.errors


def test_a_number_whose_fraction_is_zero_is_an_integer() -> None:
    wanted = pa.struct([("i", pa.int64())])
    numbers = {
        "1.0": 1,
        "-2.000": -2,
        "1e2": 100,
        "1.5E1": 15,
        "120e-1": 12,
        "-0.0": 0,
        "0e999999999": 0,
        "9223372036854775807.0": 2**63 - 1,
    }
    # Among many plain ones, too, which Arrow reads.
    texts = [f'{{"i":{each}}}' for each in ("7", *numbers, *["8"] * 40)]
    values, errors = read(wanted, *texts)
    assert errors == {}
    assert [each["i"] for each in values] == [7, *numbers.values(), *[8] * 40]


@pytest.mark.parametrize(
    "number", ["1.5", "1e-1", "1e19", "9223372036854775808.0", "1e999999999", "1e-999999999", "NaN"]
)
def test_other_numbers_are_no_integers(number: str) -> None:
    values, errors = read(pa.struct([("i", pa.int64())]), f'{{"i":{number}}}')
    assert values == [None]
    assert "is not a whole number of the type int64" in errors[0]


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    wanted = pa.struct([("s", pa.string()), ("m", pa.map_(pa.string(), pa.int64()))])
    values, errors = read(
        wanted,
        r'{"s":"\ud83d\ude00"}',
        r'{"s":"\ud800"}',
        r'{"s":"é\udc00"}',
        r'{"m":{"\ud800":1}}',
        r'{"other":"\ud800"}',
    )
    assert sorted(errors) == [1, 2, 3]
    assert "half of a surrogate pair" in errors[1]
    assert [each and each["s"] for each in values] == ["😀", None, None, None, None]
    only_text = pa.struct([("s", pa.string())])
    assert list(read(only_text, *[r'{"s":"x"}'] * 30, r'{"s":"\ud800"}')[1]) == [30]
