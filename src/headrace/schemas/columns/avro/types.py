"""The Arrow type, and so the Spark type, of an Avro schema. Pure.

The types are those of Spark's own Avro reader: a union with null is a nullable column, a union of other types is a struct with
one field for each branch (`member0`, `member1`, …), of which at most one is not null. All columns are nullable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.column_types import (
    LOCAL_TIMESTAMP,
    MAX_DECIMAL_DIGITS,
    TIME,
    TIMESTAMP,
    fields_of,
    list_of,
    map_of,
)
from headrace.schemas.formats.avro.types import Type
from headrace.schemas.formats.schema_format import InvalidSchema

_PRIMITIVES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
# By the kind of the annotated type and the name of the logical type.
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): TIME,
    ("long", "time-micros"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "local-timestamp-millis"): LOCAL_TIMESTAMP,
    ("long", "local-timestamp-micros"): LOCAL_TIMESTAMP,
}
RECORDS: Final = ("record", "error")


class Branches(NamedTuple):
    """How a union is one column."""

    is_nullable: bool
    members: tuple[Type, ...]  # the branches that are not null
    widened: str  # "long" or "double" where all members are numbers that fit into it
    is_struct: bool


def branches_of(union: Type) -> Branches:
    """The column that a union is."""
    members = tuple(each for each in union.branches if each.kind != "null")
    kinds = {each.kind for each in members}
    plain = not any(logical_type(each) for each in members)
    widened = (
        "long" if kinds == {"int", "long"} else "double" if kinds == {"double", "float"} else ""
    )
    widened = widened if plain else ""
    return Branches(
        len(members) < len(union.branches), members, widened, len(members) > 1 and not widened
    )


def logical_type(type_: Type) -> str:
    """The name of a logical type that changes the column's type, or nothing. Avro ignores annotations that make no sense."""
    name = type_.props.get("logicalType")
    if not isinstance(name, str):
        return ""
    if name == "decimal":
        return name if decimal_type(type_) is not None else ""
    return name if (type_.kind, name) in _LOGICAL else ""


def decimal_type(type_: Type) -> pa.DataType | None:
    """The type of a decimal with a sensible precision and scale, or None."""
    if type_.kind not in ("bytes", "fixed") or type_.props.get("logicalType") != "decimal":
        return None
    precision, scale = type_.props.get("precision"), type_.props.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return None
    if not 0 <= scale <= precision or not 0 < precision <= MAX_DECIMAL_DIGITS:
        return None
    return pa.decimal128(precision, scale)


def arrow_type(type_: Type) -> pa.DataType:
    """The type of a column. Raises InvalidSchema where a type contains itself, which no column can."""
    return _arrow_type(type_, ())


def _arrow_type(type_: Type, within: tuple[Type, ...]) -> pa.DataType:
    if type_.kind in RECORDS:
        if any(type_ is each for each in within):
            raise InvalidSchema(
                f"the record {type_.full_name} contains itself, and columns cannot: name the fields that you need"
                " in a schema of the reader"
            )
        within = (*within, type_)
        return pa.struct([(each.name, _arrow_type(each.type, within)) for each in type_.fields])
    if type_.kind == "array":
        return list_of(_arrow_type(type_.element, within))
    if type_.kind == "map":
        return map_of(_arrow_type(type_.element, within))
    if type_.kind == "union":
        branches = branches_of(type_)
        if branches.widened:
            return _PRIMITIVES[branches.widened]
        types = [_arrow_type(each, within) for each in branches.members]
        if branches.is_struct:
            return pa.struct([(f"member{number}", each) for number, each in enumerate(types)])
        return types[0] if types else pa.null()
    decimal = decimal_type(type_)
    if decimal is not None:
        return decimal
    return _LOGICAL.get((type_.kind, logical_type(type_)), _PRIMITIVES[type_.kind])


def narrowed(type_: Type, wanted: pa.DataType, path: str) -> Type:
    """The schema with only those fields, in that order, that `wanted` has. Raises InvalidSchema where a column cannot be had."""
    if type_.kind in RECORDS and pt.is_struct(wanted):
        by_name = {each.name: each for each in type_.fields}
        chosen = []
        for column in fields_of(wanted):
            if column.name not in by_name:
                known = ", ".join(by_name)
                raise InvalidSchema(f"{path} has no field '{column.name}': it has {known}")
            found = by_name[column.name]
            inner = narrowed(found.type, column.type, f"{path}.{column.name}")
            chosen.append(replace(found, type=inner))
        return replace(type_, fields=chosen)
    if type_.kind == "array" and pt.is_list(wanted):
        return replace(type_, items=narrowed(type_.element, wanted.value_type, f"{path}.element"))
    if type_.kind == "map" and pt.is_map(wanted) and pt.is_string(wanted.key_type):
        return replace(type_, items=narrowed(type_.element, wanted.item_type, f"{path}.value"))
    if type_.kind == "union":
        return _narrowed_union(type_, wanted, path)
    if not arrow_type(type_).equals(wanted):
        raise InvalidSchema(f"{path} has the type {arrow_type(type_)}, not {wanted}")
    return type_


def _narrowed_union(union: Type, wanted: pa.DataType, path: str) -> Type:
    branches = branches_of(union)
    if branches.is_struct and pt.is_struct(wanted):
        names = [f"member{number}" for number in range(len(branches.members))]
        if [each.name for each in fields_of(wanted)] != names:
            raise InvalidSchema(f"{path} is a union: its fields are {', '.join(names)}")
        inner = [
            narrowed(member, column.type, f"{path}.{column.name}")
            for member, column in zip(branches.members, fields_of(wanted), strict=True)
        ]
    elif not branches.widened and len(branches.members) == 1:
        inner = [narrowed(branches.members[0], wanted, path)]
    else:
        if not arrow_type(union).equals(wanted):
            raise InvalidSchema(f"{path} has the type {arrow_type(union)}, not {wanted}")
        return union
    left = iter(inner)
    return replace(
        union, branches=[each if each.kind == "null" else next(left) for each in union.branches]
    )
