"""Arrow columns to JSON texts that a JSON Schema allows. Pure.

Nulls of a struct's fields are left out, as schemas rarely allow them; other nulls are written. Times are RFC 3339, bytes base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.column_types import fields_of
from headrace.schemas.columns.decoded import Unencodable
from headrace.schemas.formats.json_schema.references import Json
from headrace.schemas.formats.schema_format import InvalidSchema

Convert = Callable[[Any], Any]

_BASE: Final = (
    "json-schema:///"  # where the validator looks for references that are no whole addresses
)


class JsonSchemaEncoder:
    """Writes columns of one type with one schema. Raises InvalidSchema for types that JSON has no form for."""

    def __init__(self, document: Json, others: Mapping[str, Json], column: pa.DataType) -> None:
        self._validator = _validator(document, others)
        self._convert = _converter(column, "value")

    def encode(self, column: pa.Array) -> pa.Array:
        """The text of each value, null for null. Raises Unencodable."""
        return pa.array(
            [None if each is None else self._encoded(each) for each in column.to_pylist()],
            pa.binary(),
        )

    def _encoded(self, value: Any) -> bytes:
        import jsonschema_rs

        tree = self._convert(value)
        try:
            self._validator.validate(tree)
            return json.dumps(
                tree, separators=(",", ":"), ensure_ascii=False, allow_nan=False
            ).encode()
        except jsonschema_rs.ValidationError as wrong:
            path = ".".join(["value", *map(str, wrong.instance_path)])
            raise Unencodable(f"{path}: {wrong.message}") from None
        except ValueError as wrong:  # of numbers that JSON has not
            raise Unencodable(f"value: {wrong}") from None


def _validator(document: Json, others: Mapping[str, Json]) -> Any:
    import jsonschema_rs

    resources = [(name if "://" in name else _BASE + name, each) for name, each in others.items()]
    try:
        registry = jsonschema_rs.Registry(resources=resources)
        return jsonschema_rs.validator_for(document, registry=registry)
    except ValueError as wrong:
        raise InvalidSchema(str(wrong)) from None


def _converter(column: pa.DataType, path: str) -> Convert:
    """Makes a value of a column one that JSON can say."""
    if pt.is_struct(column):
        return _struct(column, path)
    if pt.is_list(column):
        element = _nullable(column.value_type, f"{path}.element")
        return lambda values: [element(each) for each in values]
    if pt.is_map(column) and pt.is_string(column.key_type):
        value = _nullable(column.item_type, f"{path}.value")
        return lambda pairs: {name: value(each) for name, each in pairs}
    if pt.is_binary(column):
        return lambda value: base64.b64encode(value).decode()
    if pt.is_timestamp(column):
        return _zoned if column.tz is not None else lambda value: value.isoformat()
    if pt.is_date(column):
        return lambda value: value.isoformat()
    if pt.is_decimal(column):
        return lambda value: int(value) if value == int(value) else float(value)
    if any(each(column) for each in (pt.is_time, pt.is_duration, pt.is_interval)):
        raise InvalidSchema(f"{path} is {column}, which JSON has no form for: cast it")
    return lambda value: value


def _zoned(value: Any) -> str:
    text: str = value.astimezone(UTC).isoformat()
    return text.replace("+00:00", "Z")


def _nullable(column: pa.DataType, path: str) -> Convert:
    convert = _converter(column, path)
    return lambda value: None if value is None else convert(value)


def _struct(column: pa.DataType, path: str) -> Convert:
    converters = {
        each.name: _converter(each.type, f"{path}.{each.name}") for each in fields_of(column)
    }

    def convert(row: dict[str, Any]) -> dict[str, Any]:
        return {
            name: converter(row[name])
            for name, converter in converters.items()
            if row[name] is not None
        }

    return convert
