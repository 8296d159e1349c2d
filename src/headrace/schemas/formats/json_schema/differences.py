"""Differences between JSON schemas: their names, which of them are compatible, and what is said of the others. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.schemas.formats.schema_format import Difference

COMPATIBLE: Final = frozenset(
    {
        "SCHEMA_REMOVED", "TYPE_EXTENDED", "MAX_LENGTH_INCREASED", "MAX_LENGTH_REMOVED", "MIN_LENGTH_DECREASED",
        "MIN_LENGTH_REMOVED", "PATTERN_REMOVED", "MAXIMUM_INCREASED", "MAXIMUM_REMOVED", "MINIMUM_DECREASED",
        "MINIMUM_REMOVED", "EXCLUSIVE_MAXIMUM_INCREASED", "EXCLUSIVE_MAXIMUM_REMOVED", "EXCLUSIVE_MINIMUM_DECREASED",
        "EXCLUSIVE_MINIMUM_REMOVED", "MULTIPLE_OF_REDUCED", "MULTIPLE_OF_REMOVED",
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", "REQUIRED_ATTRIBUTE_REMOVED", "DEPENDENCY_ARRAY_NARROWED",
        "DEPENDENCY_ARRAY_REMOVED", "DEPENDENCY_SCHEMA_REMOVED", "MAX_PROPERTIES_INCREASED", "MAX_PROPERTIES_REMOVED",
        "MIN_PROPERTIES_DECREASED", "MIN_PROPERTIES_REMOVED", "ADDITIONAL_PROPERTIES_ADDED",
        "ADDITIONAL_PROPERTIES_EXTENDED", "UNEVALUATED_PROPERTIES_ADDED", "UNEVALUATED_PROPERTIES_EXTENDED",
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "MAX_ITEMS_INCREASED", "MAX_ITEMS_REMOVED",
        "MIN_ITEMS_DECREASED", "MIN_ITEMS_REMOVED", "MAX_CONTAINS_INCREASED", "MAX_CONTAINS_REMOVED",
        "MIN_CONTAINS_DECREASED", "MIN_CONTAINS_REMOVED", "UNIQUE_ITEMS_REMOVED", "ADDITIONAL_ITEMS_ADDED",
        "ADDITIONAL_ITEMS_EXTENDED", "UNEVALUATED_ITEMS_ADDED", "UNEVALUATED_ITEMS_EXTENDED",
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "ENUM_ARRAY_EXTENDED", "COMBINED_TYPE_EXTENDED",
        "PRODUCT_TYPE_NARROWED", "SUM_TYPE_EXTENDED", "NOT_TYPE_NARROWED",
    }
)  # fmt: skip
# With compatibilityPolicy=LENIENT, a reader may also leave out what it does not know, and add what it can do without.
COMPATIBLE_IF_LENIENT: Final = COMPATIBLE | {
    "ADDITIONAL_PROPERTIES_NARROWED", "ADDITIONAL_PROPERTIES_REMOVED", "UNEVALUATED_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_REMOVED", "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}  # fmt: skip

_KEYWORD_ADDED: Final = (
    "The keyword at path '{path}' in the {{reader}} schema is not present in the {{writer}} schema"
)
_MORE: Final = "The value at path '{path}' in the {{reader}} schema is more than its value in the {{writer}} schema"
_LESS: Final = "The value at path '{path}' in the {{reader}} schema is less than its value in the {{writer}} schema"
_VALUE: Final = (
    "The value at path '{path}' is different between the {{reader}} and {{writer}} schema"
)
_FEWER: Final = "An array or combined type at path '{path}' has fewer elements in the {{reader}} schema than the {{writer}} schema"
_LONGER: Final = "An array or combined type at path '{path}' has more elements in the {{reader}} schema than the {{writer}} schema"
_TYPE: Final = (
    "A type at path '{path}' is different between the {{reader}} schema and the {{writer}} schema"
)
_TEXTS: Final = {
    **dict.fromkeys(
        (
            "MAXIMUM_ADDED", "MINIMUM_ADDED", "EXCLUSIVE_MAXIMUM_ADDED", "EXCLUSIVE_MINIMUM_ADDED", "MULTIPLE_OF_ADDED",
            "MAX_LENGTH_ADDED", "MIN_LENGTH_ADDED", "PATTERN_ADDED", "REQUIRED_ATTRIBUTE_ADDED", "MAX_PROPERTIES_ADDED",
            "MIN_PROPERTIES_ADDED", "DEPENDENCY_ARRAY_ADDED", "DEPENDENCY_SCHEMA_ADDED", "MAX_ITEMS_ADDED",
            "MIN_ITEMS_ADDED", "MAX_CONTAINS_ADDED", "MIN_CONTAINS_ADDED", "UNIQUE_ITEMS_ADDED",
            "ADDITIONAL_ITEMS_REMOVED", "ADDITIONAL_PROPERTIES_REMOVED", "UNEVALUATED_PROPERTIES_REMOVED",
            "UNEVALUATED_ITEMS_REMOVED",
        ),
        _KEYWORD_ADDED,
    ),
    **dict.fromkeys(
        (
            "MIN_LENGTH_INCREASED", "MINIMUM_INCREASED", "EXCLUSIVE_MINIMUM_INCREASED", "MIN_PROPERTIES_INCREASED",
            "MULTIPLE_OF_EXPANDED", "MIN_ITEMS_INCREASED", "MIN_CONTAINS_INCREASED",
        ),
        _MORE,
    ),
    **dict.fromkeys(
        (
            "MAX_LENGTH_DECREASED", "MAXIMUM_DECREASED", "MAX_ITEMS_DECREASED", "MAX_CONTAINS_DECREASED",
            "EXCLUSIVE_MAXIMUM_DECREASED", "MAX_PROPERTIES_DECREASED",
        ),
        _LESS,
    ),
    **dict.fromkeys(("PATTERN_CHANGED", "MULTIPLE_OF_CHANGED", "DEPENDENCY_ARRAY_CHANGED"), _VALUE),
    **dict.fromkeys(
        (
            "ADDITIONAL_ITEMS_NARROWED", "ENUM_ARRAY_NARROWED", "SUM_TYPE_NARROWED", "ADDITIONAL_PROPERTIES_NARROWED",
            "UNEVALUATED_PROPERTIES_NARROWED", "UNEVALUATED_ITEMS_NARROWED",
        ),
        _FEWER,
    ),
    **dict.fromkeys(("DEPENDENCY_ARRAY_EXTENDED", "PRODUCT_TYPE_EXTENDED", "NOT_TYPE_EXTENDED"), _LONGER),
    **dict.fromkeys(
        (
            "TYPE_CHANGED", "TYPE_NARROWED", "COMBINED_TYPE_CHANGED", "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
            "ENUM_ARRAY_CHANGED",
        ),
        _TYPE,
    ),
    **dict.fromkeys(
        (
            "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
            "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
            "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
            "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
        ),
        "The {{reader}} schema has an open content model and has a property or item at path '{path}' which is missing in "
        "the {{writer}} schema",
    ),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": "The {{reader}} schema has an unopen content model and has a required "
    "property at path '{path}' which is missing in the {{writer}} schema",
    **dict.fromkeys(
        ("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
        "The {{reader}} has a closed content model and is missing a property or item present at path '{path}' in the "
        "{{writer}} schema",
    ),
    **dict.fromkeys(
        (
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        ),
        "A property or item is missing in the {{reader}} schema but present at path '{path}' in the {{writer}} schema and is "
        "not covered by its partially open content model",
    ),
    **dict.fromkeys(
        (
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        ),
        "The {{reader}} schema has a property or item at path '{path}' which is missing in the {{writer}} schema and is not "
        "covered by its partially open content model",
    ),
}  # fmt: skip
INCOMPATIBLE: Final = frozenset(_TEXTS) | {"SCHEMA_ADDED"}


class Found(NamedTuple):
    """A difference, and the path to it."""

    kind: str
    path: str = ""

    def under(self, path: str) -> Found:
        """The same, seen from further outside."""
        return Found(self.kind, f"{path}/{self.path}" if self.path else path)


def difference(found: Found) -> Difference:
    """The difference as it is told."""
    path = f"#/{found.path}"
    shown = path.replace("{", "{{").replace("}", "}}")  # names of properties may have braces
    text = _TEXTS.get(found.kind, "").format(path=shown)
    return Difference(found.kind, path, text, quote='"', end="'")
