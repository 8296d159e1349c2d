"""An Avro schema for a column that nobody wrote a schema for. Pure.

Columns that may be null become unions with null whose default is null, so that the schema can lose and gain fields later.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.column_types import fields_of
from headrace.schemas.formats.avro.types import Json
from headrace.schemas.formats.schema_format import InvalidSchema

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRIMITIVES: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "bytes",
    pa.string(): "string",
    pa.null(): "null",
    pa.date32(): {"type": "int", "logicalType": "date"},
}


def avro_schema_of(column: pa.DataType, name: str) -> Json:
    """The schema, as JSON. `name` is the record's; records within get longer names. Raises InvalidSchema."""
    return _schema(column, valid_name(name), name)


def valid_name(text: str) -> str:
    """A name that Avro allows, as like the text as can be."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def _schema(column: pa.DataType, name: str, path: str) -> Json:
    if column in _PRIMITIVES:
        return _PRIMITIVES[column]
    if pt.is_decimal(column):
        more = {"precision": column.precision, "scale": column.scale}
        return {"type": "bytes", "logicalType": "decimal", **more}
    if pt.is_timestamp(column):
        kind = "local-timestamp-micros" if column.tz is None else "timestamp-micros"
        return {"type": "long", "logicalType": kind}
    if pt.is_time(column):
        return {"type": "long", "logicalType": "time-micros"}
    if pt.is_list(column):
        return {"type": "array", "items": _nullable(column.field(0), f"{name}_element", path)}
    if pt.is_map(column) and pt.is_string(column.key_type):
        return {"type": "map", "values": _nullable(column.item_field, f"{name}_value", path)}
    if pt.is_struct(column):
        return _record(column, name, path)
    raise InvalidSchema(f"{path} is {column}, which Avro has no type for")


def _record(column: pa.DataType, name: str, path: str) -> Json:
    fields = []
    for each in fields_of(column):
        if not _NAME.fullmatch(each.name):
            raise InvalidSchema(f"Avro allows no field with the name '{each.name}' in {path}")
        schema = _nullable(each, f"{name}_{each.name}", f"{path}.{each.name}")
        default = {"default": None} if each.nullable else {}
        fields.append({"name": each.name, "type": schema, **default})
    return {"type": "record", "name": name, "fields": fields}


def _nullable(each: pa.Field, name: str, path: str) -> Json:
    schema = _schema(each.type, name, path)
    return ["null", schema] if each.nullable and schema != "null" else schema
