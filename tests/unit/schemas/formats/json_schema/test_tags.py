"""Tags of JSON Schema's objects and properties."""

from typing import Any

import pytest

from headrace.schemas.formats.json_schema.tags import change_tags, tagged_entities
from headrace.schemas.formats.schema_format import FIELD, RECORD, InvalidSchema, TaggedEntity


def test_paths_name_the_kinds_of_schemas() -> None:
    tags = {"confluent:tags": ["T"]}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "a": tags,
            "b": {"type": "object", "properties": {"c": tags}},
            "d": {"type": "array", "items": {"properties": {"e": tags}}},
        },
        "definitions": {"f": {"allOf": [{"properties": {"g": tags}}]}},
        "if": {"not": {"properties": {"h": tags}}},
    }
    assert [each.path for each in tagged_entities(schema)] == [
        "object.a",
        "object.b.object.c",
        "object.d.array.object.e",
        "object.definitions.f.allof.0.object.g",
        "conditional.if.not.object.h",
    ]


def test_tags_are_added_once_and_removed() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {}}}
    record = TaggedEntity("object", RECORD, ("A", "B"))
    change_tags(schema, [record, record, TaggedEntity("object.a", FIELD, ("C",))], [])
    assert schema["confluent:tags"] == ["A", "B"]
    change_tags(schema, [], [record])
    assert list(tagged_entities(schema)) == [TaggedEntity("object.a", FIELD, ("C",))]
    assert "confluent:tags" not in schema


def test_a_path_that_leads_nowhere() -> None:
    with pytest.raises(InvalidSchema, match=r"No matching path 'object\.b'"):
        change_tags({"type": "object"}, [TaggedEntity("object.b", FIELD, ("A",))], [])
