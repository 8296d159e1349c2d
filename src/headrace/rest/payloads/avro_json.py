"""Avro's JSON encoding, to and from its binary one: unions name their branch, bytes are characters up to U+00FF. Pure.

Logical types are not converted: a date is the number that it is stored as. In one case the branch of a union cannot be
told from the bytes that were read: `int` beside `long` is named by the size of the number, `float` beside `double` is
named `double`.
"""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import fastavro
import fastavro._read_py
import msgspec

from headrace.rest.payloads.schema_codec import NotOfSchema, UnusableSchema
from headrace.schemas.wire_format import Framed

Json = Any
Converter = Callable[[Json], Json]

_INT_LIMITS: Final = {"int": 2**31, "long": 2**63}
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_FLOAT: Final = struct.Struct("<f")


class AvroCodec:
    """A schema with the types that its references define."""

    is_blocking = False

    def __init__(self, text: str, references: Iterable[str] = ()) -> None:
        """Raises UnusableSchema."""
        named: dict[str, Any] = {}
        try:
            for other in references:
                fastavro.parse_schema(_without_logical_types(json.loads(other)), named)
            self._schema = fastavro.parse_schema(_without_logical_types(json.loads(text)), named)
        except Exception as wrong:  # a text of others: the library may raise anything
            raise UnusableSchema(f"not an Avro schema: {wrong!r}") from wrong
        types = _Types(named)
        self._to_avro = types.from_json(self._schema)
        self._to_json = types.to_json(self._schema, is_root=True)
        self._is_readable = not types.has_empty_items
        # Bytes of a type that contains itself can be nested as deeply as their author likes. fastavro's compiled reader
        # then exhausts the stack, which ends the process; the one in Python raises RecursionError.
        self._read = (
            fastavro._read_py.schemaless_reader
            if types.is_recursive
            else fastavro.schemaless_reader
        )

    @property
    def record_name(self) -> str | None:
        """The full name of a record, enum or fixed type."""
        return self._schema.get("name") if isinstance(self._schema, dict) else None

    def encode(self, data: bytes) -> bytes:
        """Avro's binary encoding of Avro's JSON encoding. Raises NotOfSchema."""
        buffer = io.BytesIO()
        try:
            datum = self._to_avro(msgspec.json.decode(data))
            fastavro.schemaless_writer(buffer, self._schema, datum)
        except (UnicodeDecodeError, RecursionError, TypeError, ValueError, OverflowError) as wrong:
            raise NotOfSchema(f"the value does not fit its Avro schema: {wrong}") from wrong
        return buffer.getvalue()

    def decode(self, framed: Framed) -> Json:
        """Avro's JSON encoding of its binary one. Raises NotOfSchema."""
        if not self._is_readable:  # six bytes could mean a billion items
            raise NotOfSchema("arrays whose items take no bytes are not read")
        try:
            datum = self._read(
                io.BytesIO(framed.payload),
                self._schema,
                None,
                return_record_name=True,
                return_named_type=True,
            )
            return self._to_json(datum)
        except Exception as wrong:  # bytes of others: the library may raise anything
            raise NotOfSchema(f"the bytes do not fit their Avro schema: {wrong!r}") from wrong


def _without_logical_types(schema: Json) -> Json:
    """The schema as it is stored; a logical type only says how a program may show it."""
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name != "logicalType"}
    for name in ("type", "items", "values"):
        if name in kept:
            kept[name] = _without_logical_types(kept[name])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_without_logical_types(each) for each in kept["fields"]]
    return kept


class _Branch(NamedTuple):
    name: str
    convert: Converter


class _Types:
    """Converters of the types of one schema. Named types are converted once, so that they may contain themselves."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._from_json: dict[str, Converter] = {}
        self._to_json: dict[str, Converter] = {}
        self._unfinished: set[str] = set()  # records whose fields are being looked at
        self.is_recursive = False  # some type contains itself
        self.has_empty_items = False  # some array has items that take no bytes

    def from_json(self, schema: Json) -> Converter:
        """JSON to what fastavro writes. The converter raises NotOfSchema."""
        kind, definition = self._resolve(schema)
        if kind == "union":
            return self._union_from_json(definition)
        if kind == "array":
            return _array(self.from_json(definition["items"]))
        if kind == "map":
            return _map(self.from_json(definition["values"]))
        if kind == "record":
            return self._record(definition, self._from_json, self.from_json, _record_from_json)
        if kind == "enum":
            return _enum(definition)
        if kind == "fixed":
            return _bytes_from_json(definition["size"])
        return _PRIMITIVES_FROM_JSON[kind]

    def to_json(self, schema: Json, *, is_root: bool = False) -> Converter:
        """What fastavro read to JSON. At the root, as in Java, the branch of a union is not named."""
        kind, definition = self._resolve(schema)
        if kind == "union":
            return self._union_to_json(definition, names_branch=not is_root)
        if kind == "array":
            self.has_empty_items |= self._takes_no_bytes(definition["items"])
            item = self.to_json(definition["items"])
            return lambda datum: [item(each) for each in datum]
        if kind == "map":
            value = self.to_json(definition["values"])
            return lambda datum: {key: value(each) for key, each in datum.items()}
        if kind == "record":
            return self._record(definition, self._to_json, self.to_json, _record_to_json)
        return _PRIMITIVES_TO_JSON.get(kind, _same)

    def _resolve(self, schema: Json) -> tuple[str, Json]:
        if isinstance(schema, list):
            return "union", schema
        if isinstance(schema, str):
            if schema in self._named:
                return self._resolve(self._named[schema])
            return schema, {}
        kind = schema["type"]
        if kind == "error":
            return "record", schema
        if isinstance(kind, str) and kind not in self._named:
            return kind, schema
        return self._resolve(kind)

    def _record(
        self,
        definition: Json,
        known: dict[str, Converter],
        convert: Callable[[Json], Converter],
        build: Callable[[list[tuple[str, Converter]]], Converter],
    ) -> Converter:
        name = definition["name"]
        if name in self._unfinished:
            self.is_recursive = True

            def later(datum: Json) -> Json:
                return known[name](datum)

            return later
        if name not in known:
            self._unfinished.add(name)
            fields = [(each["name"], convert(each["type"])) for each in definition["fields"]]
            self._unfinished.discard(name)
            known[name] = build(fields)
        return known[name]

    def _takes_no_bytes(self, schema: Json) -> bool:
        kind, definition = self._resolve(schema)
        if kind == "record":
            name = definition["name"]
            if name in self._unfinished:
                return False
            self._unfinished.add(name)
            is_empty = all(self._takes_no_bytes(each["type"]) for each in definition["fields"])
            self._unfinished.discard(name)
            return is_empty
        return kind == "null" or (kind == "fixed" and definition["size"] == 0)

    def _branch_name(self, schema: Json) -> str:
        kind, definition = self._resolve(schema)
        return definition["name"] if kind in ("record", "enum", "fixed") else kind

    def _union_from_json(self, schemas: list[Json]) -> Converter:
        branches = {self._branch_name(each): self.from_json(each) for each in schemas}
        expected = ", ".join(branches)

        def convert(value: Json) -> Json:
            if value is None and "null" in branches:
                return None
            if isinstance(value, dict) and len(value) == 1:
                [(name, inner)] = value.items()
                branch = branches.get(name)
                if branch is not None:
                    return name, branch(inner)
                raise NotOfSchema(f"unknown union branch {name}: expected one of {expected}")
            raise NotOfSchema(
                f"a value of a union is written as {{branch: value}}; the branches are {expected}"
            )

        return convert

    def _union_to_json(self, schemas: list[Json], *, names_branch: bool) -> Converter:
        branches = {self._branch_name(each): self.to_json(each) for each in schemas}

        def branch_of(datum: Json) -> tuple[str, Json]:
            if isinstance(datum, tuple):
                return datum
            if (
                isinstance(datum, int)
                and not isinstance(datum, bool)
                and {"int", "long"} <= branches.keys()
            ):
                return ("int" if -(2**31) <= datum < 2**31 else "long"), datum
            names = _NAMES_BY_TYPE[type(datum)]
            return next(name for name in names if name in branches), datum

        def convert(datum: Json) -> Json:
            if datum is None:
                return None
            name, inner = branch_of(datum)
            value = branches[name](inner)
            return {name: value} if names_branch else value

        return convert


_NAMES_BY_TYPE: Final[Mapping[type, tuple[str, ...]]] = {
    bool: ("boolean",),
    int: ("int", "long"),
    float: ("double", "float"),
    str: ("string",),
    bytes: ("bytes",),
    list: ("array",),
    dict: ("map",),
}


def _same(value: Json) -> Json:
    return value


def _expect(what: str, value: Json) -> NotOfSchema:
    shown = msgspec.json.encode(value).decode(errors="replace")
    return NotOfSchema(f"expected {what}, got {shown[:100]}")


def _array(item: Converter) -> Converter:
    def convert(value: Json) -> Json:
        if not isinstance(value, list):
            raise _expect("an array", value)
        return [item(each) for each in value]

    return convert


def _map(inner: Converter) -> Converter:
    def convert(value: Json) -> Json:
        if not isinstance(value, dict):
            raise _expect("a map", value)
        return {key: inner(each) for key, each in value.items()}

    return convert


def _record_from_json(fields: list[tuple[str, Converter]]) -> Converter:
    names = {name for name, _ in fields}

    def convert(value: Json) -> Json:
        if not isinstance(value, dict):
            raise _expect("a record", value)
        if not value.keys() <= names:
            raise NotOfSchema(f"unknown field {min(value.keys() - names)}")
        record = {}
        for name, inner in fields:
            if name not in value:
                raise NotOfSchema(f"Expected field name not found: {name}")
            try:
                record[name] = inner(value[name])
            except NotOfSchema as wrong:
                raise NotOfSchema(f"{name}: {wrong}") from None
        return record

    return convert


def _record_to_json(fields: list[tuple[str, Converter]]) -> Converter:
    return lambda datum: {name: inner(datum[name]) for name, inner in fields}


def _enum(definition: Json) -> Converter:
    symbols = frozenset(definition["symbols"])

    def convert(value: Json) -> Json:
        if not isinstance(value, str) or value not in symbols:
            raise _expect(f"a symbol of {definition['name']}", value)
        return value

    return convert


def _bytes_from_json(size: int | None = None) -> Converter:
    def convert(value: Json) -> Json:
        try:
            data = value.encode("latin-1")
        except (AttributeError, UnicodeEncodeError):
            raise _expect("bytes, as characters up to U+00FF", value) from None
        if size is not None and len(data) != size:
            raise NotOfSchema(f"expected {size} bytes, got {len(data)}")
        return data

    return convert


def _integer(kind: str) -> Converter:
    limit = _INT_LIMITS[kind]

    def convert(value: Json) -> Json:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
            raise _expect(f"a number of type {kind}", value)
        return value

    return convert


def _number(value: Json) -> Json:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _expect("a number", value)
    return float(value)


def _of_type(kind: type, what: str) -> Converter:
    def convert(value: Json) -> Json:
        if not isinstance(value, kind):
            raise _expect(what, value)
        return value

    return convert


def _double_to_json(datum: float) -> Json:
    if math.isfinite(datum):
        return datum
    return "NaN" if math.isnan(datum) else ("Infinity" if datum > 0 else "-Infinity")


def _float_to_json(datum: float) -> Json:
    """The shortest number that is the same with 32 bits: what was written as 0.1 is shown as 0.1."""
    if not math.isfinite(datum):
        return _double_to_json(datum)
    packed = _FLOAT.pack(datum)
    for digits in range(6, 9):
        shorter = float(f"{datum:.{digits}g}")
        if abs(shorter) <= _HIGHEST_FLOAT and _FLOAT.pack(shorter) == packed:
            return shorter
    return float(f"{datum:.9g}")


_HIGHEST_FLOAT: Final = 3.4028234663852886e38

_PRIMITIVES_FROM_JSON: Final[Mapping[str, Converter]] = {
    "null": _of_type(type(None), "null"),
    "boolean": _of_type(bool, "a boolean"),
    "int": _integer("int"),
    "long": _integer("long"),
    "float": _number,
    "double": _number,
    "string": _of_type(str, "a string"),
    "bytes": _bytes_from_json(),
}
_PRIMITIVES_TO_JSON: Final[Mapping[str, Converter]] = {
    "float": _float_to_json,
    "double": _double_to_json,
    "bytes": lambda datum: datum.decode("latin-1"),
    "fixed": lambda datum: datum.decode("latin-1"),
}
