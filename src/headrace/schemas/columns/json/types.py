"""The Arrow type, and so the Spark type, of a JSON Schema. Pure.

What a column cannot be (values of several types, schemas that contain themselves, anything at all) is text: the JSON of the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from headrace.schemas.columns.column_types import TIMESTAMP, list_of, map_of
from headrace.schemas.formats.json_schema.references import Documents, Json, Place

_TEXT: Final = pa.string()
_NUMBERS: Final = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
}  # Kafka Connect's hints, under connect.type
_KINDS: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}


def column_type(document: Json, others: Mapping[str, Json]) -> pa.DataType:
    """The type of a column of documents of this schema."""
    documents = Documents(document, others)
    return _Types(documents).of(Place(document, documents.root), ())


class _Types:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def of(self, place: Place, within: tuple[int, ...]) -> pa.DataType:
        place = self._documents.resolve(place)
        schema = place.schema
        if not isinstance(schema, dict) or id(schema) in within:
            return _TEXT
        within = (*within, id(schema))
        for key in ("oneOf", "anyOf"):
            if isinstance(schema.get(key), list) and "properties" not in schema:
                return self._one_of(place, schema[key], within)
        properties = self._properties(place, within)
        if properties:
            return pa.struct(list(properties.items()))
        match _kind(schema):
            case "object":
                return self._map(place, within)
            case "array":
                items = schema.get("items")
                element = self.of(place.at(items), within) if isinstance(items, dict) else _TEXT
                return list_of(element)
            case kind:
                return _scalar(schema, kind)

    def _one_of(self, place: Place, schemas: list[Json], within: tuple[int, ...]) -> pa.DataType:
        others = [each for each in schemas if not _is_null(each)]
        types = [self.of(place.at(each), within) for each in others]
        if types and all(each.equals(types[0]) for each in types):
            return types[0]
        is_number = types and all(each in (pa.int64(), pa.float64()) for each in types)
        return pa.float64() if is_number else _TEXT

    def _properties(self, place: Place, within: tuple[int, ...]) -> dict[str, pa.DataType]:
        """The properties of an object, those that `allOf` brings included."""
        found: dict[str, pa.DataType] = {}
        schema = place.schema
        for each in schema.get("allOf") or ():
            part = self._documents.resolve(place.at(each))
            if isinstance(part.schema, dict) and id(part.schema) not in within:
                found |= self._properties(part, (*within, id(part.schema)))
        properties = schema.get("properties")
        if isinstance(properties, dict):
            found |= {name: self.of(place.at(each), within) for name, each in properties.items()}
        return found

    def _map(self, place: Place, within: tuple[int, ...]) -> pa.DataType:
        values = place.schema.get("additionalProperties")
        if not isinstance(values, dict):
            return _TEXT
        return map_of(self.of(place.at(values), within))


def _is_null(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _kind(schema: dict[str, Any]) -> str:
    """The one type of the values, or nothing where there are several."""
    given = schema.get("type")
    if given is None:
        given = _guessed(schema)
    kinds = {given} if isinstance(given, str) else set(given or ())
    kinds.discard("null")
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else ""


def _guessed(schema: dict[str, Any]) -> list[str]:
    if "additionalProperties" in schema:
        return ["object"]
    if "items" in schema:
        return ["array"]
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
    return sorted({_KINDS.get(type(each), "") for each in values if each is not None})


def _scalar(schema: dict[str, Any], kind: str) -> pa.DataType:
    hint = schema.get("connect.type")
    match kind:
        case "integer":
            return _NUMBERS.get(str(hint), pa.int64())
        case "number":
            return _NUMBERS.get(str(hint), pa.float64())
        case "boolean":
            return pa.bool_()
        case "string" if hint == "bytes" or schema.get("contentEncoding") == "base64":
            return pa.binary()
        case "string" if schema.get("format") == "date-time":
            return TIMESTAMP
        case "string" if schema.get("format") == "date":
            return pa.date32()
    return _TEXT
