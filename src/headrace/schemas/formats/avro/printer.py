"""Types of Avro schemas as JSON text, in the order in which Java's `Schema.toString()` prints them. Pure.

Registries identify a schema by this text, so it must be Java's to the letter. No Python library prints it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from headrace.schemas.formats.avro.types import PRIMITIVES, Field, Json, Type
from headrace.schemas.formats.java_json import double, quoted


def compact(value: Json) -> str:
    """JSON without spaces, as Java writes it."""
    match value:
        case dict():
            return "{" + ",".join(f"{quoted(k)}:{compact(each)}" for k, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(compact, value)) + "]"
        case str():
            return quoted(value)
        case float():
            return double(value)
        case _:
            return json.dumps(value)


def schema_text(root: Type, known: Iterable[str] = ()) -> str:
    """The schema as Java prints it. The full names in `known` are used and not defined."""
    return compact(schema_json(root, known))


def schema_json(root: Type, known: Iterable[str] = ()) -> Json:
    """The same as JSON values."""
    return _Printer(known).json_of(root, "")


class _Printer:
    """Writes types as JSON in the order of Java's `toString`; a named type is written out where it stands first."""

    def __init__(self, known: Iterable[str]) -> None:
        self._written = set(known)

    def json_of(self, type_: Type, namespace: str) -> Json:
        match type_.kind:
            case "union":
                return [self.json_of(each, namespace) for each in type_.branches]
            case "array":
                items = self.json_of(type_.element, namespace)
                return {"type": "array", "items": items, **type_.props}
            case "map":
                values = self.json_of(type_.element, namespace)
                return {"type": "map", "values": values, **type_.props}
            case kind if kind in PRIMITIVES:
                return {"type": kind, **type_.props} if type_.props else kind
            case _:
                return self._named(type_, namespace)

    def _named(self, type_: Type, namespace: str) -> Json:
        if type_.full_name in self._written:
            return type_.name if type_.namespace == namespace else type_.full_name
        self._written.add(type_.full_name)
        written: dict[str, Json] = {"type": type_.kind, "name": type_.name}
        if type_.namespace != namespace:
            written["namespace"] = type_.namespace
        if type_.doc is not None:
            written["doc"] = type_.doc
        if type_.kind == "enum":
            written["symbols"] = type_.symbols
            if type_.enum_default is not None:
                written["default"] = type_.enum_default
        elif type_.kind == "fixed":
            written["size"] = type_.size
        else:
            written["fields"] = [self._field(each, type_.namespace) for each in type_.fields]
        written |= type_.props
        if type_.aliases:
            prefix = f"{type_.namespace}."
            written["aliases"] = [_without_prefix(each, prefix) for each in type_.aliases]
        return written

    def _field(self, each: Field, namespace: str) -> Json:
        written = {"name": each.name, "type": self.json_of(each.type, namespace)}
        if each.doc is not None:
            written["doc"] = each.doc
        if each.has_default:
            written["default"] = each.default
        if each.order != "ascending":
            written["order"] = each.order
        if each.aliases:
            written["aliases"] = each.aliases
        return written | each.props


def _without_prefix(name: str, prefix: str) -> str:
    rest = name.removeprefix(prefix)
    return rest if "." not in rest else name
