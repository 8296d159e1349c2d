"""JSON schemas compared: content models, combinations and leniency. Each named difference stands in tests/registry, too."""

from typing import Any

import pytest

from headrace.schemas.formats.json_schema.compatibility import compare_documents, compared
from headrace.schemas.formats.json_schema.differences import Found

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def of(**properties: Any) -> Any:
    return {"type": "object", "properties": properties}


def closed(**properties: Any) -> Any:
    return {**of(**properties), "additionalProperties": False}


@pytest.mark.parametrize(
    ("reader", "writer", "found"),
    [
        (STRING, STRING, []),
        ({"type": "string", "maxLength": 3}, STRING, [Found("MAX_LENGTH_ADDED", "maxLength")]),
        (INTEGER, {"type": "number"}, [Found("TYPE_NARROWED")]),
        (of(a=INTEGER), of(a=STRING), [Found("TYPE_CHANGED", "properties/a")]),
        (closed(a=STRING, b=STRING), closed(a=STRING),
         [Found("OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", "properties/b")]),
        (of(a=STRING, b=STRING), of(a=STRING),
         [Found("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "properties/b")]),
        ({"oneOf": [STRING, INTEGER]}, {"oneOf": [INTEGER]}, [Found("SUM_TYPE_EXTENDED")]),
        ({"allOf": [STRING]}, {"allOf": [STRING, {"maxLength": 5}]}, [Found("PRODUCT_TYPE_NARROWED")]),
        ({"$ref": "#"}, {"$ref": "#"}, []),
        ({"$ref": "#"}, STRING, [Found("TYPE_CHANGED")]),
        ({"enum": [1]}, {"enum": [1, 2]}, [Found("ENUM_ARRAY_NARROWED", "enum")]),
    ],
)  # fmt: skip
def test_differences(reader: Any, writer: Any, found: list[Found]) -> None:
    assert compared(reader, writer) == found


def kinds(reader: Any, writer: Any, *, is_lenient: bool) -> list[str]:
    found = compare_documents(
        reader=reader,
        reader_others={},
        writer=writer,
        writer_others={},
        is_lenient=is_lenient,
    )
    return [each.kind for each in found]


def test_leniency_lets_readers_add_what_they_can_do_without() -> None:
    reader, writer = of(a=STRING, b=STRING), of(a=STRING)
    assert kinds(reader, writer, is_lenient=False)
    assert not kinds(reader, writer, is_lenient=True)


def test_the_order_of_alternatives_does_not_matter() -> None:
    assert not kinds({"oneOf": [STRING, INTEGER]}, {"oneOf": [INTEGER, STRING]}, is_lenient=False)


def test_recursion_ends() -> None:
    tree = of(next={"oneOf": [{"$ref": "#"}, {"type": "null"}]}, value=INTEGER)
    wide = of(next={"oneOf": [{"$ref": "#"}, {"type": "null"}]}, value={"type": "number"})
    assert not kinds(wide, tree, is_lenient=False)
    assert kinds(tree, wide, is_lenient=False)
