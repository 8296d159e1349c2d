"""Where references in JSON documents lead."""

from typing import Any

import pytest

from headrace.schemas.formats.json_schema.references import Documents, Place

ROOT: dict[str, Any] = {
    "$id": "http://x/root.json",
    "definitions": {"a/b": 1, "c~d": 2, "list": [3, 4]},
    "properties": {"p": {"$anchor": "here", "n": 5}},
}
OTHER: dict[str, Any] = {"$id": "http://x/other.json", "definitions": {"a": 6}}


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("#", ROOT),
        ("#/definitions/a~1b", 1),
        ("#/definitions/c~0d", 2),
        ("#/definitions/list/1", 4),
        ("#/definitions/list/2", None),
        ("#/definitions/none", None),
        ("#here", ROOT["properties"]["p"]),
        ("#there", None),
        ("http://x/root.json#/definitions/a~1b", 1),
        ("named.json#/definitions/a", 6),
        ("http://x/other.json#/definitions/a", 6),
        ("other.json#/definitions/a", 6),
        ("absent.json", None),
    ],
)
def test_a_reference(ref: str, found: Any) -> None:
    documents = Documents(ROOT, {"named.json": OTHER})
    place = documents.find(ref, documents.root)
    assert (None if place is None else place.schema) == found


def test_a_circle_ends() -> None:
    circle = {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#"}}}
    documents = Documents(circle, {})
    assert documents.resolve(Place(circle, documents.root)).schema is True
