"""Avro's JSON encoding: examples of the specification, what does not fit, hostile bytes."""

import json
from typing import Any

import pytest

from headrace.rest.payloads.avro_json import AvroCodec
from headrace.rest.payloads.schema_codec import NotOfSchema, UnusableSchema
from headrace.schemas.wire_format import Framed


def codec(schema: Any, *references: Any) -> AvroCodec:
    return AvroCodec(json.dumps(schema), map(json.dumps, references))


def written(schema: Any, value: Any) -> bytes:
    return codec(schema).encode(json.dumps(value).encode())


def read(schema: Any, payload: bytes) -> Any:
    return codec(schema).decode(Framed(1, payload))


RECORD = {
    "type": "record",
    "name": "R",
    "namespace": "n",
    "fields": [
        {"name": "b", "type": "bytes"},
        {"name": "u", "type": ["null", "string", {"type": "enum", "name": "E", "symbols": ["A"]}]},
        {"name": "r", "type": ["null", "R"], "default": None},
        {"name": "m", "type": {"type": "map", "values": ["int", "n.E"]}},
        {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}},
    ],
}


def a_record(**changed: Any) -> dict[str, Any]:
    return {
        "b": "\u00ff",
        "u": {"n.E": "A"},
        "r": None,
        "m": {"k": {"int": 1}},
        "f": "ab",
        **changed,
    }


def test_unions_name_their_branch_and_bytes_are_characters() -> None:
    value = a_record(r={"n.R": a_record(u=None, m={"e": {"n.E": "A"}})})
    payload = written(RECORD, value)
    assert payload.startswith(b"\x02\xff\x04\x00\x02")
    assert read(RECORD, payload) == value


def test_the_examples_of_the_specification() -> None:
    union = {
        "type": "record",
        "name": "O",
        "fields": [{"name": "v", "type": ["null", "string", "O"]}],
    }
    assert written(union, {"v": {"string": "a"}}) == b"\x02\x02a"
    assert written(union, {"v": None}) == b"\x00"
    assert written("long", 64) == b"\x80\x01"
    assert written("string", "foo") == b"\x06foo"


def test_at_the_root_the_branch_of_a_union_is_written_but_not_shown() -> None:
    assert written(["null", "string"], {"string": "x"}) == b"\x02\x02x"
    assert read(["null", "string"], b"\x02\x02x") == "x"
    assert read(["null", "string"], b"\x00") is None


def test_logical_types_are_what_they_are_stored_as() -> None:
    date = {"type": "int", "logicalType": "date"}
    assert written(date, 19000) == b"\xf0\xa8\x02"
    assert read(date, b"\xf0\xa8\x02") == 19000
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    assert read(decimal, written(decimal, "\u0001\u0002")) == "\u0001\u0002"


@pytest.mark.parametrize("number", [0.1, 1.5, -3.4028234663852886e38, 1e-45, 16777216.0])
def test_a_float_is_shown_as_short_as_it_can_be(number: float) -> None:
    shown = read("float", written("float", number))
    assert written("float", shown) == written("float", number)
    if number == 0.1:
        assert shown == 0.1


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_know_are_texts(name: str) -> None:
    for kind in ("float", "double"):
        assert read(kind, written(kind, name)) == name


def test_int_beside_long_is_named_by_its_size() -> None:
    schema = {"type": "array", "items": ["int", "long"]}
    assert read(schema, written(schema, [{"int": 1}, {"long": 2**40}])) == [
        {"int": 1},
        {"long": 2**40},
    ]


def test_types_of_references_are_known() -> None:
    other = {"type": "record", "name": "a.Other", "fields": [{"name": "x", "type": "int"}]}
    schema = {"type": "record", "name": "M", "fields": [{"name": "o", "type": "a.Other"}]}
    used = codec(schema, other)
    assert used.record_name == "M"
    assert used.decode(Framed(1, used.encode(b'{"o":{"x":5}}'))) == {"o": {"x": 5}}


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (RECORD, {"b": ""}, "Expected field name not found: u"),
        (RECORD, a_record(zzz=1), "unknown field zzz"),
        (RECORD, a_record(u="x"), "u: a value of a union is written as"),
        (RECORD, a_record(u={"int": 1}), "unknown union branch int"),
        (RECORD, a_record(u={"n.E": "B"}), "u: expected a symbol of n.E"),
        (RECORD, a_record(f="abc"), "expected 2 bytes, got 3"),
        (RECORD, a_record(b="\u0100"), "bytes, as characters"),
        (RECORD, [], "expected a record"),
        ("int", 2**31, "a number of type int"),
        ("int", 1.5, "a number of type int"),
        ("int", True, "a number of type int"),
        ("long", 2**63, "a number of type long"),
        ("double", "1", "expected a number"),
        ("boolean", 0, "expected a boolean"),
        ("string", 1, "expected a string"),
        ("null", 0, "expected null"),
        ({"type": "array", "items": "int"}, {}, "expected an array"),
        ({"type": "map", "values": "int"}, [], "expected a map"),
    ],
)
def test_what_does_not_fit_is_refused(schema: Any, value: Any, why: str) -> None:
    with pytest.raises(NotOfSchema, match=why):
        written(schema, value)


@pytest.mark.parametrize("payload", [b"", b"\x02", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
def test_bytes_that_are_not_of_the_schema_are_refused(payload: bytes) -> None:
    with pytest.raises(NotOfSchema, match="do not fit their Avro schema"):
        read(RECORD, payload)


def test_bytes_nested_without_end_are_refused() -> None:
    schema = {"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}
    assert read(schema, b"\x02\x02\x00") == {"n": {"L": {"n": {"L": {"n": None}}}}}
    with pytest.raises(NotOfSchema, match="Recursion"):
        read(schema, b"\x02" * 1_000_000 + b"\x00")


def test_few_bytes_cannot_mean_a_billion_items() -> None:
    schema = {"type": "array", "items": "null"}
    assert written(schema, [None]) == b"\x02\x00"
    with pytest.raises(NotOfSchema, match="no bytes"):
        read(schema, b"\x80\xa8\xd6\xb9\x07\x00")


@pytest.mark.parametrize("text", ["", "{}", '{"type":"record"}', '"unknown"', "[" * 100_000])
def test_a_text_that_is_no_schema(text: str) -> None:
    with pytest.raises(UnusableSchema):
        AvroCodec(text)
