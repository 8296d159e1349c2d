"""Which JSON documents are schemas."""

from decimal import Decimal
from typing import Any

import pytest

from headrace.schemas.formats.json_schema.references import Documents
from headrace.schemas.formats.json_schema.structure import Structure, is_pattern, matches
from headrace.schemas.formats.schema_format import InvalidSchema


def check(schema: Any, *, is_modern: bool = False, is_draft_4: bool = False) -> None:
    Structure(Documents(schema, {}), is_modern=is_modern, is_draft_4=is_draft_4).check()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "unknown"},
        {"type": ["string", 7]},
        {"$ref": 7},
        {"$ref": "#/none"},
        {"maxLength": "5"},
        {"maxLength": Decimal("5.5")},
        {"maximum": True},
        {"multipleOf": 0},
        {"required": "a"},
        {"enum": "a"},
        {"pattern": "("},
        {"patternProperties": {"(": {}}},
        {"properties": []},
        {"properties": {"a": 7}},
        {"items": 7},
        {"items": [7]},
        {"allOf": {}},
        {"not": 7},
        {"dependencies": []},
        {"dependencies": {"a": 7}},
        {"properties": {"a": {"items": {"anyOf": [{"type": "unknown"}]}}}},
    ],
)
def test_what_is_no_schema(schema: Any) -> None:
    with pytest.raises(InvalidSchema):
        check(schema)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"minLength": -1, "required": []},
        {"$ref": "#/definitions/a", "definitions": {"a": {}}, "type": "ignored beside a reference"},
        {"$ref": "http://json-schema.org/draft-07/schema#"},
        {"dependencies": {"a": ["b"], "c": {}}},
        {"properties": {"a": {"$ref": "#"}}},
    ],
)
def test_what_is_a_schema(schema: Any) -> None:
    check(schema)


def test_drafts_have_keywords_of_their_own() -> None:
    check({"maximum": 3, "exclusiveMaximum": True}, is_draft_4=True)
    with pytest.raises(InvalidSchema):
        check({"maximum": 3, "exclusiveMaximum": True})
    check({"prefixItems": 7})
    with pytest.raises(InvalidSchema):
        check({"prefixItems": 7}, is_modern=True)


def test_a_regular_expression_ends() -> None:
    assert matches("^a", "ab")
    assert not matches("^a", "b")
    assert not is_pattern("[")
    # An engine that goes back would need 2**50 steps.
    assert not matches("^(a+)+$", "a" * 50 + "b")
