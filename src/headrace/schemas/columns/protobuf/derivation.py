"""A Protobuf schema for a column that nobody wrote a schema for. Pure."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.column_types import DURATION, TIMESTAMP, fields_of
from headrace.schemas.formats.schema_format import InvalidSchema

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS: Final = {
    pa.bool_(): "bool",
    pa.int8(): "int32",
    pa.int16(): "int32",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "bytes",
    pa.string(): "string",
}
_TIMES: Final = {
    TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
    DURATION: ("google.protobuf.Duration", "google/protobuf/duration.proto"),
}


def protobuf_schema_of(column: pa.DataType, name: str) -> str:
    """The `.proto` text of a message of this name. Raises InvalidSchema."""
    if not pt.is_struct(column):
        raise InvalidSchema(
            f"{name} is {column}, and a Protobuf message has fields: write a struct"
        )
    imports: set[str] = set()
    message = _message(column, _valid(name), name, "", imports)
    lines = ['syntax = "proto3";', "", *(f'import "{each}";' for each in sorted(imports))]
    return "\n".join([*lines, "", *message]) + "\n"


def _valid(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return name if re.match(r"[A-Za-z]", name) else f"M{name}"


def _message(
    column: pa.DataType, name: str, path: str, indent: str, imports: set[str]
) -> list[str]:
    lines = [f"{indent}message {name} {{"]
    inside = indent + "  "
    for number, each in enumerate(fields_of(column), 1):
        if not _NAME.fullmatch(each.name):
            raise InvalidSchema(f"Protobuf allows no field with the name '{each.name}' in {path}")
        where = f"{path}.{each.name}"
        if pt.is_list(each.type):
            kind = _single(each.type.value_type, each.name, where, inside, imports, lines)
            kind = f"repeated {kind}"
        elif pt.is_map(each.type):
            key = _SCALARS.get(each.type.key_type, "")
            if not key or key in ("float", "double", "bytes"):
                raise InvalidSchema(
                    f"{where} has keys of {each.type.key_type}, which Protobuf has not"
                )
            value = _single(each.type.item_type, each.name, where, inside, imports, lines)
            kind = f"map<{key}, {value}>"
        else:
            kind = _single(each.type, each.name, where, inside, imports, lines)
            is_message = each.type in _TIMES or pt.is_struct(each.type)
            kind = f"optional {kind}" if each.nullable and not is_message else kind
        lines.append(f"{inside}{kind} {each.name} = {number};")
    return [*lines, f"{indent}}}"]


def _single(
    column: pa.DataType, name: str, path: str, indent: str, imports: set[str], lines: list[str]
) -> str:
    """The name of a type; the definition of a message is put into `lines`."""
    if column in _SCALARS:
        return _SCALARS[column]
    if column in _TIMES:
        kind, file = _TIMES[column]
        imports.add(file)
        return kind
    if pt.is_struct(column):
        inner = _valid("".join(part.capitalize() for part in name.split("_")) or name)
        lines += _message(column, inner, path, indent, imports)
        return inner
    raise InvalidSchema(
        f"{path} is {column}, which Protobuf has no type for: cast it, or give a schema"
    )
