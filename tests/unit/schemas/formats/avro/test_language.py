"""Avro: what is a schema, its canonical text, and each rule of schema resolution from both sides."""

import json
from typing import Any

import pytest

from headrace.schemas.formats.avro.language import AvroFormat
from headrace.schemas.formats.schema_format import InvalidSchema


def text_of(schema: Any) -> str:
    return schema if isinstance(schema, str) and schema[:1] in '{["' else json.dumps(schema)


def kinds(reader: Any, writer: Any) -> set[str]:
    parse = AvroFormat().parse
    found = parse(text_of(reader), {}).can_read(parse(text_of(writer), {}))
    return {each.kind for each in found}


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "int"}
B_DEFAULT = {**B, "default": 0}
AB, ABC = (
    {"type": "enum", "name": "E", "symbols": list("AB")},
    {"type": "enum", "name": "E", "symbols": list("ABC")},
)
FOUR, EIGHT = (
    {"type": "fixed", "name": "F", "size": 4},
    {"type": "fixed", "name": "F", "size": 8},
)


@pytest.mark.parametrize(
    ("kind", "reader", "writer"),
    [
        ("TYPE_MISMATCH", "int", "long"),
        ("READER_FIELD_MISSING_DEFAULT_VALUE", record(A, B), record(A)),
        ("MISSING_ENUM_SYMBOLS", AB, ABC),
        ("FIXED_SIZE_MISMATCH", FOUR, EIGHT),
        ("MISSING_UNION_BRANCH", ["null", "int"], ["null", "int", "string"]),
        ("NAME_MISMATCH", record(A), record(A, name="S")),
    ],
)
def test_a_rule_is_broken_in_one_direction(kind: str, reader: Any, writer: Any) -> None:
    assert kind in kinds(reader, writer)


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("long", "int"),
        ("double", "float"),
        ("bytes", "string"),
        (record(A, B_DEFAULT), record(A)),
        (record(A), record(A, B)),
        (record({**B, "aliases": ["a"]}), record(A)),
        (ABC, AB),
        ({**AB, "default": "A"}, ABC),
        (FOUR, FOUR),
        (["null", "int", "string"], ["null", "int"]),
        (["null", "long"], "int"),
        (record(A, name="S", aliases=["R"]), record(A)),
    ],
)
def test_a_rule_is_kept(reader: Any, writer: Any) -> None:
    assert not kinds(reader, writer)


@pytest.mark.parametrize(
    "schema",
    [
        "unknown",
        {"type": "record", "name": "R"},
        {"type": "record", "name": "1R", "fields": []},
        record(A, A),
        record({**A, "default": "x"}),
        {**AB, "default": "C"},
        {"type": "fixed", "name": "F", "size": -1},
        ["int", "int"],
        [["int"]],
        {"type": "array"},
    ],
)
def test_what_is_no_schema(schema: Any) -> None:
    with pytest.raises(InvalidSchema):
        AvroFormat().parse(text_of(schema), {})


def test_the_canonical_text_is_javas() -> None:
    written = '{ "name": "R", "namespace": "n", "doc": "d", "type": "record", "x": 1, "fields": [ {"type": "int", "name": "a"} ] }'
    assert AvroFormat().parse(written, {}).canonical() == (
        '{"type":"record","name":"R","namespace":"n","doc":"d","fields":[{"name":"a","type":"int"}],"x":1}'
    )


def test_references_are_known_by_name() -> None:
    schema = AvroFormat().parse('{"type":"array","items":"E"}', {"E": json.dumps(AB)})
    assert schema.canonical() == '{"type":"array","items":"E"}'


def test_nesting_has_a_limit() -> None:
    deep = '{"type":"array","items":' * 500 + '"int"' + "}" * 500
    with pytest.raises(InvalidSchema):
        AvroFormat().parse(deep, {})
