"""Avro schemas from their text: names, defaults, references, and what is refused."""

import json
from typing import Any

import pytest

from headrace.schemas.formats.avro.parser import parse_avro
from headrace.schemas.formats.schema_format import InvalidSchema


def record(*fields: dict[str, Any], **more: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields), **more})


def test_a_namespace_holds_for_what_is_inside() -> None:
    inner = {"type": "fixed", "name": "F", "size": 2}
    root, _ = parse_avro(record({"name": "f", "type": inner}, namespace="n"), ())
    assert (root.full_name, root.fields[0].type.full_name) == ("n.R", "n.F")


def test_a_type_may_name_itself() -> None:
    root, _ = parse_avro(record({"name": "next", "type": ["null", "R"]}), ())
    assert root.fields[0].type.branches[1] is root


def test_a_reference_is_known_and_not_defined_again() -> None:
    other = json.dumps({"type": "enum", "name": "E", "symbols": ["A"]})
    root, referenced = parse_avro(record({"name": "e", "type": "E"}), (other,))
    assert referenced == {"E"}
    assert root.fields[0].type.symbols == ["A"]


def test_attributes_that_avro_does_not_know_are_kept() -> None:
    root, _ = parse_avro(record({"name": "a", "type": "int", "x": 1}, y=[2]), ())
    assert (root.props, root.fields[0].props) == ({"y": [2]}, {"x": 1})


def test_a_default_is_checked_only_in_a_new_schema() -> None:
    text = record({"name": "a", "type": "int", "default": "x"})
    with pytest.raises(InvalidSchema):
        parse_avro(text, (), check_defaults=True)
    parse_avro(text, ())


def test_a_default_may_be_of_any_branch_of_a_union() -> None:
    root, _ = parse_avro(
        record({"name": "a", "type": ["null", "int"], "default": 1}), (), check_defaults=True
    )
    assert root.fields[0].default == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]x",
        '{"type": 7}',
        '{"type": "record", "name": 7, "fields": []}',
        '{"type": "enum", "name": "E", "symbols": ["A", "A"]}',
        '{"type": "enum", "name": "E", "symbols": [1]}',
        '{"type": "fixed", "name": "F", "size": "x"}',
        '{"type": "map"}',
        '"R"',
    ],
)
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_avro(text, ())
