"""Avro schemas in order: attributes sorted, logical types first, defaults as values of their types."""

import json
from typing import Any

from headrace.schemas.formats.avro.normalization import normalized_type
from headrace.schemas.formats.avro.parser import parse_avro
from headrace.schemas.formats.avro.printer import schema_text


def normalized(schema: Any) -> str:
    root, _ = parse_avro(json.dumps(schema), ())
    before = schema_text(root)
    text = schema_text(normalized_type(root))
    assert schema_text(root) == before, "the schema itself is not changed"
    return text


def test_attributes_are_sorted() -> None:
    assert normalized({"type": "int", "b": {"d": 1, "c": 2}, "a": 1}) == (
        '{"type":"int","a":1,"b":{"c":2,"d":1}}'
    )


def test_a_logical_type_stands_first_where_it_is_one() -> None:
    decimal = {"a": 1, "scale": 1, "precision": 3, "logicalType": "decimal"}
    assert normalized({"type": "bytes", **decimal}) == (
        '{"type":"bytes","logicalType":"decimal","precision":3,"scale":1,"a":1}'
    )
    assert normalized({"type": "int", "logicalType": "uuid", "a": 1}) == (
        '{"type":"int","a":1,"logicalType":"uuid"}'
    )


def test_defaults_are_values_of_their_types() -> None:
    fields = [
        {"name": "a", "type": "double", "default": 1},
        {"name": "b", "type": {"type": "array", "items": "float"}, "default": [1]},
        {"name": "c", "type": {"type": "map", "values": "int"}, "default": {"y": 1, "x": 2}},
    ]
    text = normalized({"type": "record", "name": "R", "fields": fields})
    for expected in ('"default":1.0', '"default":[1.0]', '"default":{"x":2,"y":1}'):
        assert expected in text


def test_a_recursive_schema_ends() -> None:
    fields = [{"name": "next", "type": ["null", "R"], "b": 1, "a": 1}]
    assert '"a":1,"b":1' in normalized({"type": "record", "name": "R", "fields": fields})
