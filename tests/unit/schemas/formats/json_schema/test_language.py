"""JSON Schema: each named difference with a case on both sides, and what is no schema."""

import json
from typing import Any

import pytest

from headrace.schemas.formats.json_schema.language import JsonSchemaFormat
from headrace.schemas.formats.schema_format import InvalidSchema

Schema = Any


def kinds(reader: Schema, writer: Schema) -> set[str]:
    parse = JsonSchemaFormat().parse
    found = parse(json.dumps(reader), {}).can_read(parse(json.dumps(writer), {}))
    return {each.kind for each in found}


def closed(*names: str, **more: Schema) -> Schema:
    return {**open_(*names, **more), "additionalProperties": False}


def open_(*names: str, **more: Schema) -> Schema:
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, **more}


# A difference, the schema that allows more, and the one that allows less.
PAIRS: list[tuple[str, Schema, Schema]] = [
    ("TYPE_CHANGED", {"type": ["string", "null"]}, {"type": "string"}),
    ("TYPE_NARROWED", {"type": "number"}, {"type": "integer"}),
    ("MAX_LENGTH_ADDED", {"type": "string"}, {"type": "string", "maxLength": 3}),
    ("MAX_LENGTH_DECREASED", {"type": "string", "maxLength": 4}, {"type": "string", "maxLength": 3}),
    ("MIN_LENGTH_ADDED", {"type": "string"}, {"type": "string", "minLength": 3}),
    ("MIN_LENGTH_INCREASED", {"type": "string", "minLength": 2}, {"type": "string", "minLength": 3}),
    ("PATTERN_ADDED", {"type": "string"}, {"type": "string", "pattern": "a"}),
    ("MAXIMUM_ADDED", {"type": "number"}, {"type": "number", "maximum": 3}),
    ("MAXIMUM_DECREASED", {"type": "number", "maximum": 4}, {"type": "number", "maximum": 3}),
    ("MINIMUM_ADDED", {"type": "number"}, {"type": "number", "minimum": 3}),
    ("MINIMUM_INCREASED", {"type": "number", "minimum": 2}, {"type": "number", "minimum": 3}),
    ("EXCLUSIVE_MAXIMUM_ADDED", {"type": "number"}, {"type": "number", "exclusiveMaximum": 3}),
    ("EXCLUSIVE_MINIMUM_ADDED", {"type": "number"}, {"type": "number", "exclusiveMinimum": 3}),
    ("MULTIPLE_OF_ADDED", {"type": "number"}, {"type": "number", "multipleOf": 2}),
    ("MULTIPLE_OF_EXPANDED", {"type": "number", "multipleOf": 2}, {"type": "number", "multipleOf": 4}),
    ("ENUM_ARRAY_NARROWED", {"enum": ["a", "b"]}, {"enum": ["a"]}),
    ("MAX_ITEMS_ADDED", {"type": "array"}, {"type": "array", "maxItems": 3}),
    ("MIN_ITEMS_ADDED", {"type": "array"}, {"type": "array", "minItems": 3}),
    ("UNIQUE_ITEMS_ADDED", {"type": "array", "items": {}}, {"type": "array", "items": {}, "uniqueItems": True}),
    ("MAX_PROPERTIES_ADDED", {"type": "object"}, {"type": "object", "maxProperties": 3}),
    ("MIN_PROPERTIES_ADDED", {"type": "object"}, {"type": "object", "minProperties": 3}),
    ("REQUIRED_ATTRIBUTE_ADDED", open_("a"), open_("a", required=["a"])),
    ("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", open_("a"), open_("a", "b")),
    ("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", closed("a", "b"), closed("a")),
    ("ADDITIONAL_PROPERTIES_REMOVED", open_("a"), closed("a")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "wide", "narrow"), PAIRS)
def test_less_is_refused_and_more_is_not(kind: str, wide: Schema, narrow: Schema) -> None:
    assert kind in kinds(narrow, wide)
    assert not kinds(wide, narrow)


def test_types_that_exclude_each_other() -> None:
    assert "TYPE_CHANGED" in kinds({"type": "string"}, {"type": "number"})


def test_references_are_followed() -> None:
    before = {"$ref": "#/definitions/a", "definitions": {"a": {"type": "number"}}}
    after = {"$ref": "#/definitions/a", "definitions": {"a": {"type": "integer"}}}
    assert "TYPE_NARROWED" in kinds(after, before)
    assert not kinds(before, after)


def test_recursion_ends() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert not kinds(tree, tree)


@pytest.mark.parametrize(
    "text", ["", "[]", "7", "{", '{"type": "unknown"}', '{"$ref": "#/definitions/x"}']
)
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        JsonSchemaFormat().parse(text, {})


def test_normalisation_sorts_keys() -> None:
    parsed = JsonSchemaFormat().parse('{"type": "object", "title": "b"}', {})
    assert parsed.canonical() == '{"type":"object","title":"b"}'
    assert parsed.normalized() == '{"title":"b","type":"object"}'
