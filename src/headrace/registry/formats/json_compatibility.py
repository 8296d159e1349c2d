"""Compatibility of JSON schemas: may every document of the writer's schema be read with the reader's? Pure.

The rules and the names of the differences are Confluent's. A schema is taken as the conjunction of its keywords: each
keyword of the reader must follow from the writer's. What cannot be compared within a bounded number of steps is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from headrace.registry.formats.schema_format import Difference, InvalidSchema

Json = Any

_MAX_STEPS: Final = 50_000
_COMBINED: Final = ("oneOf", "anyOf", "allOf")
# Say nothing about which documents are valid.
_ANNOTATIONS: Final = frozenset(
    {
        "$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default",
        "examples", "deprecated", "readOnly", "writeOnly", "format", "connect.index", "connect.type",
    }
)  # fmt: skip


class _Document(NamedTuple):
    """A document that references lead into."""

    content: Json


class _Place(NamedTuple):
    """A schema, and the document that its references start from."""

    schema: Json
    document: _Document

    def at(self, schema: Json) -> _Place:
        """Another schema of the same document."""
        return _Place(schema, self.document)


class Documents:
    """A schema and the documents that it refers to, by the names of its references."""

    def __init__(self, root: Json, others: Mapping[str, Json]) -> None:
        self.root = _Document(root)
        self._others = {name: _Document(other) for name, other in others.items()}
        for other in others.values():
            if isinstance(other, dict):
                for key in ("$id", "id"):
                    if isinstance(other.get(key), str):
                        self._others.setdefault(other[key].rstrip("#"), _Document(other))

    def find(self, ref: str, document: _Document) -> _Place | None:
        """What a reference in `document` leads to."""
        address, _, fragment = ref.partition("#")
        content = document.content
        own = content.get("$id", content.get("id")) if isinstance(content, dict) else None
        if address and address != own:
            other = self._others.get(address)
            if other is None and isinstance(own, str):
                other = self._others.get(own.rpartition("/")[0] + "/" + address)
            if other is None:
                return None
            document = other
        return _pointed(document, unquote(fragment))

    def resolve(self, place: _Place) -> _Place:
        """The schema behind `$ref`s."""
        for _ in range(100):
            ref = place.schema.get("$ref") if isinstance(place.schema, dict) else None
            if not isinstance(ref, str):
                return place
            found = self.find(ref, place.document)
            if found is None:
                return place.at(True)
            place = found
        return place.at(True)


def _pointed(document: _Document, fragment: str) -> _Place | None:
    if not fragment.startswith("/"):
        if not fragment:
            return _Place(document.content, document)
        return _anchored(document, fragment)
    found = document.content
    for part in fragment[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return _Place(found, document)


def _anchored(document: _Document, anchor: str) -> _Place | None:
    stack = [document.content]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            if each.get("$anchor") == anchor or f"#{anchor}" in (each.get("$id"), each.get("id")):
                return _Place(each, document)
            stack += each.values()
        elif isinstance(each, list):
            stack += each
    return None


def compare_documents(
    *,
    reader: Json,
    reader_others: Mapping[str, Json],
    writer: Json,
    writer_others: Mapping[str, Json],
) -> list[Difference]:
    """What the writer's schema allows and the reader's does not."""
    comparison = _Comparison(Documents(writer, writer_others), Documents(reader, reader_others))
    return comparison.whole()


def _note(kind: str, path: str, what: str) -> Difference:
    return Difference(
        kind,
        path,
        f"{what} at path '{path}' differs between the {{reader}} and the {{writer}} schema",
    )


def _is_true(schema: Json) -> bool:
    """Whether every document is valid."""
    return schema is True or (isinstance(schema, dict) and not set(schema) - _ANNOTATIONS)


def _is_false(schema: Json) -> bool:
    """Whether no document is valid."""
    return schema is False or (
        isinstance(schema, dict) and _is_true(schema.get("not", False)) and "not" in schema
    )


class _Comparison:
    """`original` is the writer's schema, `update` the reader's, as in Confluent's names of differences."""

    def __init__(self, originals: Documents, updates: Documents) -> None:
        self._originals = originals
        self._updates = updates
        self._under_way: set[tuple[int, int, bool]] = set()
        self._steps = 0
        self._is_swapped = False

    def whole(self) -> list[Difference]:
        return self.compare(
            _Place(self._originals.root.content, self._originals.root),
            _Place(self._updates.root.content, self._updates.root),
            "#/",
        )

    def compare(self, original: _Place, update: _Place, path: str) -> list[Difference]:
        """The incompatible differences; schemas that are under way count as compatible, for they may be recursive."""
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise InvalidSchema("the schemas are too complex to be compared")
        original, update = self._originals.resolve(original), self._updates.resolve(update)
        pair = (id(original.schema), id(update.schema), self._is_swapped)
        if pair in self._under_way or _is_true(update.schema) or _is_false(original.schema):
            return []
        self._under_way.add(pair)
        try:
            return list(self._differences(original, update, path))
        finally:
            self._under_way.discard(pair)

    def fits(self, original: _Place, update: _Place, path: str) -> bool:
        return not self.compare(original, update, path)

    def _differences(self, original: _Place, update: _Place, path: str) -> Iterator[Difference]:
        if _is_false(update.schema):
            yield _note("SCHEMA_REMOVED_TO_FALSE", path, "What is allowed")
            return
        if _is_true(original.schema):
            yield _note("SCHEMA_ADDED", path, "The schema")
            return
        old, new = original.schema, update.schema
        if any(key in old for key in ("oneOf", "anyOf")) and not any(
            key in new for key in _COMBINED
        ):
            yield from self._sum_to_plain(original, update, path)
            return
        if "allOf" in old and not any(key in new for key in _COMBINED):
            if not self._product_fits(original, update, path):
                yield _note("PRODUCT_TYPE_EXTENDED", path, "The combination of schemas")
            return
        rest = {key: value for key, value in new.items() if key not in _COMBINED}
        if not _is_true(rest):
            yield from self._plain(original, update, path)
        yield from self._combined(original, update, path)

    # ---- combinations

    def _sum_to_plain(self, original: _Place, update: _Place, path: str) -> Iterator[Difference]:
        """Each alternative of the writer, with what stands beside the alternatives, must fit the reader's one schema."""
        old = original.schema
        key = "oneOf" if "oneOf" in old else "anyOf"
        base = {name: value for name, value in old.items() if name != key}
        for index, branch in enumerate(old[key]):
            merged = branch
            if not _is_true(base):
                resolved = self._originals.resolve(original.at(branch)).schema
                merged = {**base, **resolved} if isinstance(resolved, dict) else resolved
            if not self.fits(original.at(merged), update, f"{path}/{key}/{index}"):
                yield _note("SUM_TYPE_NARROWED", path, "The list of alternatives")
                return

    def _product_fits(self, original: _Place, update: _Place, path: str) -> bool:
        base = {name: value for name, value in original.schema.items() if name != "allOf"}
        parts = [*original.schema["allOf"], *([] if _is_true(base) else [base])]
        return any(self.fits(original.at(part), update, path) for part in parts)

    def _combined(self, original: _Place, update: _Place, path: str) -> Iterator[Difference]:
        new = update.schema
        for key in ("oneOf", "anyOf"):
            if key in new:
                yield from self._sum(original, update, key, path)
        if "allOf" in new:
            yield from self._product(original, update, path)
        if "not" in new:
            yield from self._negation(original, update, path)

    def _sum(self, original: _Place, update: _Place, key: str, path: str) -> Iterator[Difference]:
        old, alternatives = original.schema, [update.at(each) for each in update.schema[key]]
        old_key = (
            key if key in old else next((each for each in ("oneOf", "anyOf") if each in old), None)
        )
        if old_key is None:
            base = {name: value for name, value in old.items() if name not in _COMBINED}
            if not any(self.fits(original.at(base or True), each, path) for each in alternatives):
                yield _note("COMBINED_TYPE_CHANGED", path, "The combination of schemas")
            return
        edges = [
            [
                index
                for index, new in enumerate(alternatives)
                if self.fits(original.at(each), new, path)
            ]
            for each in old[old_key]
        ]
        if _matching(edges) < len(edges):
            is_shorter = len(alternatives) < len(edges)
            kind = "SUM_TYPE_NARROWED" if is_shorter else "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
            yield _note(kind, path, "The list of alternatives")

    def _product(self, original: _Place, update: _Place, path: str) -> Iterator[Difference]:
        """Each part of the reader's must follow from some part of the writer's."""
        old = original.schema
        base = {name: value for name, value in old.items() if name != "allOf"}
        parts = [*old.get("allOf", ()), *([] if _is_true(base) else [base])]
        for part in update.schema["allOf"]:
            if not any(self.fits(original.at(each), update.at(part), path) for each in parts):
                yield _note("PRODUCT_TYPE_EXTENDED", path, "The combination of schemas")
                return

    def _negation(self, original: _Place, update: _Place, path: str) -> Iterator[Difference]:
        """What the reader excludes must have been excluded by the writer."""
        if "not" not in original.schema:
            yield _note("NOT_TYPE_EXTENDED", path, "What is excluded")
            return
        swapped = _Comparison(self._updates, self._originals)
        swapped._steps, swapped._is_swapped = self._steps, True
        if not swapped.fits(
            update.at(update.schema["not"]), original.at(original.schema["not"]), f"{path}/not"
        ):
            yield _note("NOT_TYPE_EXTENDED", path, "What is excluded")
        self._steps = swapped._steps

    # ---- one schema

    def _plain(self, original: _Place, update: _Place, path: str) -> Iterator[Difference]:
        old, new = original.schema, update.schema
        kind = _type_change(_types(old), _types(new))
        if kind is not None:
            yield _note(kind, f"{path}/type", "The type")
            return
        yield from _values(old, new, path)
        yield from _bounds(old, new, path)
        yield from _pattern(old, new, path)
        yield from _multiple(old, new, path)
        if _is_about(old, new, "object", _OBJECT_KEYS):
            yield from self._object(original, update, path)
        if _is_about(old, new, "array", _ARRAY_KEYS):
            yield from self._array(original, update, path)

    def _object(self, original: _Place, update: _Place, path: str) -> Iterator[Difference]:
        old, new = original.schema, update.schema
        before, after = old.get("properties", {}), new.get("properties", {})
        for name in (*before, *(each for each in after if each not in before)):
            where = f"{path}properties/{name}" if path == "#/" else f"{path}/properties/{name}"
            if name not in after:
                yield from self._property_removed(original, update, name, where)
            elif name not in before:
                yield from self._property_added(original, update, name, where)
            else:
                yield from self.compare(original.at(before[name]), update.at(after[name]), where)
        for name in new.get("required", ()):
            if name not in old.get("required", ()) and name in before:
                schema = after.get(name)
                if not (isinstance(schema, dict) and "default" in schema):
                    yield _note(
                        "REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}", "A required property"
                    )
        yield from self._additional(original, update, "additionalProperties", "PROPERTIES", path)
        yield from self._dependencies(original, update, path)

    def _property_removed(
        self, original: _Place, update: _Place, name: str, path: str
    ) -> Iterator[Difference]:
        schema = original.schema["properties"][name]
        match _content_model(update.schema, "additionalProperties"):
            case "open":
                return
            case "closed":
                if not _is_false(schema):
                    yield _note("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path, "A property")
            case _:
                cover = _cover(update.schema, name)
                if not self.fits(original.at(schema), update.at(cover), path):
                    kind = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
                    yield _note(kind, path, "A property")

    def _property_added(
        self, original: _Place, update: _Place, name: str, path: str
    ) -> Iterator[Difference]:
        schema = update.schema["properties"][name]
        model = _content_model(original.schema, "additionalProperties")
        if model == "open":
            if not _is_true(schema):
                yield _note("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", path, "A property")
            return
        if model == "partially open":
            cover = _cover(original.schema, name)
            if not self.fits(original.at(cover), update.at(schema), path):
                kind = "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
                yield _note(kind, path, "A property")
        has_default = isinstance(schema, dict) and "default" in schema
        if name in update.schema.get("required", ()) and not has_default:
            yield _note(
                "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", path, "A required property"
            )

    def _additional(
        self, original: _Place, update: _Place, key: str, name: str, path: str
    ) -> Iterator[Difference]:
        before, after = original.schema.get(key, True), update.schema.get(key, True)
        if _is_true(after) or _is_false(before):
            return
        if _is_false(after):
            yield _note(f"ADDITIONAL_{name}_REMOVED", f"{path}/{key}", "What may be added")
        elif _is_true(before):
            yield _note(f"ADDITIONAL_{name}_NARROWED", f"{path}/{key}", "What may be added")
        else:
            yield from self.compare(original.at(before), update.at(after), f"{path}/{key}")

    def _dependencies(self, original: _Place, update: _Place, path: str) -> Iterator[Difference]:
        before, after = _dependencies(original.schema), _dependencies(update.schema)
        for name, new in after.items():
            where, old = f"{path}/dependencies/{name}", before.get(name)
            if isinstance(new, list):
                if not isinstance(old, list):
                    yield _note("DEPENDENCY_ARRAY_ADDED", where, "What a property depends on")
                elif not set(new) <= set(old):
                    is_longer = set(old) <= set(new)
                    kind = "DEPENDENCY_ARRAY_EXTENDED" if is_longer else "DEPENDENCY_ARRAY_CHANGED"
                    yield _note(kind, where, "What a property depends on")
            elif not isinstance(old, dict | bool):
                yield _note("DEPENDENCY_SCHEMA_ADDED", where, "What a property depends on")
            else:
                yield from self.compare(original.at(old), update.at(new), where)

    def _array(self, original: _Place, update: _Place, path: str) -> Iterator[Difference]:
        old, new = original.schema, update.schema
        if new.get("uniqueItems") and not old.get("uniqueItems"):
            yield _note("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems", "Whether items are unique")
        before, old_rest = _items(old)
        after, new_rest = _items(new)
        for index in range(max(len(before), len(after))):
            where = f"{path}/items/{index}"
            one = before[index] if index < len(before) else old_rest
            other = after[index] if index < len(after) else new_rest
            if index >= len(after) and _is_false(other) and not _is_false(one):
                yield _note("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", where, "An item")
            elif index >= len(before) and _is_true(one) and not _is_true(other):
                yield _note("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", where, "An item")
            else:
                yield from self.compare(original.at(one), update.at(other), where)
        if _is_true(new_rest) or _is_false(old_rest):
            return
        if _is_false(new_rest):
            yield _note("ADDITIONAL_ITEMS_REMOVED", f"{path}/additionalItems", "What may be added")
        elif _is_true(old_rest) and (before or after):
            yield _note("ADDITIONAL_ITEMS_NARROWED", f"{path}/additionalItems", "What may be added")
        else:
            yield from self.compare(original.at(old_rest), update.at(new_rest), f"{path}/items")


_OBJECT_KEYS: Final = frozenset(
    {
        "properties", "required", "additionalProperties", "patternProperties", "dependencies",
        "dependentRequired", "dependentSchemas",
    }
)  # fmt: skip
_ARRAY_KEYS: Final = frozenset({"items", "prefixItems", "additionalItems", "uniqueItems"})


def _is_about(old: Json, new: Json, kind: str, keys: frozenset[str]) -> bool:
    types = _types(new)
    return (types is None or kind in types) and bool(keys & (set(old) | set(new)))


def _types(schema: Json) -> set[str] | None:
    """The types that a schema allows; None: any."""
    types = schema.get("type")
    if isinstance(types, str):
        return {types}
    if isinstance(types, list):
        return set(types)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return None if values is None else {_type_of(each) for each in values}


def _type_of(value: Json) -> str:
    match value:
        case bool():
            return "boolean"
        case None:
            return "null"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _type_change(old: set[str] | None, new: set[str] | None) -> str | None:
    if new is None:
        return None
    if old is None:
        return "TYPE_NARROWED"
    missing = {
        each for each in old if each not in new and not (each == "integer" and "number" in new)
    }
    if not missing:
        return None
    is_subset = bool(old - missing) or (old == {"number"} and new == {"integer"})
    return "TYPE_NARROWED" if is_subset else "TYPE_CHANGED"


def _values(old: Json, new: Json, path: str) -> Iterator[Difference]:
    after = [new["const"]] if "const" in new else new.get("enum")
    if after is None:
        return
    before = [old["const"]] if "const" in old else old.get("enum")
    if before is None:
        yield _note("ENUM_ARRAY_ADDED", f"{path}/enum", "The list of values")
    elif not all(each in after for each in before):
        is_shorter = all(each in before for each in after)
        kind = "ENUM_ARRAY_NARROWED" if is_shorter else "ENUM_ARRAY_CHANGED"
        yield _note(kind, f"{path}/enum", "The list of values")


# Keyword, the name in the differences, and whether a larger value allows more.
_LIMITS: Final = (
    ("maxLength", "MAX_LENGTH", True),
    ("minLength", "MIN_LENGTH", False),
    ("maximum", "MAXIMUM", True),
    ("minimum", "MINIMUM", False),
    ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", True),
    ("exclusiveMinimum", "EXCLUSIVE_MINIMUM", False),
    ("maxProperties", "MAX_PROPERTIES", True),
    ("minProperties", "MIN_PROPERTIES", False),
    ("maxItems", "MAX_ITEMS", True),
    ("minItems", "MIN_ITEMS", False),
)


def _bounds(old: Json, new: Json, path: str) -> Iterator[Difference]:
    old, new = _modern_limits(old), _modern_limits(new)
    for key, name, is_upper in _LIMITS:
        after, before = new.get(key), old.get(key)
        if after is None or after is False:
            continue
        if before is None or before is False:
            yield _note(f"{name}_ADDED", f"{path}/{key}", f"The keyword {key}")
        elif (after < before) if is_upper else (after > before):
            change = "DECREASED" if is_upper else "INCREASED"
            yield _note(f"{name}_{change}", f"{path}/{key}", f"The keyword {key}")


def _modern_limits(schema: Json) -> Json:
    """Draft 4 has exclusive limits as flags beside the limits."""
    for key, flag in (("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")):
        if schema.get(flag) is True and key in schema:
            schema = {name: value for name, value in schema.items() if name != key} | {
                flag: schema[key]
            }
    return schema


def _pattern(old: Json, new: Json, path: str) -> Iterator[Difference]:
    if "pattern" in new and new["pattern"] != old.get("pattern"):
        kind = "PATTERN_CHANGED" if "pattern" in old else "PATTERN_ADDED"
        yield _note(kind, f"{path}/pattern", "The pattern")


def _multiple(old: Json, new: Json, path: str) -> Iterator[Difference]:
    after, before = new.get("multipleOf"), old.get("multipleOf")
    if after is None or after == before:
        return
    if before is None:
        yield _note("MULTIPLE_OF_ADDED", f"{path}/multipleOf", "The keyword multipleOf")
    elif before % after:
        kind = "MULTIPLE_OF_EXPANDED" if not after % before else "MULTIPLE_OF_CHANGED"
        yield _note(kind, f"{path}/multipleOf", "The keyword multipleOf")


def _content_model(schema: Json, key: str) -> str:
    additional = schema.get(key, True)
    if schema.get("patternProperties") or isinstance(additional, dict):
        return "partially open"
    return "closed" if additional is False else "open"


def _cover(schema: Json, name: str) -> Json:
    """The schema that a property without one of its own must fulfil."""
    for pattern, cover in schema.get("patternProperties", {}).items():
        try:
            if re.search(pattern, name):
                return cover
        except re.error:
            continue
    return schema.get("additionalProperties", True)


def _dependencies(schema: Json) -> dict[str, Json]:
    return {
        **schema.get("dependencies", {}),
        **schema.get("dependentRequired", {}),
        **schema.get("dependentSchemas", {}),
    }


def _items(schema: Json) -> tuple[list[Json], Json]:
    """The schemas of the first items, and of all that follow."""
    items = schema.get("items", True)
    if isinstance(items, list):
        return items, schema.get("additionalItems", True)
    return schema.get("prefixItems", []), items


def _matching(edges: list[list[int]]) -> int:
    """How many on the left can have a partner of their own on the right (augmenting paths)."""
    partner: dict[int, int] = {}

    def place(left: int, tried: set[int]) -> bool:
        for right in edges[left]:
            if right not in tried:
                tried.add(right)
                if right not in partner or place(partner[right], tried):
                    partner[right] = left
                    return True
        return False

    return sum(place(left, set()) for left in range(len(edges)))
