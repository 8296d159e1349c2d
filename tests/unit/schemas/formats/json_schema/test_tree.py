"""JSON schemas as nodes of one kind each."""

from typing import Any

import pytest

from headrace.schemas.formats.json_schema.tree import Node, Tree

MODERN = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}


def root(schema: Any) -> Node:
    return Tree(schema, {}).root


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (True, "true"),
        (False, "false"),
        ({}, "empty"),
        ({"type": "integer"}, "number"),
        ({"maxLength": 1}, "string"),
        ({"minimum": 1}, "number"),
        ({"properties": {}}, "object"),
        ({"items": {}}, "array"),
        ({"enum": [1]}, "enum"),
        ({"const": 1}, "const"),
        ({**DRAFT_4, "const": 1}, "empty"),
        ({"not": {}}, "not"),
        ({"if": {}}, "conditional"),
        ({"type": ["string", "null"]}, "combined"),
        ({"oneOf": [{}]}, "combined"),
        ({"$ref": "#/x", "type": "string"}, "reference"),
        ({"format": "date"}, "string"),
        ({**MODERN, "format": "date"}, "empty"),
    ],
)
def test_the_kind_of_a_schema(schema: Any, kind: str) -> None:
    assert root(schema).kind == kind


def test_keywords_of_several_kinds_must_all_be_fulfilled() -> None:
    node = root({"type": "string", "minimum": 3, "enum": ["a"]})
    assert (node.kind, node.criterion) == ("combined", "allOf")
    assert [each.kind for each in node.parts] == ["enum", "string", "number"]


def test_references_are_followed_when_they_are_needed() -> None:
    node = root({"properties": {"next": {"$ref": "#"}}})
    assert node.properties["next"].kind == "reference"
    assert node.properties["next"].resolved() is node


def test_a_circle_of_references_is_no_schema() -> None:
    node = root({"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#"}}})
    assert node.resolved().kind == "circle"


def test_items_of_both_drafts() -> None:
    earlier = root({"items": [{}, {}], "additionalItems": False})
    modern = root({**MODERN, "prefixItems": [{}, {}], "items": False})
    for node in (earlier, modern):
        assert (len(node.items), node.allows_additional) == (2, False)


def test_what_the_node_of_an_object_knows() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "additionalProperties": {"type": "string"},
        "dependencies": {"a": ["b"], "c": {"maxProperties": 1}},
        "maxProperties": 3,
        "default": {},
    }
    node = root(schema)
    assert node.required == {"a"}
    assert node.additional is not None
    assert node.additional.kind == "string"
    assert node.property_dependencies == {"a": {"b"}}
    assert node.schema_dependencies["c"].limits == {"maxProperties": 1}
    assert (node.limits, node.has_default) == ({"maxProperties": 3}, True)
