"""Arrow columns to Avro values: each field of all rows at once, then the pieces of each row joined. Pure.

An encoder is made for a schema and the type of a column, and refuses there what can never fit. What only some values cannot be (a
null where the schema has none, a number that is too large) is Unencodable when it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace.schemas.columns.avro.resolution import default_value
from headrace.schemas.columns.avro.types import (
    RECORDS,
    arrow_type,
    branches_of,
    decimal_type,
    logical_type,
)
from headrace.schemas.columns.byte_columns import (
    Int64s,
    fixed_width_column,
    joined,
    joined_lists,
    lengths,
    varint_column,
    zigzag,
)
from headrace.schemas.columns.column_types import fields_of
from headrace.schemas.columns.decimal_bytes import decimal_column
from headrace.schemas.columns.decoded import Unencodable
from headrace.schemas.formats.avro.types import Type
from headrace.schemas.formats.schema_format import InvalidSchema

Encode = Callable[[pa.Array], pa.Array]

_INT_LIMIT: Final = 2**31
# What a column of times counts, and how many of it are in one unit of the schema's.
_UNITS: Final = {
    "date": 1,
    "time-millis": 1_000_000,
    "time-micros": 1000,
    "timestamp-millis": 1000,
    "timestamp-micros": 1,
    "local-timestamp-millis": 1000,
    "local-timestamp-micros": 1,
}


class AvroEncoder:
    """Writes columns of one type with one schema. Raises InvalidSchema where the two do not fit."""

    def __init__(self, schema: Type, column: pa.DataType) -> None:
        self._is_raw = schema.kind == "bytes" and decimal_type(schema) is None
        self._encode = _as_bytes if self._is_raw else _encoder(schema, column, "value")

    def encode(self, column: pa.Array) -> pa.Array:
        """The bytes of each value, null for null. Raises Unencodable."""
        if not column.null_count:
            return self._encode(column)
        return _scattered(self._encode(_present(column)), column)


def _present(column: pa.Array) -> pa.Array:
    return column.filter(column.is_valid())


def _scattered(encoded: pa.Array, column: pa.Array) -> pa.Array:
    """What the present values were encoded as, at their places among the nulls."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    places = np.cumsum(valid) - 1
    return encoded.take(pa.array(np.maximum(places, 0), mask=~valid))


def _encoder(schema: Type, column: pa.DataType, path: str) -> Encode:
    """Encodes arrays of this type, which may have nulls only where the schema is a union with null."""
    if schema.kind == "union":
        return _union(schema, column, path)
    if schema.kind in RECORDS and pt.is_struct(column):
        encode = _record(schema, column, path)
    elif schema.kind == "array" and pt.is_list(column):
        encode = _array(schema, column, path)
    elif schema.kind == "map" and pt.is_map(column) and pt.is_string(column.key_type):
        encode = _map(schema, column, path)
    else:
        encode = _scalar(schema, column, path)

    def without_nulls(values: pa.Array) -> pa.Array:
        if values.null_count and schema.kind != "null":
            raise Unencodable(f"{path} is null, and the schema does not allow it")
        return encode(values)

    return without_nulls


def _misfit(schema: Type, column: pa.DataType, path: str) -> InvalidSchema:
    wanted = schema.full_name or schema.kind
    logical = logical_type(schema)
    return InvalidSchema(
        f"{path} is {column}, and the schema wants {wanted}{f' ({logical})' if logical else ''}"
    )


# ---- scalars


def _scalar(schema: Type, column: pa.DataType, path: str) -> Encode:
    if decimal_type(schema) is not None and pt.is_decimal(column):
        return _decimal(schema, path)
    match schema.kind:
        case "null" if pt.is_null(column):
            return lambda values: pa.array([b""] * len(values), pa.binary())
        case "boolean" if pt.is_boolean(column):
            return lambda values: fixed_width_column(
                values.cast(pa.int8()).to_numpy(zero_copy_only=False)
            )
        case "int" | "long" if _is_whole(schema, column):
            return _whole(schema, column, path)
        case "float" | "double" if pt.is_floating(column) or pt.is_integer(column):
            return _floating(schema, path)
        case "bytes" | "string" if pt.is_binary(column) or pt.is_string(column):
            return _with_length
        case "enum" if pt.is_string(column):
            return _enum(schema, path)
        case "fixed" if pt.is_binary(column):
            return _fixed(schema, path)
    raise _misfit(schema, column, path)


def _is_whole(schema: Type, column: pa.DataType) -> bool:
    return pt.is_integer(column) or (
        bool(logical_type(schema)) and column.equals(arrow_type(schema))
    )


def _whole(schema: Type, column: pa.DataType, path: str) -> Encode:
    unit = 1 if pt.is_integer(column) else _UNITS[logical_type(schema)]

    def encode(values: pa.Array) -> pa.Array:
        width = pa.int32() if pt.is_date(column) else pa.int64()
        numbers: Int64s = values.cast(width).to_numpy(zero_copy_only=False).astype(np.int64)
        numbers = numbers if unit == 1 else np.floor_divide(numbers, unit)
        if schema.kind == "int" and ((numbers < -_INT_LIMIT) | (numbers >= _INT_LIMIT)).any():
            raise Unencodable(f"{path} has a number that is no int")
        return varint_column(zigzag(numbers))

    return encode


def _floating(schema: Type, path: str) -> Encode:
    wanted, form = (pa.float32(), "<f4") if schema.kind == "float" else (pa.float64(), "<f8")

    def encode(values: pa.Array) -> pa.Array:
        try:
            numbers = values.cast(wanted).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid as error:
            raise Unencodable(f"{path}: {error}") from None
        return fixed_width_column(numbers.astype(form))

    return encode


def _as_bytes(values: pa.Array) -> pa.Array:
    return values if pt.is_binary(values.type) else values.cast(pa.binary())


def _with_length(values: pa.Array) -> pa.Array:
    """Bytes behind their length."""
    data = _as_bytes(values)
    return joined([varint_column(zigzag(lengths(data))), data])


def _enum(schema: Type, path: str) -> Encode:
    symbols = pa.array(schema.symbols, pa.string())

    def encode(values: pa.Array) -> pa.Array:
        index = pc.index_in(values, value_set=symbols)
        if index.null_count:
            odd = values.filter(index.is_null())[0].as_py()
            raise Unencodable(f"{path}: '{odd}' is no symbol of {schema.full_name}")
        return varint_column(zigzag(index.to_numpy(zero_copy_only=False).astype(np.int64)))

    return encode


def _fixed(schema: Type, path: str) -> Encode:
    def encode(values: pa.Array) -> pa.Array:
        if (lengths(values) != schema.size).any():
            raise Unencodable(f"{path} does not have the {schema.size} bytes of {schema.full_name}")
        return values

    return encode


def _decimal(schema: Type, path: str) -> Encode:
    wanted = decimal_type(schema)
    assert wanted is not None
    size = schema.size if schema.kind == "fixed" else None

    def encode(values: pa.Array) -> pa.Array:
        try:
            data = decimal_column(values.cast(wanted), size)
        except (pa.ArrowInvalid, ValueError) as error:
            raise Unencodable(f"{path}: {error}") from None
        return data if size is not None else _with_length(data)

    return encode


# ---- what has parts


def _record(schema: Type, column: pa.DataType, path: str) -> Encode:
    names = [each.name for each in fields_of(column)]
    unknown = sorted(set(names) - {each.name for each in schema.fields})
    if unknown:
        raise InvalidSchema(
            f"{path} has the column '{unknown[0]}', and {schema.full_name or 'the schema'} has no such field"
        )
    parts: list[tuple[int, Encode]] = []
    for each in schema.fields:
        if each.name in names:
            number = names.index(each.name)
            parts.append(
                (number, _encoder(each.type, column.field(number).type, f"{path}.{each.name}"))
            )
        elif each.has_default:
            parts.append((-1, _default(each.type, each.default, f"{path}.{each.name}")))
        else:
            raise InvalidSchema(
                f"{path} has no column '{each.name}', and the schema has no default for it"
            )

    def encode(values: pa.Array) -> pa.Array:
        assert isinstance(values, pa.StructArray)
        pieces = [each(values if number < 0 else values.field(number)) for number, each in parts]
        return joined(pieces) if pieces else pa.array([b""] * len(values), pa.binary())

    return encode


def _default(schema: Type, default: object, path: str) -> Encode:
    """Writes the same bytes for every row."""
    column = arrow_type(schema)
    one = _encoder(schema, column, path)(pa.array([default_value(schema, default)], column))
    return lambda values: one.take(pa.array(np.zeros(len(values), dtype=np.int64)))


def _array(schema: Type, column: pa.DataType, path: str) -> Encode:
    encode_element = _encoder(schema.element, column.value_type, f"{path}.element")

    def encode(values: pa.Array) -> pa.Array:
        assert isinstance(values, pa.ListArray)
        offsets = values.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        elements = values.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        return _blocks(encode_element(elements), offsets - offsets[0])

    return encode


def _map(schema: Type, column: pa.DataType, path: str) -> Encode:
    encode_value = _encoder(schema.element, column.item_type, f"{path}.value")

    def encode(values: pa.Array) -> pa.Array:
        assert isinstance(values, pa.MapArray)
        offsets = values.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        keys, items = values.keys.slice(first, count), values.items.slice(first, count)
        return _blocks(joined([_with_length(keys), encode_value(items)]), offsets - offsets[0])

    return encode


def _blocks(elements: pa.Array, offsets: Int64s) -> pa.Array:
    """Arrays as one block each: the number of elements, the elements, and the 0 that ends an array."""
    counts = np.diff(offsets)
    end = np.where(counts > 0, np.uint8(1), np.uint8(0))
    ends = pa.array([b"", b"\x00"], pa.binary()).take(pa.array(end))
    return joined([varint_column(zigzag(counts)), joined_lists(elements, offsets), ends])


@dataclass(frozen=True, slots=True)
class _Branch:
    """A branch of a union, as it is written."""

    index: bytes
    encode: Encode


def _union(schema: Type, column: pa.DataType, path: str) -> Encode:
    branches = branches_of(schema)
    null = next(
        (_index(number) for number, each in enumerate(schema.branches) if each.kind == "null"), None
    )
    places = {id(each): _index(number) for number, each in enumerate(schema.branches)}
    encode: Encode
    if pt.is_null(column):
        encode = _no_value
    elif branches.is_struct and pt.is_struct(column):
        chosen = _members(branches.members, places, column, path)
        encode = _chosen_member(chosen, null, path)
    else:
        encode = _first_that_fits(branches.members, places, column, path)

    def encode_all(values: pa.Array) -> pa.Array:
        if not values.null_count:
            return encode(values)
        if null is None:
            raise Unencodable(f"{path} is null, and the schema does not allow it")
        present = _present(values)
        if not len(present):
            return pa.array([null] * len(values), pa.binary())
        return _scattered(encode(present), values).fill_null(null)

    return encode_all


def _no_value(values: pa.Array) -> pa.Array:
    """A column without a type has nulls only; this is called with none of them."""
    assert not len(values)
    return pa.array([], pa.binary())


def _index(number: int) -> bytes:
    found = varint_column(zigzag(np.array([number], dtype=np.int64)))[0].as_py()
    assert isinstance(found, bytes)
    return found


def _first_that_fits(
    members: tuple[Type, ...], places: dict[int, bytes], column: pa.DataType, path: str
) -> Encode:
    """The branch that a column of this type is written as: the one of just this type, else the first that takes it."""
    refusals: list[InvalidSchema] = []
    same = [each for each in members if _is_same(each, column)]
    for member in [*same, *members]:
        try:
            inner = _encoder(member, column, path)
        except InvalidSchema as error:
            refusals.append(error)
            continue
        index = pa.scalar(places[id(member)], pa.binary())
        return lambda values: joined([index, inner(values)])
    raise (
        refusals[0] if refusals else InvalidSchema(f"{path} is {column}, and the schema wants null")
    )


def _is_same(member: Type, column: pa.DataType) -> bool:
    try:
        return arrow_type(member).equals(column)
    except InvalidSchema:  # it contains itself
        return False


def _members(
    members: tuple[Type, ...], places: dict[int, bytes], column: pa.DataType, path: str
) -> list[_Branch]:
    fields = fields_of(column)
    names = [f"member{number}" for number in range(len(members))]
    if [each.name for each in fields] != names:
        raise InvalidSchema(f"{path} is a union: its columns are {', '.join(names)}")
    return [
        _Branch(places[id(member)], _encoder(member, each.type, f"{path}.{each.name}"))
        for member, each in zip(members, fields, strict=True)
    ]


def _chosen_member(branches: list[_Branch], null: bytes | None, path: str) -> Encode:
    """Of each row the one member that is not null."""

    def encode(values: pa.Array) -> pa.Array:
        assert isinstance(values, pa.StructArray)
        parts = [] if null is None else [pa.array([null], pa.binary())]
        done = len(parts)
        order = np.full(len(values), -1 if null is None else 0, dtype=np.int64)
        used = np.zeros(len(values), dtype=np.int64)
        for number, branch in enumerate(branches):
            member = values.field(number)
            places = np.flatnonzero(member.is_valid().to_numpy(zero_copy_only=False))
            used[places] += 1
            some = branch.encode(member.take(pa.array(places)))
            parts.append(joined([pa.scalar(branch.index, pa.binary()), some]))
            order[places] = np.arange(done, done + len(places))
            done += len(places)
        if (used > 1).any() or (order < 0).any():
            raise Unencodable(f"{path} must have exactly one member of its union")
        return pa.concat_arrays(parts).take(pa.array(order))

    return encode
