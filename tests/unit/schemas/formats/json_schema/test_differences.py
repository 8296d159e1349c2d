"""The names of the differences between JSON schemas, and what is said of them."""

from headrace.schemas.formats.json_schema.differences import (
    COMPATIBLE,
    COMPATIBLE_IF_LENIENT,
    INCOMPATIBLE,
    Found,
    difference,
)


def test_a_difference_is_compatible_or_not() -> None:
    assert not COMPATIBLE & INCOMPATIBLE
    assert COMPATIBLE < COMPATIBLE_IF_LENIENT < COMPATIBLE | INCOMPATIBLE


def test_a_path_grows_from_the_inside() -> None:
    found = Found("MAX_LENGTH_ADDED", "maxLength").under("properties/a")
    assert found == Found("MAX_LENGTH_ADDED", "properties/a/maxLength")
    assert Found("TYPE_CHANGED").under("items").path == "items"


def test_what_is_said_names_both_schemas_and_the_path() -> None:
    told = difference(Found("MAX_LENGTH_ADDED", "properties/{a}/maxLength"))
    message = told.message(reader="new", writer="old")
    assert "MAX_LENGTH_ADDED" in message
    assert "#/properties/{a}/maxLength" in message
    assert "new schema is not present in the old schema" in message
