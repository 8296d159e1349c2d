"""Avro schemas: parsing as Java's parser does it, Java's canonical text, and the specification's reader/writer rules. Pure.

The canonical text is what Java's `Schema.toString()` prints, because registries identify schemas by it: the same schema
must have the same id here and in Confluent's registry. No Python library prints it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from headrace.registry.formats.schema_format import (
    MAX_DEPTH,
    Difference,
    InvalidSchema,
    ParsedSchema,
)

PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
# A reader of the key's type can read what a writer of these types wrote.
PROMOTIONS: Final = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEMA_KEYS: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_FIELD_KEYS: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS: Final = ("ascending", "descending", "ignore")
_INT_LIMITS: Final = {"int": 2**31, "long": 2**63}
_NO_DEFAULT: Final = object()

Json = Any  # what a JSON text means


@dataclass(slots=True, eq=False)
class Type:
    """A type in a schema. `kind` is its Avro name; `props` are the attributes that Avro gives no meaning to."""

    kind: str
    props: dict[str, Json] = field(default_factory=dict)
    # Of named types.
    name: str = ""
    namespace: str = ""
    doc: str | None = None
    aliases: list[str] = field(default_factory=list)  # full names
    # Of the kinds that have them.
    fields: list[Field] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    enum_default: str | None = None
    size: int = 0
    items: Type | None = None  # of an array; the values of a map
    branches: list[Type] = field(default_factory=list)  # of a union

    @property
    def full_name(self) -> str:
        """The name with its namespace."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def element(self) -> Type:
        """What an array or a map holds."""
        assert self.items is not None
        return self.items


@dataclass(slots=True, eq=False)
class Field:
    """A field of a record."""

    name: str
    type: Type
    doc: str | None
    default: Json
    order: str
    aliases: list[str]
    props: dict[str, Json]

    @property
    def has_default(self) -> bool:
        """Whether a reader can do without the field."""
        return self.default is not _NO_DEFAULT


class AvroFormat:
    """The language AVRO."""

    NAME: Final = "AVRO"

    def parse(
        self, text: str, references: Mapping[str, str], *, is_new: bool = True
    ) -> ParsedSchema:
        """Parse a schema; the types that its references define are known to it."""
        parser = _Parser(check_defaults=is_new)
        for referenced in references.values():
            parser.parse(_load(referenced))
        known = set(parser.names)
        return AvroSchema(parser.parse(_load(text)), frozenset(known))


class AvroSchema:
    """A parsed schema. `referenced` are the full names that its text uses and does not define."""

    def __init__(self, root: Type, referenced: frozenset[str] = frozenset()) -> None:
        self.root = root
        self._referenced = referenced

    def canonical(self) -> str:
        """Java's `toString()`."""
        return _compact(_Printer(self._referenced).json_of(self.root, ""))

    def normalized(self) -> str:
        """The canonical text with attributes sorted and logical types first, as Confluent normalises."""
        return _compact(_sorted_props(_Printer(self._referenced).json_of(self.root, "")))

    def can_read(self, writer: ParsedSchema) -> list[Difference]:
        """The specification's schema resolution."""
        return _Comparison().compare(self.root, cast(AvroSchema, writer).root, "")


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


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# ---- parsing


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
                        f"{_compact(each.default)} not a {_compact(_Printer(frozenset(self.names)).json_of(each.type, ''))}"
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
        raise InvalidSchema(f"Schema not yet supported: {_compact(schema)[:200]}")

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
            raise InvalidSchema(f"No type: {_compact(schema)[:200]}")
        reserved = _SCHEMA_KEYS | {"default"} if kind == "enum" else _SCHEMA_KEYS
        props = {key: value for key, value in schema.items() if key not in reserved}
        if kind in PRIMITIVES:
            return Type(kind, props)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in schema:
                raise InvalidSchema(
                    f"{kind.capitalize()} has no {key} type: {_compact(schema)[:200]}"
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
        name = _text(schema, "name", f"No name in schema: {_compact(schema)[:200]}")
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
                raise InvalidSchema(f"Invalid or no size: {_compact(schema)[:200]}")
            new.size = size
        else:
            self._fill_record(new, schema, depth)
        return new

    def _fill_enum(self, new: Type, schema: dict[str, Json]) -> None:
        if not isinstance(schema.get("symbols"), list):
            raise InvalidSchema(f"Enum has no symbols: {_compact(schema)[:200]}")
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
            raise InvalidSchema(f"Record has no fields: {_compact(schema)[:200]}")
        names: set[str] = set()
        for each in fields:
            if not isinstance(each, dict):
                raise InvalidSchema(f"Field is not an object: {_compact(each)[:200]}")
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
            raise InvalidSchema(f"No field type: {_compact(schema)[:200]}")
        order = schema.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise InvalidSchema(f"Invalid order of field {name}: {order}")
        doc = schema.get("doc")
        return Field(
            name,
            self._type(schema["type"], namespace, depth + 1),
            doc if isinstance(doc, str) else None,
            schema.get("default", _NO_DEFAULT),
            order.lower(),
            _texts(schema.get("aliases"), "aliases"),
            {key: value for key, value in schema.items() if key not in _FIELD_KEYS},
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
        raise InvalidSchema(f"{key} not an array of strings: {_compact(value)[:200]}")
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
            # The default of a union belongs to its first branch.
            return bool(type_.branches) and _is_value(type_.branches[0], value, depth + 1)
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


# ---- printing


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


def _sorted_props(value: Json) -> Json:
    """The same JSON with the attributes that Avro gives no meaning to in alphabetical order."""
    if isinstance(value, list):
        return [_sorted_props(each) for each in value]
    if not isinstance(value, dict):
        return value
    known = _SCHEMA_KEYS | _FIELD_KEYS
    first = {key: _sorted_props(each) for key, each in value.items() if key in known}
    return first | {key: value[key] for key in sorted(value) if key not in known}


# ---- compatibility


class _Comparison:
    """Compares a reader's schema with a writer's. Pairs under way count as compatible: types may be recursive."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[Difference]] = {}

    def compare(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        pair = (id(reader), id(writer))
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = self._compare(reader, writer, path)
        return self._known[pair]

    def _compare(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        if reader.kind == writer.kind:
            return self._compare_same_kind(reader, writer, path)
        if writer.kind == "union":
            return [
                difference
                for branch in writer.branches
                for difference in self.compare(reader, branch, path)
            ]
        if reader.kind == "union":
            return self._compare_with_union(reader, writer, path)
        if writer.kind in PROMOTIONS.get(reader.kind, ()):
            return []
        return [
            Difference(
                "TYPE_MISMATCH",
                path or "/",
                f"The type (path '{path or '/'}') of a field in the {{reader}} schema does not match with the "
                "{writer} schema",
                f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}",
            )
        ]

    def _compare_same_kind(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        match reader.kind:
            case "array":
                return self.compare(reader.element, writer.element, f"{path}/items")
            case "map":
                return self.compare(reader.element, writer.element, f"{path}/values")
            case "union":
                return [
                    difference
                    for index, branch in enumerate(writer.branches)
                    for difference in self._compare_with_union(reader, branch, f"{path}/{index}")
                ]
            case "fixed":
                return _names(reader, writer, path) + _sizes(reader, writer, path)
            case "enum":
                return _names(reader, writer, path) + _symbols(reader, writer, path)
            case "record" | "error":
                return _names(reader, writer, path) + self._fields(reader, writer, path)
            case _:
                return []

    def _compare_with_union(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        if any(not self.compare(branch, writer, path) for branch in reader.branches):
            return []
        return [
            Difference(
                "MISSING_UNION_BRANCH",
                path or "/",
                f"The {{reader}} schema is missing a type inside a union field at path '{path or '/'}' in the "
                "{writer} schema",
                f"reader union lacking writer type: {writer.kind.upper()}",
            )
        ]

    def _fields(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        differences: list[Difference] = []
        writers = {each.name: each for each in writer.fields}
        for index, each in enumerate(reader.fields):
            where = f"{path}/fields/{index}"
            theirs = next(
                (writers[name] for name in (each.name, *each.aliases) if name in writers), None
            )
            if theirs is not None:
                differences += self.compare(each.type, theirs.type, f"{where}/type")
            elif not each.has_default:
                differences.append(
                    Difference(
                        "READER_FIELD_MISSING_DEFAULT_VALUE",
                        where,
                        f"The field '{each.name}' at path '{where}' in the {{reader}} schema has no default value "
                        "and is missing in the {writer} schema",
                        each.name,
                    )
                )
        return differences


def _names(reader: Type, writer: Type, path: str) -> list[Difference]:
    if reader.name == writer.name or writer.full_name in reader.aliases:
        return []
    return [
        Difference(
            "NAME_MISMATCH",
            f"{path}/name",
            f"The name of the schema has changed (path '{path}/name')",
            f"expected: {writer.full_name}",
        )
    ]


def _sizes(reader: Type, writer: Type, path: str) -> list[Difference]:
    if reader.size == writer.size:
        return []
    return [
        Difference(
            "FIXED_SIZE_MISMATCH",
            f"{path}/size",
            f"The size of FIXED type field at path '{path}/size' in the {{reader}} schema does not match with the "
            "{writer} schema",
            f"expected: {writer.size}, found: {reader.size}",
        )
    ]


def _symbols(reader: Type, writer: Type, path: str) -> list[Difference]:
    missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if not missing or reader.enum_default is not None:
        return []
    return [
        Difference(
            "MISSING_ENUM_SYMBOLS",
            f"{path}/symbols",
            f"The {{reader}} schema is missing enum symbols '[{', '.join(missing)}]' at path '{path}/symbols' in the "
            "{writer} schema",
            f"[{', '.join(missing)}]",
        )
    ]
