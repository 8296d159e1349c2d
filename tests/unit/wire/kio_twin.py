"""The same message as kio's dataclass: an independent codec to compare with."""

import typing
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from headrace.wire.message import NO_UUID, Message

DATA_NAMES = {
    "ConsumerProtocolSubscription": "consumer_protocol_subscription",
    "ConsumerProtocolAssignment": "consumer_protocol_assignment",
}


def kio_class(cls: type[Message], version: int) -> Any:
    if cls.__name__ in DATA_NAMES:
        return load_entity_schema(DATA_NAMES[cls.__name__], version, EntityType.data)
    name = api_key_map[cls.API_KEY]  # type: ignore[attr-defined]  # only data schemas lack it
    if cls.__name__.endswith("Request"):
        return load_entity_schema(name, version, EntityType.request)
    return load_entity_schema(name, version, EntityType.response)


def to_kio(message: Any, kio_type: Any) -> Any:
    hints = typing.get_type_hints(kio_type)
    values = {}
    for item in fields(kio_type):
        kind = item.metadata.get("kafka_type")
        value = getattr(message, _our_name(item.name, kind))
        nested = _nested_type(hints[item.name])
        if kind is None and value is None and item.metadata.get("tag") is not None:
            value = _default_struct(message, item.name)
        values[item.name] = _convert(value, kind, nested)
    return kio_type(**values)


def kio_encode(message: Any, version: int) -> bytes:
    kio_type = kio_class(type(message), version)
    buffer = BytesIO()
    entity_writer(kio_type)(buffer, to_kio(message, kio_type))
    return buffer.getvalue()


def kio_decode(cls: type[Message], version: int, raw: bytes) -> Any:
    return entity_reader(kio_class(cls, version))(raw, 0)[0]


def _our_name(name: str, kind: str | None) -> str:
    is_time = kind is not None and kind.startswith(("timedelta", "datetime"))
    return name.rstrip("_") + ("_ms" if is_time else "")


def _default_struct(message: Any, name: str) -> Any:
    (struct,) = (row[1] for row in message.SCHEMA if row[0] == name)
    return struct()


def _nested_type(hint: Any) -> Any:
    for inner in (hint, *typing.get_args(hint)):
        for one in (inner, *typing.get_args(inner)):
            if hasattr(one, "__dataclass_fields__"):
                return one
    return None


def _convert(value: Any, kind: str | None, nested: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_convert(one, kind, nested) for one in value)
    if value is None:
        return None
    match kind:
        case None:
            return to_kio(value, nested)
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else datetime.fromtimestamp(value / 1000, UTC)
        case "uuid":
            return None if value == NO_UUID else value
    return value
