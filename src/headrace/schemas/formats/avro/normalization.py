"""Normalises Avro schemas: attributes that Avro gives no meaning to in order, logical types in front of them. Pure."""

from __future__ import annotations

import copy
from typing import Final

from headrace.schemas.formats.avro.types import NO_DEFAULT, Field, Json, Type

# The types that a logical type may stand at, and the attributes that belong to it.
_LOGICAL_TYPES: Final = {
    "decimal": (("bytes", "fixed"), ("precision", "scale")),
    "big-decimal": (("bytes",), ()),
    "uuid": (("string", "fixed"), ()),
    "date": (("int",), ()),
    "time-millis": (("int",), ()),
    "time-micros": (("long",), ()),
    "timestamp-millis": (("long",), ()),
    "timestamp-micros": (("long",), ()),
    "timestamp-nanos": (("long",), ()),
    "local-timestamp-millis": (("long",), ()),
    "local-timestamp-micros": (("long",), ()),
    "local-timestamp-nanos": (("long",), ()),
    "duration": (("fixed",), ()),
}


def normalized_type(root: Type) -> Type:
    """A copy of the schema in order."""
    normalized = copy.deepcopy(root, {id(NO_DEFAULT): NO_DEFAULT})
    seen: set[int] = set()
    stack = [normalized]
    while stack:
        each = stack.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        each.props = _ordered_props(each)
        each.aliases = sorted(each.aliases)
        stack += each.branches
        stack += [each.items] if each.items is not None else []
        for field in each.fields:
            field.props = _sorted(field.props)
            field.aliases = sorted(field.aliases)
            if field.has_default:
                field.default = _default(field.type, field.default)
            stack.append(field.type)
    return normalized


def _ordered_props(type_: Type) -> dict[str, Json]:
    props: dict[str, Json] = _sorted(type_.props)
    kinds, attributes = _LOGICAL_TYPES.get(str(props.get("logicalType")), ((), ()))
    if type_.kind not in kinds:
        return props
    first = {name: props[name] for name in ("logicalType", *attributes) if name in props}
    return first | props


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _default(type_: Type, value: Json) -> Json:
    """A default as a value of its type: 1 of a double is 1.0."""
    match type_.kind:
        case "float" | "double" if type(value) is int:
            return float(value)
        case "map" if isinstance(value, dict):
            return {name: _default(type_.element, value[name]) for name in sorted(value)}
        case "array" if isinstance(value, list):
            return [_default(type_.element, each) for each in value]
        case "union" if type_.branches:
            return _default(type_.branches[0], value)  # where most unions have their default
        case "record" | "error" if isinstance(value, dict):
            fields: dict[str, Field] = {each.name: each for each in type_.fields}
            return {
                name: _default(fields[name].type, each) if name in fields else each
                for name, each in value.items()
            }
        case _:
            return value
