"""A JSON Schema for a column that nobody wrote a schema for. Pure.

Objects are closed (`additionalProperties` is false), because only of closed objects does a registry let later schemas add properties.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.column_types import fields_of
from headrace.schemas.formats.json_schema.references import Json
from headrace.schemas.formats.schema_format import InvalidSchema

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_SCALARS: Final = {
    pa.bool_(): {"type": "boolean"},
    pa.int8(): {"type": "integer", "connect.type": "int8"},
    pa.int16(): {"type": "integer", "connect.type": "int16"},
    pa.int32(): {"type": "integer", "connect.type": "int32"},
    pa.int64(): {"type": "integer"},
    pa.float32(): {"type": "number", "connect.type": "float32"},
    pa.float64(): {"type": "number"},
    pa.string(): {"type": "string"},
    pa.binary(): {"type": "string", "contentEncoding": "base64"},
    pa.date32(): {"type": "string", "format": "date"},
}


def json_schema_of(column: pa.DataType, name: str) -> Json:
    """The schema, as JSON. Raises InvalidSchema."""
    return {"$schema": _DRAFT, "title": name, **_schema(column, name)}


def _schema(column: pa.DataType, path: str) -> Json:
    if column in _SCALARS:
        return dict(_SCALARS[column])
    if pt.is_decimal(column):
        return {"type": "number"}
    if pt.is_timestamp(column):
        zoned = {"format": "date-time"} if column.tz is not None else {}
        return {"type": "string", **zoned}
    if pt.is_list(column):
        return {"type": "array", "items": _nullable(column.field(0), path)}
    if pt.is_map(column) and pt.is_string(column.key_type):
        return {"type": "object", "additionalProperties": _nullable(column.item_field, path)}
    if pt.is_struct(column):
        fields = fields_of(column)
        found: dict[str, Json] = {
            "type": "object",
            "properties": {each.name: _nullable(each, f"{path}.{each.name}") for each in fields},
            "additionalProperties": False,
        }
        required = [each.name for each in fields if not each.nullable]
        return found | ({"required": required} if required else {})
    raise InvalidSchema(f"{path} is {column}, which JSON has no form for")


def _nullable(each: pa.Field, path: str) -> Json:
    schema = _schema(each.type, path)
    return {"oneOf": [{"type": "null"}, schema]} if each.nullable else schema
