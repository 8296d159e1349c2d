"""Compatibility of JSON schemas: may every document of the writer's schema be read with the reader's? Pure.

The rules, the names of the differences and their texts are those of Confluent's registry, which compares schemas node by
node. `original` is the writer's schema and `update` the reader's, as in the names. What cannot be compared within a
bounded number of steps is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import InvalidOperation
from typing import Any, Final

from headrace.schemas.formats.json_schema.differences import (
    COMPATIBLE,
    COMPATIBLE_IF_LENIENT,
    Found,
    difference,
)
from headrace.schemas.formats.json_schema.structure import matches
from headrace.schemas.formats.json_schema.tree import Node, Number, Tree
from headrace.schemas.formats.schema_format import Difference, InvalidSchema

Json = Any

_MAX_STEPS: Final = 50_000


def compare_documents(
    *,
    reader: Json,
    reader_others: Mapping[str, Json],
    writer: Json,
    writer_others: Mapping[str, Json],
    is_lenient: bool = False,
) -> list[Difference]:
    """What the writer's schema allows and the reader's does not."""
    compatible = COMPATIBLE_IF_LENIENT if is_lenient else COMPATIBLE
    found = _Comparison(compatible).whole(
        Tree(writer, writer_others).root, Tree(reader, reader_others).root
    )
    return [difference(each) for each in found if each.kind not in compatible]


def compared(reader: Json, writer: Json) -> list[Found]:
    """All differences between documents without references to others, compatible ones too."""
    return _Comparison(COMPATIBLE).whole(Tree(writer, {}).root, Tree(reader, {}).root)


Pair = tuple[Node, Node]


class _Comparison:
    """Compares nodes, each pair once. A pair that is met again while it is compared is taken for compatible."""

    def __init__(self, compatible: frozenset[str]) -> None:
        self._compatible = compatible
        self._known: dict[Pair, list[Found]] = {}
        self._under_way: set[Pair] = set()
        self._incompatible: dict[
            Pair, list[Found]
        ] = {}  # pairs that were wrongly taken for compatible
        self._was_assumed = False
        self._steps = 0

    def whole(self, original: Node, update: Node) -> list[Found]:
        """All differences. Comparing starts anew until no assumption about a recursive pair was wrong."""
        while True:
            self._known, self._was_assumed = {}, False
            found = self._compare(original, update)
            wrong = {pair: each for pair, each in self._known.items() if not self._fits(each)}
            if not self._was_assumed or wrong.keys() == self._incompatible.keys():
                return found
            self._incompatible = wrong

    def _fits(self, found: list[Found]) -> bool:
        return all(each.kind in self._compatible for each in found)

    def _compare(self, original: Node | None, update: Node | None) -> list[Found]:
        """The differences of a pair, with paths that start at it."""
        if original is None or update is None:
            if original is update:
                return []
            return [Found("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED")]
        pair = original.resolved(), update.resolved()
        known = self._known.get(pair)
        if known is not None:
            return known
        if pair in self._under_way:
            if pair not in self._incompatible:
                self._was_assumed = True
            return self._incompatible.get(pair, [])
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise InvalidSchema("the schemas are too complex to be compared")
        self._under_way.add(pair)
        try:
            found = self._known[pair] = self._compare_kinds(*pair)
        finally:
            self._under_way.discard(pair)
        return found

    def _inside(self, path: str, original: Node | None, update: Node | None) -> list[Found]:
        return [each.under(path) for each in self._compare(original, update)]

    # ---- kinds

    def _compare_kinds(self, original: Node, update: Node) -> list[Found]:
        if original.kind != "combined" and update.kind == "combined":
            found = self._to_combination(original, update)
            if found is not None:
                return found
        elif original.kind == "combined" and update.kind != "combined":
            found = self._from_combination(original, update)
            if found is not None:
                return found
        if original.kind != update.kind:
            is_wider = original.kind == "false" or update.is_empty
            both_bytes = original.is_bytes and update.is_bytes
            return [] if is_wider or both_bytes else [Found("TYPE_CHANGED")]
        compare = _BY_KIND.get(original.kind)
        return [] if compare is None else compare(self, original, update)

    def _to_combination(self, original: Node, update: Node) -> list[Found] | None:
        """A schema that became one of several alternatives."""
        if len(update.parts) == 1:
            found = self._compare(original, update.parts[0])
            return found if self._fits(found) else None
        if update.criterion in ("anyOf", "oneOf"):
            for part in update.parts:
                found = self._compare(original, part)
                if self._fits(found):
                    return [*found, Found("SUM_TYPE_EXTENDED")]
        return None

    def _from_combination(self, original: Node, update: Node) -> list[Found] | None:
        """A schema of which one part is left."""
        if len(original.parts) == 1:
            found = self._compare(original.parts[0], update)
            return found if self._fits(found) else None
        if original.criterion == "allOf":
            for part in original.parts:
                found = self._compare(part, update)
                if self._fits(found):
                    return [*found, Found("PRODUCT_TYPE_NARROWED")]
        return None

    def _combined(self, original: Node, update: Node) -> list[Found]:
        found: list[Found] = []
        if original.criterion != update.criterion:
            if not _is_wider_criterion(original, update):
                return [Found("COMBINED_TYPE_CHANGED")]
            found.append(Found("COMBINED_TYPE_EXTENDED"))
        before = list({each.alternative(): each for each in original.parts}.values())
        after = list({each.alternative(): each for each in update.parts}.values())
        if len(before) < len(after):
            is_product = update.criterion == "allOf"
            found.append(Found("PRODUCT_TYPE_EXTENDED" if is_product else "SUM_TYPE_EXTENDED"))
        elif len(before) > len(after):
            is_product = original.criterion == "allOf"
            found.append(Found("PRODUCT_TYPE_NARROWED" if is_product else "SUM_TYPE_NARROWED"))
        fits = [
            [index for index, new in enumerate(after) if self._fits(self._compare(old, new))]
            for old in before
        ]
        if _matching(fits) < min(len(before), len(after)):
            found.append(Found("COMBINED_TYPE_SUBSCHEMAS_CHANGED"))
        return found

    def _negation(self, original: Node, update: Node) -> list[Found]:
        """What is excluded now must have been excluded before."""
        differences = self._compare(update.parts[0], original.parts[0])
        kind = "NOT_TYPE_NARROWED" if self._fits(differences) else "NOT_TYPE_EXTENDED"
        return [Found(kind, "not")]

    def _enum(self, original: Node, update: Node) -> list[Found]:
        has_all_old = all(each in update.values for each in original.values)
        has_all_new = all(each in original.values for each in update.values)
        if has_all_old and has_all_new:
            return []
        kind = "EXTENDED" if has_all_old else "NARROWED" if has_all_new else "CHANGED"
        return [Found(f"ENUM_ARRAY_{kind}", "enum")]

    def _const(self, original: Node, update: Node) -> list[Found]:
        return [] if original.values == update.values else [Found("ENUM_ARRAY_CHANGED", "const")]

    def _string(self, original: Node, update: Node) -> list[Found]:
        found = _limits(original, update)
        before, after = original.pattern, update.pattern
        if before != after:
            kind = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
            found.append(Found(f"PATTERN_{kind}", "pattern"))
        return found

    def _number(self, original: Node, update: Node) -> list[Found]:
        found = _limits(original, update)
        before, after = original.limits.get("multipleOf"), update.limits.get("multipleOf")
        if before != after:
            found.append(Found(f"MULTIPLE_OF_{_factor_change(before, after)}", "multipleOf"))
        if original.requires_integer != update.requires_integer:
            found.append(Found("TYPE_EXTENDED" if original.requires_integer else "TYPE_NARROWED"))
        return found

    # ---- objects

    def _object(self, original: Node, update: Node) -> list[Found]:
        found: list[Found] = []
        for name in original.properties.keys() & update.properties.keys():
            was, is_now = name in original.required, name in update.required
            if was != is_now:
                has_default = update.properties[name].has_default
                kind = "REMOVED" if was else "WITH_DEFAULT_ADDED" if has_default else "ADDED"
                found.append(Found(f"REQUIRED_ATTRIBUTE_{kind}", f"required/{name}"))
        for name in {**original.properties, **update.properties}:
            found += [
                each.under(f"properties/{name}") for each in self._property(original, update, name)
            ]
        found += self._dependencies(original, update)
        found += self._additional(original, update, "Properties")
        found += self._unevaluated(original, update, "Properties")
        return found + _limits(original, update)

    def _property(self, original: Node, update: Node, name: str) -> list[Found]:
        before, after = original.properties.get(name), update.properties.get(name)
        if before is not None and after is not None:
            return self._compare(before, after)
        if before is not None:
            if _is_open(update):
                return [Found("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL")]
            cover = _cover(update, name)
            if cover is None:
                what = "PROPERTY_WITH_FALSE" if before.kind == "false" else "PROPERTY"
                return [Found(f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL")]
            return self._covered("PROPERTY_REMOVED", before, cover)
        assert after is not None
        is_required = name in update.required
        if _is_open(original):
            if after.is_empty:
                return [Found("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL")]
            return [Found(f"{_added(after, is_required=is_required)}_TO_OPEN_CONTENT_MODEL")]
        cover = _cover(original, name)
        found = [] if cover is None else self._covered("PROPERTY_ADDED", cover, after)
        kind = f"{_added(after, is_required=is_required)}_TO_UNOPEN_CONTENT_MODEL"
        return [*found, Found(kind)]

    def _covered(self, what: str, original: Node, update: Node) -> list[Found]:
        found = self._compare(original, update)
        verdict = "IS" if self._fits(found) else "NOT"
        return [*found, Found(f"{what}_{verdict}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")]

    def _dependencies(self, original: Node, update: Node) -> list[Found]:
        found: list[Found] = []
        old, new = original.property_dependencies, update.property_dependencies
        for name in {**old, **new}:
            before, after = old.get(name), new.get(name)
            if before != after:
                change = _set_change(before, after)
                found.append(Found(f"DEPENDENCY_ARRAY_{change}", f"dependencies/{name}"))
        old_schemas, new_schemas = original.schema_dependencies, update.schema_dependencies
        for name in {**old_schemas, **new_schemas}:
            path = f"dependencies/{name}"
            if name in old_schemas and name in new_schemas:
                found += self._inside(path, old_schemas[name], new_schemas[name])
            else:
                change = "REMOVED" if name in old_schemas else "ADDED"
                found.append(Found(f"DEPENDENCY_SCHEMA_{change}", path))
        return found

    def _additional(self, original: Node, update: Node, what: str) -> list[Found]:
        path, name = f"additional{what}", f"ADDITIONAL_{what.upper()}"
        if original.allows_additional != update.allows_additional:
            return [Found(f"{name}_{'ADDED' if update.allows_additional else 'REMOVED'}", path)]
        if (original.additional is None) != (update.additional is None):
            is_narrower = original.additional is None
            return [Found(f"{name}_{'NARROWED' if is_narrower else 'EXTENDED'}", path)]
        return self._inside(path, original.additional, update.additional)

    def _unevaluated(self, original: Node, update: Node, what: str) -> list[Found]:
        before, after = original.unevaluated, update.unevaluated
        if before is None and after is None:
            return []
        path, name = f"unevaluated{what}", f"UNEVALUATED_{what.upper()}"
        was_closed = before is not None and before.kind == "false"
        is_closed = after is not None and after.kind == "false"
        was_open = before is None or before.is_empty
        is_open = after is None or after.is_empty
        if was_closed != is_closed:
            return [Found(f"{name}_{'REMOVED' if is_closed else 'ADDED'}", path)]
        if before is None or (was_open and not is_open):
            return [Found(f"{name}_NARROWED", path)]
        if after is None or (is_open and not was_open):
            return [Found(f"{name}_EXTENDED", path)]
        return self._inside(path, before, after)

    # ---- arrays

    def _array(self, original: Node, update: Node) -> list[Found]:
        found = self._inside("items", original.all_items, update.all_items)
        before, after = original.items, update.items
        for index in range(max(len(before), len(after))):
            path = f"items/{index}"
            if index < len(before) and index < len(after):
                found += self._inside(path, before[index], after[index])
            elif index < len(before):
                found += [each.under(path) for each in self._item_removed(before[index], update)]
            else:
                found += [each.under(path) for each in self._item_added(after[index], original)]
        found += self._additional(original, update, "Items")
        found += self._unevaluated(original, update, "Items")
        found += _limits(original, update)
        if original.requires_unique != update.requires_unique:
            kind = "UNIQUE_ITEMS_REMOVED" if original.requires_unique else "UNIQUE_ITEMS_ADDED"
            found.append(Found(kind, "uniqueItems"))
        return found

    def _item_removed(self, before: Node, update: Node) -> list[Found]:
        if _is_open(update):
            return [Found("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL")]
        cover = _cover(update, None)
        if cover is None:
            what = "ITEM_WITH_FALSE" if before.kind == "false" else "ITEM"
            return [Found(f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL")]
        return self._covered("ITEM_REMOVED", before, cover)

    def _item_added(self, after: Node, original: Node) -> list[Found]:
        if _is_open(original):
            what = "ITEM_WITH_EMPTY_SCHEMA" if after.is_empty else "ITEM"
            return [Found(f"{what}_ADDED_TO_OPEN_CONTENT_MODEL")]
        cover = _cover(original, None)
        if cover is None:
            return [Found("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")]
        return self._covered("ITEM_ADDED", cover, after)


_BY_KIND: Final[Mapping[str, Callable[[_Comparison, Node, Node], list[Found]]]] = {
    "combined": _Comparison._combined,
    "not": _Comparison._negation,
    "enum": _Comparison._enum,
    "const": _Comparison._const,
    "string": _Comparison._string,
    "number": _Comparison._number,
    "object": _Comparison._object,
    "array": _Comparison._array,
}

# The names of limits in the differences.
_LIMIT_NAMES: Final = {
    "maxLength": "MAX_LENGTH",
    "minLength": "MIN_LENGTH",
    "maximum": "MAXIMUM",
    "minimum": "MINIMUM",
    "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
    "maxProperties": "MAX_PROPERTIES",
    "minProperties": "MIN_PROPERTIES",
    "maxItems": "MAX_ITEMS",
    "minItems": "MIN_ITEMS",
    "maxContains": "MAX_CONTAINS",
    "minContains": "MIN_CONTAINS",
}


def _limits(original: Node, update: Node) -> list[Found]:
    found = []
    for keyword, name in _LIMIT_NAMES.items():
        before, after = original.limits.get(keyword), update.limits.get(keyword)
        if before == after:
            continue
        if before is None or after is None:
            change = "ADDED" if before is None else "REMOVED"
        else:
            change = "INCREASED" if before < after else "DECREASED"
        found.append(Found(f"{name}_{change}", keyword))
    return found


def _factor_change(before: Number | None, after: Number | None) -> str:
    if before is None:
        return "ADDED"
    if after is None:
        return "REMOVED"
    if _is_multiple(after, before):
        return "EXPANDED"
    return "REDUCED" if _is_multiple(before, after) else "CHANGED"


def _is_multiple(value: Number, factor: Number) -> bool:
    try:
        return bool(factor) and not value % factor
    except InvalidOperation:  # more digits than can be divided
        return False


def _set_change(before: set[str] | None, after: set[str] | None) -> str:
    if before is None:
        return "ADDED"
    if after is None:
        return "REMOVED"
    return "EXTENDED" if before <= after else "NARROWED" if after <= before else "CHANGED"


def _is_wider_criterion(original: Node, update: Node) -> bool:
    was_single, is_single = len(original.parts) == 1, len(update.parts) == 1
    return (
        update.criterion == "anyOf"
        or (was_single and is_single)
        or (was_single and update.criterion == "oneOf")
        or (is_single and original.criterion == "allOf")
    )


def _added(schema: Node, *, is_required: bool) -> str:
    if not is_required:
        return "OPTIONAL_PROPERTY_ADDED"
    return f"REQUIRED_PROPERTY_{'WITH_DEFAULT_' if schema.has_default else ''}ADDED"


def _is_open(node: Node) -> bool:
    """Whether an object or an array may have anything beside what is named."""
    return (
        node.allows_additional
        and node.additional is None
        and not node.pattern_properties
        and (node.unevaluated is None or node.unevaluated.is_empty)
    )


def _cover(node: Node, name: str | None) -> Node | None:
    """The schema of what is not named; None if there is none."""
    if name is not None:
        for pattern, schema in node.pattern_properties.items():
            if matches(pattern, name):
                return schema
    if node.additional is not None:
        return node.additional
    unevaluated = node.unevaluated
    if node.allows_additional and unevaluated is not None:
        return None if unevaluated.kind == "false" or unevaluated.is_empty else unevaluated
    return None


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
