"""Checks JSON schemas as Confluent's registry does: every keyword that a schema can be reached by has a value of its form.

Pure. This is less than the drafts' own schemas ask for: a negative `minLength`, or an empty `required`, is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from headrace.schemas.formats.json_schema.references import Documents, Place
from headrace.schemas.formats.schema_format import InvalidSchema

Json = Any

_TYPES: Final = ("string", "integer", "number", "boolean", "null", "array", "object")
_META_SCHEMAS: Final = "json-schema.org/"


def _is_number(value: Json) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _is_integer(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_schema(value: Json) -> bool:
    return isinstance(value, dict | bool)


def _are_strings(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_type(value: Json) -> bool:
    names = value if isinstance(value, list) else [value]
    return all(isinstance(each, str) and each in _TYPES for each in names)


Check = tuple[str, Callable[[Json], bool]]  # what is expected, and whether it is that
_STRING: Final[Check] = ("a string", lambda value: isinstance(value, str))
_NUMBER: Final[Check] = ("a number", _is_number)
_INTEGER: Final[Check] = ("an integer", _is_integer)
_BOOLEAN: Final[Check] = ("true or false", lambda value: isinstance(value, bool))
_KEYWORDS: Final[Mapping[str, Check]] = {
    **dict.fromkeys(("$schema", "title", "description", "pattern", "format"), _STRING),
    **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _INTEGER
    ),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly"), _BOOLEAN),
    "required": ("a list of names", _are_strings),
    "enum": ("a list", lambda value: isinstance(value, list)),
    "type": (f"one of {', '.join(_TYPES)}, or a list of them", _is_type),
}  # fmt: skip


class Structure:
    """Walks from a schema to all that it can lead to."""

    def __init__(self, documents: Documents, *, is_modern: bool, is_draft_4: bool) -> None:
        self._documents = documents
        self._is_modern = is_modern
        self._is_draft_4 = is_draft_4
        self._seen: set[int] = set()
        self._stack: list[tuple[Place, str]] = []

    def check(self) -> None:
        """Raises InvalidSchema."""
        root = self._documents.root
        self._stack.append((Place(root.content, root), "#"))
        while self._stack:
            place, path = self._stack.pop()
            if isinstance(place.schema, dict) and id(place.schema) not in self._seen:
                self._seen.add(id(place.schema))
                self._check_schema(place, path)

    def _check_schema(self, place: Place, path: str) -> None:
        if "$ref" in place.schema:
            self._follow_reference(place, path)
            if not self._is_modern:
                return  # what stands beside a reference does not count
        self._check_keywords(place.schema, path)
        self._follow(place, path)

    def _check_keywords(self, schema: dict[str, Json], path: str) -> None:
        for keyword, (expected, is_fine) in _KEYWORDS.items():
            if keyword not in schema or (self._is_draft_4 and keyword.startswith("exclusive")):
                continue
            value = schema[keyword]
            is_rough = self._is_modern and (expected, is_fine) == _INTEGER
            if not (_is_number(value) if is_rough else is_fine(value)):
                raise InvalidSchema(f"{path}/{keyword}: expected {expected}")
        if schema.get("multipleOf") == 0 and not self._is_modern:
            raise InvalidSchema(f"{path}/multipleOf: 0 has no multiples")
        for pattern in (schema.get("pattern"), *_names(schema.get("patternProperties"))):
            if pattern is not None and not is_pattern(pattern):
                raise InvalidSchema(f"{path}: {pattern!r} is no regular expression")

    def _follow(self, place: Place, path: str) -> None:
        schema = place.schema
        keywords = _MODERN_INNER_SCHEMAS if self._is_modern else _INNER_SCHEMAS
        for keyword, push in keywords.items():
            if keyword in schema:
                push(self, place, schema[keyword], f"{path}/{keyword}")
        if not self._is_modern:
            self._follow_earlier(place, path)

    def _follow_earlier(self, place: Place, path: str) -> None:
        """Keywords that have another form in earlier drafts."""
        schema = place.schema
        items = schema.get("items", True)
        if isinstance(items, list):
            self._push_all(place, items, f"{path}/items")
        else:
            self._push(place, items, f"{path}/items")
        for keyword in ("additionalItems", "additionalProperties"):
            self._push(place, schema.get(keyword, True), f"{path}/{keyword}")
        dependencies = schema.get("dependencies", {})
        if not isinstance(dependencies, dict):
            raise InvalidSchema(f"{path}/dependencies: expected an object")
        for name, needed in dependencies.items():
            if not _are_strings(needed):
                self._push(place, needed, f"{path}/dependencies/{name}")

    def _follow_reference(self, place: Place, path: str) -> None:
        ref = place.schema["$ref"]
        if not isinstance(ref, str):
            raise InvalidSchema(f"{path}/$ref: expected a string")
        found = self._documents.find(ref, place.document)
        if found is not None:
            self._stack.append((found, f"{path}/$ref"))
        elif _META_SCHEMAS not in ref:
            raise InvalidSchema(f"{path}: unresolved reference '{ref}'")

    def _push(self, place: Place, schema: Json, path: str) -> None:
        if not _is_schema(schema):
            raise InvalidSchema(f"{path}: expected a schema, which is an object or a boolean")
        self._stack.append((place.at(schema), path))

    def _push_all(self, place: Place, schemas: Json, path: str) -> None:
        if not isinstance(schemas, list):
            raise InvalidSchema(f"{path}: expected a list of schemas")
        for index, each in enumerate(schemas):
            self._push(place, each, f"{path}/{index}")

    def _push_map(self, place: Place, schemas: Json, path: str) -> None:
        if not isinstance(schemas, dict):
            if path.endswith("/definitions"):
                return
            raise InvalidSchema(f"{path}: expected an object with schemas")
        for name, each in schemas.items():
            self._push(place, each, f"{path}/{name}")


# The keywords whose values are schemas, and how those are reached.
_Push = Callable[[Structure, Place, Json, str], None]
_INNER_SCHEMAS: Final[Mapping[str, _Push]] = {
    **dict.fromkeys(("not", "contains", "propertyNames", "if", "then", "else"), Structure._push),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), Structure._push_all),
    **dict.fromkeys(("properties", "patternProperties"), Structure._push_map),
}
_MODERN_INNER_SCHEMAS: Final[Mapping[str, _Push]] = {
    **_INNER_SCHEMAS,
    **dict.fromkeys(
        ("items", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"),
        Structure._push,
    ),
    "prefixItems": Structure._push_all,
    **dict.fromkeys(("dependentSchemas", "$defs", "definitions"), Structure._push_map),
}


def _names(value: Json) -> list[str]:
    return list(value) if isinstance(value, dict) else []


@lru_cache(maxsize=256)
def _pattern_validator(pattern: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft7Validator({"pattern": pattern})


def is_pattern(pattern: str) -> bool:
    """Whether a text is a regular expression."""
    try:
        _pattern_validator(pattern)
    except Exception:  # noqa: BLE001 - whatever the library says of it, it is none
        return False
    return True


def matches(pattern: str, text: str) -> bool:
    """Whether a regular expression is found in a text. The library's engine gives up where others take for ever."""
    try:
        return bool(_pattern_validator(pattern).is_valid(text))
    except Exception:  # noqa: BLE001 - no regular expression, or one that takes too long
        return False
