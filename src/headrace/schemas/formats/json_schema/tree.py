"""JSON schemas as a tree of nodes, each of one kind: string, number, object, array, enum, a combination of others, …

Pure. Confluent's registry compares schemas in this form. A schema whose keywords are of several kinds is a combination of
nodes that must all be fulfilled. References are followed when they are needed, because schemas may be recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from headrace.schemas.formats.json_schema.references import Documents, Place
from headrace.schemas.formats.json_schema.structure import Structure

Json = Any
Number = int | Decimal

_MAX_REFERENCES: Final = 100  # from a reference to a reference
_MODERN: Final = ("/2019-09/schema", "/2020-12/schema")
_DRAFT_4: Final = ("/draft-04/schema", "json-schema.org/schema")
_LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("maxLength", "minLength"),
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    "object": ("maxProperties", "minProperties"),
    "array": ("maxItems", "minItems"),
}
_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("pattern",),
    "number": (),
    "object": (
        "properties", "additionalProperties", "required", "dependencies", "patternProperties", "propertyNames",
    ),
    "array": ("items", "additionalItems", "uniqueItems", "contains"),
}  # fmt: skip
_MODERN_KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "object": ("dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    "array": ("prefixItems", "unevaluatedItems"),
}
_KINDS_OF_TYPES: Final = {"integer": "number"}
_CRITERIA: Final = ("allOf", "anyOf", "oneOf")


@dataclass(slots=True, eq=False)
class Node:
    """A schema of one kind; only the attributes of its kind are set."""

    kind: str
    source: Json = None
    has_default: bool = False
    is_bytes: bool = False  # what Kafka Connect writes for bytes, whatever the schema says
    # Of strings, numbers, objects and arrays.
    limits: dict[str, Number] = field(default_factory=dict)
    pattern: str | None = None
    requires_integer: bool = False
    # Of objects.
    properties: dict[str, Node] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    pattern_properties: dict[str, Node] = field(default_factory=dict)
    property_dependencies: dict[str, set[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, Node] = field(default_factory=dict)
    # Of objects and arrays: what may be there beside what is named.
    allows_additional: bool = True
    additional: Node | None = None
    unevaluated: Node | None = None
    # Of arrays.
    all_items: Node | None = None
    items: list[Node] = field(default_factory=list)
    requires_unique: bool = False
    # Of enums and constants.
    values: list[Json] = field(default_factory=list)
    # Of combinations, and of negations.
    criterion: str = ""
    parts: list[Node] = field(default_factory=list)
    # Of references: where it stands, and in which tree.
    place: Place | None = None
    tree: Tree | None = None

    @property
    def is_empty(self) -> bool:
        """Whether every document is valid."""
        return self.kind in ("empty", "true")

    def resolved(self) -> Node:
        """The node behind references; one of the kind `circle` where they lead to each other only."""
        return self if self.tree is None else self.tree.resolve(self)

    def alternative(self) -> str:
        """A text that is equal for equal alternatives of a combination."""
        return f"{self.kind} {self.requires_integer} {self.source!r}"


_CIRCLE: Final = Node("circle")


def _draft(root: Json) -> tuple[bool, bool]:
    """Whether a schema is of a modern draft, and whether it is of draft 4; others are read as draft 7."""
    dialect = str(root.get("$schema", "")).rstrip("#") if isinstance(root, dict) else ""
    return dialect.endswith(_MODERN), dialect.endswith(_DRAFT_4)


def check(root: Json, others: Mapping[str, Json]) -> None:
    """Check a schema's structure, and that its references lead somewhere. Raises InvalidSchema."""
    is_modern, is_draft_4 = _draft(root)
    Structure(Documents(root, others), is_modern=is_modern, is_draft_4=is_draft_4).check()


class Tree:
    """The nodes of one schema and of the documents that it refers to."""

    def __init__(self, root: Json, others: Mapping[str, Json]) -> None:
        self._documents = Documents(root, others)
        self._is_modern, self._is_draft_4 = _draft(root)
        self._known: dict[int, Node] = {}
        self.root = self._load(Place(root, self._documents.root))

    def resolve(self, node: Node) -> Node:
        """The node behind references; one of the kind `circle` where they lead to each other only."""
        for _ in range(_MAX_REFERENCES):
            if node.kind != "reference":
                return node
            assert node.place is not None
            ref = node.place.schema["$ref"]
            found = self._documents.find(ref, node.place.document)
            if found is None:
                return Node(
                    "empty"
                )  # a schema of schemas, or one that was accepted before references were checked
            node = self._load(found)
        return _CIRCLE

    # ---- loading

    def _load(self, place: Place) -> Node:
        """The node of a schema; the same one for the same schema, because nodes are told apart by identity."""
        schema = place.schema
        if isinstance(schema, bool):
            return Node("true" if schema else "false", schema)
        if not isinstance(schema, dict):
            return Node("empty", schema)
        known = self._known.get(id(schema))
        if known is None:
            known = self._known[id(schema)] = self._loaded(place)
        return known

    def _loaded(self, place: Place) -> Node:
        schema = place.schema
        has_ref = isinstance(schema.get("$ref"), str)
        if has_ref and not self._is_modern:
            return Node("reference", schema, place=place, tree=self)
        nodes = [Node("reference", schema, place=place, tree=self)] if has_ref else []
        if isinstance(schema.get("enum"), list):
            nodes.append(Node("enum", values=schema["enum"]))
        nodes += [
            Node("combined", criterion=each, parts=self._all(place, schema[each]))
            for each in _CRITERIA
            if isinstance(schema.get(each), list)
        ]
        if "not" in schema:
            nodes.append(Node("not", parts=[self._load(place.at(schema["not"]))]))
        if "const" in schema and not self._is_draft_4:
            nodes.append(Node("const", values=[schema["const"]]))
        nodes += self._typed(place)
        if any(each in schema for each in ("if", "then", "else")) and not self._is_draft_4:
            nodes.append(Node("conditional"))
        if len(nodes) == 1:
            (node,) = nodes
        elif nodes:
            node = Node("combined", criterion="allOf", parts=nodes)
        else:
            node = Node("empty")
        if node.kind != "reference":
            node.source = schema
            node.has_default = "default" in schema
            node.is_bytes = schema.get("connect.type") == "bytes"
        return node

    def _all(self, place: Place, schemas: list[Json]) -> list[Node]:
        return [self._load(place.at(each)) for each in schemas]

    def _typed(self, place: Place) -> list[Node]:
        """The nodes of the keywords that belong to a type, with the type or without it."""
        schema = place.schema
        types = schema.get("type")
        kinds = [each for each in _LIMITS if self._has_keywords(schema, each)]
        if isinstance(types, str):
            node = self._of_type(place, types)
            return [node, *(self._of_kind(place, each) for each in kinds if each != node.kind)]
        if isinstance(types, list):
            parts = [self._of_type(place, each) for each in types if isinstance(each, str)]
            named = {each.kind for each in parts}
            union = Node("combined", types, criterion="anyOf", parts=parts)
            return [union, *(self._of_kind(place, each) for each in kinds if each not in named)]
        return [self._of_kind(place, each) for each in kinds]

    def _has_keywords(self, schema: Json, kind: str) -> bool:
        keywords = (*_LIMITS[kind], *_OTHERS[kind])
        if self._is_modern:
            keywords += _MODERN_KEYWORDS.get(kind, ())
        elif kind == "string":
            keywords += ("format",)
        return any(each in schema for each in keywords)

    def _of_type(self, place: Place, type_name: str) -> Node:
        node = self._of_kind(place, _KINDS_OF_TYPES.get(type_name, type_name))
        node.requires_integer = type_name == "integer"
        return node

    def _of_kind(self, place: Place, kind: str) -> Node:
        schema = place.schema
        node = Node(kind)
        for name in _LIMITS.get(kind, ()):
            value = schema.get(name)
            if isinstance(value, int | Decimal) and not isinstance(value, bool):
                node.limits[name] = value
        if kind == "string" and isinstance(schema.get("pattern"), str):
            node.pattern = schema["pattern"]
        fill = _FILL.get(kind)
        if fill is not None:
            fill(self, place, node)
        return node

    def _fill_object(self, place: Place, node: Node) -> None:
        schema = place.schema
        node.properties = self._by_name(place, "properties")
        node.pattern_properties = self._by_name(place, "patternProperties")
        node.required = set(_strings(schema.get("required")))
        self._set_additional(place, node, "additionalProperties")
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            if keyword != "dependencies" and not self._is_modern:
                continue
            for name, needed in _pairs(schema.get(keyword)):
                if isinstance(needed, list):
                    node.property_dependencies[name] = set(_strings(needed))
                else:
                    node.schema_dependencies[name] = self._load(place.at(needed))
        if self._is_modern and "unevaluatedProperties" in schema:
            node.unevaluated = self._load(place.at(schema["unevaluatedProperties"]))

    def _fill_array(self, place: Place, node: Node) -> None:
        schema = place.schema
        node.requires_unique = schema.get("uniqueItems") is True
        items = schema.get("items")
        first = schema.get("prefixItems") if self._is_modern else None
        if isinstance(first, list):
            node.items = self._all(place, first)
            if "items" in schema:
                self._set_additional(place, node, "items")
        elif isinstance(items, list):
            node.items = self._all(place, items)
        elif self._is_modern and isinstance(items, bool):
            node.allows_additional = items
        elif "items" in schema:
            node.all_items = self._load(place.at(items))
        if not isinstance(first, list):
            self._set_additional(place, node, "additionalItems")
        if self._is_modern and "unevaluatedItems" in schema:
            node.unevaluated = self._load(place.at(schema["unevaluatedItems"]))
        if self._is_modern and "contains" in schema:
            node.limits["minContains"] = schema.get("minContains", 1)
            if "maxContains" in schema:
                node.limits["maxContains"] = schema["maxContains"]

    def _by_name(self, place: Place, keyword: str) -> dict[str, Node]:
        return {
            name: self._load(place.at(each)) for name, each in _pairs(place.schema.get(keyword))
        }

    def _set_additional(self, place: Place, node: Node, keyword: str) -> None:
        value = place.schema.get(keyword)
        if isinstance(value, bool):
            node.allows_additional = value
        elif isinstance(value, dict):
            node.additional = self._load(place.at(value))


_FILL: Final[Mapping[str, Callable[[Tree, Place, Node], None]]] = {
    "object": Tree._fill_object,
    "array": Tree._fill_array,
}


def _pairs(value: Json) -> list[tuple[str, Json]]:
    return list(value.items()) if isinstance(value, dict) else []


def _strings(value: Json) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
