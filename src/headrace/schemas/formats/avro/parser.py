"""Avro schemas from their JSON text, by the rules of Java's parser. Pure.

Named types that referenced schemas define are known to the schemas that follow them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Final

from headrace.schemas.formats.avro.printer import compact, schema_text
from headrace.schemas.formats.avro.types import (
    FIELD_KEYS,
    NO_DEFAULT,
    PRIMITIVES,
    SCHEMA_KEYS,
    Field,
    Json,
    Type,
)
from headrace.schemas.formats.schema_format import MAX_DEPTH, InvalidSchema

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDERS: Final = ("ascending", "descending", "ignore")
_INT_LIMITS: Final = {"int": 2**31, "long": 2**63}


def parse_avro(
    text: str, references: Iterable[str] = (), *, check_defaults: bool = False
) -> tuple[Type, frozenset[str]]:
    """The schema, and the full names that its references define. Raises InvalidSchema.

    `references` are the texts of referenced schemas, in the order in which they must be known. Java checks defaults
    (`check_defaults`) when a schema is new, and not when it is read back.
    """
    parser = _Parser(check_defaults=check_defaults)
    for referenced in references:
        parser.parse(_load(referenced))
    known = frozenset(parser.names)
    return parser.parse(_load(text)), known


def _load(text: str) -> Json:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None
    except ValueError as wrong:
        stripped = text.strip()
        if stripped in PRIMITIVES:  # Java's parser takes a bare word for a name
            return stripped
        raise InvalidSchema(f"not JSON: {wrong}") from None


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an attribute stands twice in one object")
    return found


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


class _Parser:
    """Turns JSON into types. Named types stay known for the schemas that follow."""

    def __init__(self, *, check_defaults: bool) -> None:
        self.names: dict[str, Type] = {}
        self._check_defaults = check_defaults
        self._pending_defaults: list[tuple[str, Field]] = []

    def parse(self, schema: Json) -> Type:
        root = self._type(schema, "", 0)
        if self._check_defaults:
            for owner, each in self._pending_defaults:
                if not _is_value(each.type, each.default, 0):
                    raise InvalidSchema(
                        f"Invalid default for field {owner}.{each.name}: "
                        f"{compact(each.default)} not a {schema_text(each.type, self.names)}"
                    )
        self._pending_defaults.clear()
        return root

    def _type(self, schema: Json, namespace: str, depth: int) -> Type:
        if depth > MAX_DEPTH:
            raise InvalidSchema(f"the schema is nested more than {MAX_DEPTH} levels deep")
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if isinstance(schema, dict):
            return self._by_object(schema, namespace, depth)
        raise InvalidSchema(f"Schema not yet supported: {compact(schema)[:200]}")

    def _by_name(self, name: str, namespace: str) -> Type:
        if name in PRIMITIVES:
            return Type(name)
        full_name = f"{namespace}.{name}" if namespace and "." not in name else name
        known = self.names.get(full_name) or self.names.get(name)
        if known is None:
            raise InvalidSchema(f'"{full_name}" is not a defined name')
        return known

    def _union(self, schema: list[Json], namespace: str, depth: int) -> Type:
        branches = [self._type(each, namespace, depth + 1) for each in schema]
        seen: set[str] = set()
        for branch in branches:
            if branch.kind == "union":
                raise InvalidSchema("Nested union: a union may not hold a union")
            name = branch.full_name or branch.kind
            if name in seen:
                raise InvalidSchema(f"Duplicate in union:{name}")
            seen.add(name)
        return Type("union", branches=branches)

    def _by_object(self, schema: dict[str, Json], namespace: str, depth: int) -> Type:
        kind = schema.get("type")
        if not isinstance(kind, str):
            if isinstance(kind, dict | list) and set(schema) == {"type"}:
                return self._type(kind, namespace, depth + 1)
            raise InvalidSchema(f"No type: {compact(schema)[:200]}")
        reserved = SCHEMA_KEYS | {"default"} if kind == "enum" else SCHEMA_KEYS
        props = {key: value for key, value in schema.items() if key not in reserved}
        if kind in PRIMITIVES:
            return Type(kind, props)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in schema:
                raise InvalidSchema(
                    f"{kind.capitalize()} has no {key} type: {compact(schema)[:200]}"
                )
            return Type(kind, props, items=self._type(schema[key], namespace, depth + 1))
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(kind, schema, props, namespace, depth)
        return self._by_name(kind, namespace)

    def _named(
        self,
        kind: str,
        schema: dict[str, Json],
        props: dict[str, Json],
        enclosing: str,
        depth: int,
    ) -> Type:
        name = _text(schema, "name", f"No name in schema: {compact(schema)[:200]}")
        if "." in name:
            namespace, _, name = name.rpartition(".")
        else:
            given = schema.get("namespace", enclosing)
            namespace = given if isinstance(given, str) else enclosing
        for part in (name, *(namespace.split(".") if namespace else ())):
            if not _NAME.fullmatch(part):
                raise InvalidSchema(f"Illegal character or initial character in name: {part}")
        doc = schema.get("doc")
        new = Type(
            kind, props, name=name, namespace=namespace, doc=doc if isinstance(doc, str) else None
        )
        new.aliases = [
            alias if "." in alias or not namespace else f"{namespace}.{alias}"
            for alias in _texts(schema.get("aliases"), "aliases")
        ]
        if new.full_name in self.names:
            raise InvalidSchema(f"Can't redefine: {new.full_name}")
        if name in PRIMITIVES and not namespace:
            raise InvalidSchema(f"{name} is the name of a primitive type")
        self.names[new.full_name] = new
        if kind == "enum":
            self._fill_enum(new, schema)
        elif kind == "fixed":
            size = schema.get("size")
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise InvalidSchema(f"Invalid or no size: {compact(schema)[:200]}")
            new.size = size
        else:
            self._fill_record(new, schema, depth)
        return new

    def _fill_enum(self, new: Type, schema: dict[str, Json]) -> None:
        if not isinstance(schema.get("symbols"), list):
            raise InvalidSchema(f"Enum has no symbols: {compact(schema)[:200]}")
        new.symbols = _texts(schema["symbols"], "symbols")
        for symbol in new.symbols:
            if not _NAME.fullmatch(symbol):
                raise InvalidSchema(f"Illegal character or initial character in name: {symbol}")
        if len(set(new.symbols)) != len(new.symbols):
            raise InvalidSchema("Duplicate enum symbol")
        default = schema.get("default")
        if default is not None and default not in new.symbols:
            raise InvalidSchema(
                f"The Enum Default: {default} is not in the enum symbol set: {new.symbols}"
            )
        new.enum_default = default

    def _fill_record(self, new: Type, schema: dict[str, Json], depth: int) -> None:
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"Record has no fields: {compact(schema)[:200]}")
        names: set[str] = set()
        for each in fields:
            if not isinstance(each, dict):
                raise InvalidSchema(f"Field is not an object: {compact(each)[:200]}")
            field_ = self._field(each, new.namespace, depth)
            if field_.name in names:
                raise InvalidSchema(f"Duplicate field {field_.name} in record {new.full_name}")
            names.add(field_.name)
            new.fields.append(field_)
            if field_.has_default:
                self._pending_defaults.append((new.full_name, field_))

    def _field(self, schema: dict[str, Json], namespace: str, depth: int) -> Field:
        name = _text(schema, "name", "No field name")
        if not _NAME.fullmatch(name):
            raise InvalidSchema(f"Illegal character or initial character in name: {name}")
        if "type" not in schema:
            raise InvalidSchema(f"No field type: {compact(schema)[:200]}")
        order = schema.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise InvalidSchema(f"Invalid order of field {name}: {order}")
        doc = schema.get("doc")
        return Field(
            name,
            self._type(schema["type"], namespace, depth + 1),
            doc if isinstance(doc, str) else None,
            schema.get("default", NO_DEFAULT),
            order.lower(),
            _texts(schema.get("aliases"), "aliases"),
            {key: value for key, value in schema.items() if key not in FIELD_KEYS},
        )


def _text(schema: dict[str, Json], key: str, error: str) -> str:
    value = schema.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidSchema(error)
    return value


def _texts(value: Json, key: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidSchema(f"{key} not an array of strings: {compact(value)[:200]}")
    return list(value)


def _is_value(type_: Type, value: Json, depth: int) -> bool:
    """Whether a default is a value of its type, in JSON's notation."""
    if depth > MAX_DEPTH:
        return False
    match type_.kind:
        case "array":
            return isinstance(value, list) and all(
                _is_value(type_.element, each, depth + 1) for each in value
            )
        case "map":
            return isinstance(value, dict) and all(
                _is_value(type_.element, each, depth + 1) for each in value.values()
            )
        case "union":
            # The default of a union belongs to the first branch that it is a value of.
            return any(_is_value(each, value, depth + 1) for each in type_.branches)
        case "record" | "error":
            return isinstance(value, dict) and all(
                _is_value(each.type, value.get(each.name, each.default), depth + 1)
                for each in type_.fields
                if each.name in value or not each.has_default
            )
        case _:
            return _is_simple_value(type_, value)


def _is_simple_value(type_: Type, value: Json) -> bool:
    match type_.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long" as kind:
            limit = _INT_LIMITS[kind]
            return type(value) is int and -limit <= value < limit
        case "float" | "double":
            return type(value) is int or (type(value) is float and math.isfinite(value))
        case "enum":
            return isinstance(value, str) and value in type_.symbols
        case _:  # string, bytes, fixed
            return isinstance(value, str)
