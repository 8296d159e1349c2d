"""The Arrow type, and so the Spark type, of a Protobuf message. Pure.

Fields that know whether they are set (optional fields, messages, members of a oneof) are null where they are not; others have
their zero. Messages that Google defines have types of their own: wrappers are nullable values, Timestamp and Duration are times,
Struct, Value and ListValue are JSON text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.column_types import (
    DURATION,
    TIMESTAMP,
    fields_of,
    list_of,
    map_between,
)
from headrace.schemas.formats.schema_format import InvalidSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

UNSIGNED_64: Final = pa.decimal128(20, 0)
ENUM, MESSAGE, GROUP = 14, 11, 10
SCALARS: Final = {
    1: pa.float64(),  # double
    2: pa.float32(),  # float
    3: pa.int64(),  # int64
    4: UNSIGNED_64,  # uint64
    5: pa.int32(),  # int32
    6: UNSIGNED_64,  # fixed64
    7: pa.int64(),  # fixed32
    8: pa.bool_(),  # bool
    9: pa.string(),  # string
    12: pa.binary(),  # bytes
    13: pa.int64(),  # uint32
    ENUM: pa.string(),
    15: pa.int32(),  # sfixed32
    16: pa.int64(),  # sfixed64
    17: pa.int32(),  # sint32
    18: pa.int64(),  # sint64
}
TIMESTAMP_NAME: Final = "google.protobuf.Timestamp"
DURATION_NAME: Final = "google.protobuf.Duration"
JSON_NAMES: Final = frozenset(
    {"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"}
)
WRAPPERS: Final = frozenset(
    f"google.protobuf.{each}Value"
    for each in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map, which Protobuf writes as repeated entries."""
    message = field.message_type
    return bool(message is not None and message.GetOptions().map_entry)


def entry_of(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """The key and the value of a map's entries."""
    assert field.message_type is not None
    return field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]


def enum_names(field: FieldDescriptor) -> dict[int, str]:
    """The values of an enum field, by number; of two names for a number the first."""
    assert field.enum_type is not None
    names: dict[int, str] = {}
    for each in field.enum_type.values:
        names.setdefault(each.number, each.name)
    return names


def column_type(message: Descriptor) -> pa.DataType:
    """The type of a column. Raises InvalidSchema where a message contains itself, which no column can."""
    return _message(message, ())


def _message(message: Descriptor, within: tuple[str, ...]) -> pa.DataType:
    special = special_type(message)
    if special is not None:
        return special
    if message.full_name in within:
        raise InvalidSchema(
            f"the message {message.full_name} contains itself, and columns cannot: name the fields that you need in a"
            " schema of the reader"
        )
    within = (*within, message.full_name)
    return pa.struct([(each.name, _field(each, within)) for each in message.fields])


def special_type(message: Descriptor) -> pa.DataType | None:
    """The type of a message that Google defines, None for all others."""
    name = message.full_name
    if name == TIMESTAMP_NAME:
        return TIMESTAMP
    if name == DURATION_NAME:
        return DURATION
    if name in JSON_NAMES:
        return pa.string()
    if name in WRAPPERS:
        return SCALARS[message.fields_by_name["value"].type]
    return None


def _field(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if is_map(field):
        key, value = entry_of(field)
        return map_between(_single(key, within), _single(value, within))
    single = _single(field, within)
    return list_of(single) if field.is_repeated else single


def _single(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if field.message_type is not None:
        return _message(field.message_type, within)
    return SCALARS[field.type]


def check_wanted(message: Descriptor, wanted: pa.DataType, path: str) -> None:
    """Raises InvalidSchema where a column of the wanted type cannot be had of a message: fields may be left out, and reordered."""
    special = special_type(message)
    if special is not None:
        _require(special, wanted, path)
        return
    if not pt.is_struct(wanted):
        raise InvalidSchema(f"{path} is a struct, not {wanted}")
    for column in fields_of(wanted):
        field = message.fields_by_name.get(column.name)
        if field is None:
            known = ", ".join(each.name for each in message.fields)
            raise InvalidSchema(f"{path} has no field '{column.name}': it has {known}")
        _check_field(field, column.type, f"{path}.{column.name}")


def _check_field(field: FieldDescriptor, wanted: pa.DataType, path: str) -> None:
    if is_map(field):
        if not pt.is_map(wanted):
            raise InvalidSchema(f"{path} is a map, not {wanted}")
        key, value = entry_of(field)
        _require(_single(key, ()), wanted.key_type, path)
        _check_single(value, wanted.item_type, f"{path}.value")
    elif field.is_repeated:
        if not pt.is_list(wanted):
            raise InvalidSchema(f"{path} is an array, not {wanted}")
        _check_single(field, wanted.value_type, f"{path}.element")
    else:
        _check_single(field, wanted, path)


def _check_single(field: FieldDescriptor, wanted: pa.DataType, path: str) -> None:
    if field.message_type is not None:
        check_wanted(field.message_type, wanted, path)
    else:
        _require(SCALARS[field.type], wanted, path)


def _require(found: pa.DataType, wanted: pa.DataType, path: str) -> None:
    if not found.equals(wanted):
        raise InvalidSchema(f"{path} has the type {found}, not {wanted}")
