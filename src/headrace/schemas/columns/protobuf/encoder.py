"""Arrow columns to Protobuf messages, by the protobuf library. Pure.

Columns go into the fields of the same names. A null leaves a field unset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.codec import PinnedSchema
from headrace.schemas.columns.column_types import fields_of
from headrace.schemas.columns.decoded import Unencodable
from headrace.schemas.columns.protobuf import types
from headrace.schemas.columns.protobuf.messages import indexes_of, message_class, message_type
from headrace.schemas.formats.schema_format import InvalidSchema
from headrace.schemas.wire_format import encode_message_indexes

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

Fill = Callable[[Any, Any], None]  # a message, and the value that goes into it
Convert = Callable[[Any], Any]  # a value of Arrow's as one of the library's

_MICROS = 1_000_000


class ProtobufEncoder:
    """Writes columns of one type as one message. Raises InvalidSchema where the two do not fit."""

    def __init__(self, schema: PinnedSchema, column: pa.DataType) -> None:
        message = message_type(schema)
        self._class = message_class(message)
        self._fill = _filler(message, column, "value")
        self._indexes = encode_message_indexes(indexes_of(schema))
        self._plain = _plain_times(column)

    def encode(self, column: pa.Array) -> pa.Array:
        """Each message behind its message indexes, null for null. Raises Unencodable."""
        return pa.array(
            [
                None if row is None else self._encoded(row)
                for row in column.cast(self._plain).to_pylist()
            ],
            pa.binary(),
        )

    def _encoded(self, row: Any) -> bytes:
        from google.protobuf.message import EncodeError

        message = self._class()
        try:
            self._fill(message, row)
            return self._indexes + message.SerializeToString(deterministic=True)
        except EncodeError as error:
            raise Unencodable(str(error)) from None


def _plain_times(column: pa.DataType) -> pa.DataType:
    """The type with times as whole numbers, which is what Protobuf counts."""
    if pt.is_timestamp(column) or pt.is_duration(column):
        return pa.int64()
    if pt.is_struct(column):
        return pa.struct([(each.name, _plain_times(each.type)) for each in fields_of(column)])
    if pt.is_list(column):
        return pa.list_(_plain_times(column.value_type))
    if pt.is_map(column):
        return pa.map_(column.key_type, _plain_times(column.item_type))
    return column


def _filler(message: Descriptor, column: pa.DataType, path: str) -> Fill:
    special = _special_filler(message, column, path)
    if special is not None:
        return special
    if not pt.is_struct(column):
        raise InvalidSchema(f"{path} is {column}, and {message.full_name} wants a struct")
    fillers = _fillers(message, column, path)
    required = [each.name for each in message.fields if each.is_required]
    missing = [name for name in required if name not in fillers]
    if missing:
        raise InvalidSchema(
            f"{path} has no column '{missing[0]}', which {message.full_name} requires"
        )
    oneofs = [[each.name for each in one.fields] for one in message.oneofs]

    def fill(target: Any, row: Any) -> None:
        for name, filler in fillers.items():
            value = row[name]
            if value is not None:
                filler(target, value)
            elif name in required:
                raise Unencodable(f"{path}.{name} is null, and the schema does not allow it")
        for names in oneofs:
            if sum(row.get(name) is not None for name in names) > 1:
                raise Unencodable(f"{path} has more than one of {', '.join(names)}")

    return fill


def _fillers(message: Descriptor, column: pa.DataType, path: str) -> dict[str, Fill]:
    fillers: dict[str, Fill] = {}
    for each in fields_of(column):
        field = message.fields_by_name.get(each.name)
        if field is None:
            raise InvalidSchema(
                f"{path} has the column '{each.name}', and {message.full_name} has no such field"
            )
        fillers[each.name] = _field_filler(field, each.type, f"{path}.{each.name}")
    return fillers


def _special_filler(message: Descriptor, column: pa.DataType, path: str) -> Fill | None:
    wanted = types.special_type(message)
    if wanted is None:
        return None
    name = message.full_name
    fits = pt.is_integer(column) and name in types.WRAPPERS and not pt.is_string(wanted)
    if not column.equals(wanted) and not fits:
        raise InvalidSchema(f"{path} is {column}, and {name} wants {wanted}")
    if name in (types.TIMESTAMP_NAME, types.DURATION_NAME):
        return _fill_time
    if name in types.JSON_NAMES:
        return _fill_json(path)
    convert = _converter(message.fields_by_name["value"], column, path)

    def fill(target: Any, value: Any) -> None:
        target.SetInParent()
        _assign(target, "value", convert(value), path)

    return fill


def _fill_time(target: Any, micros: int) -> None:
    seconds, rest = divmod(micros, _MICROS)
    if target.DESCRIPTOR.full_name == types.DURATION_NAME and seconds < 0 < rest:
        seconds, rest = seconds + 1, rest - _MICROS  # both parts of a duration have its sign
    target.SetInParent()
    target.seconds, target.nanos = seconds, rest * 1000


def _fill_json(path: str) -> Fill:
    def fill(target: Any, text: str) -> None:
        from google.protobuf.json_format import Parse, ParseError

        try:
            target.SetInParent()
            Parse(text, target)
        except ParseError as error:
            raise Unencodable(f"{path}: {error}") from None

    return fill


def _field_filler(field: FieldDescriptor, column: pa.DataType, path: str) -> Fill:
    name = field.name
    if types.is_map(field):
        return _map_filler(field, column, path)
    if field.is_repeated:
        return _list_filler(field, column, path)
    if field.message_type is not None:
        inner = _filler(field.message_type, column, path)

        def fill_message(target: Any, value: Any) -> None:
            part = getattr(target, name)
            part.SetInParent()
            inner(part, value)

        return fill_message
    convert = _converter(field, column, path)
    return lambda target, value: _assign(target, name, convert(value), path)


def _assign(target: Any, name: str, value: Any, path: str) -> None:
    try:
        setattr(target, name, value)
    except (TypeError, ValueError) as error:
        raise Unencodable(f"{path}: {error}") from None


def _list_filler(field: FieldDescriptor, column: pa.DataType, path: str) -> Fill:
    if not pt.is_list(column):
        raise InvalidSchema(f"{path} is {column}, and the schema wants an array")
    name = field.name
    if field.message_type is not None:
        inner = _filler(field.message_type, column.value_type, f"{path}.element")

        def fill_messages(target: Any, values: Any) -> None:
            part = getattr(target, name)
            for each in values:
                inner(part.add(), _present(each, path))

        return fill_messages
    convert = _converter(field, column.value_type, f"{path}.element")

    def fill(target: Any, values: Any) -> None:
        try:
            getattr(target, name).extend([convert(_present(each, path)) for each in values])
        except (TypeError, ValueError) as error:
            raise Unencodable(f"{path}: {error}") from None

    return fill


def _present(value: Any, path: str) -> Any:
    if value is None:
        raise Unencodable(f"{path} has a null among its values, which Protobuf cannot write")
    return value


def _map_filler(field: FieldDescriptor, column: pa.DataType, path: str) -> Fill:
    if not pt.is_map(column):
        raise InvalidSchema(f"{path} is {column}, and the schema wants a map")
    key_field, value_field = types.entry_of(field)
    name, key = field.name, _converter(key_field, column.key_type, f"{path}.key")
    if value_field.message_type is not None:
        inner = _filler(value_field.message_type, column.item_type, f"{path}.value")

        def fill_messages(target: Any, pairs: Any) -> None:
            part = getattr(target, name)
            for each, value in pairs:
                inner(part[key(each)], _present(value, path))

        return fill_messages
    convert = _converter(value_field, column.item_type, f"{path}.value")

    def fill(target: Any, pairs: Any) -> None:
        part = getattr(target, name)
        try:
            for each, value in pairs:
                part[key(each)] = convert(_present(value, path))
        except (TypeError, ValueError) as error:
            raise Unencodable(f"{path}: {error}") from None

    return fill


def _converter(field: FieldDescriptor, column: pa.DataType, path: str) -> Convert:
    """Makes a value of this column's one that the library takes; it refuses by itself what is out of range."""
    wanted = types.SCALARS[field.type]
    if field.type == types.ENUM and pt.is_string(column):
        return _enum_converter(field, path)
    is_number = pt.is_integer(wanted) or pt.is_decimal(wanted)
    if is_number and (pt.is_integer(column) or (pt.is_decimal(column) and column.scale == 0)):
        return int
    if pt.is_floating(wanted) and (pt.is_floating(column) or pt.is_integer(column)):
        return float
    if not column.equals(wanted):
        raise InvalidSchema(f"{path} is {column}, and the schema wants {wanted}")
    return lambda value: value


def _enum_converter(field: FieldDescriptor, path: str) -> Convert:
    enum = field.enum_type
    assert enum is not None
    numbers = {name: each.number for name, each in enum.values_by_name.items()}

    def convert(name: str) -> int:
        number = numbers.get(name)
        if number is None:
            raise Unencodable(f"{path}: '{name}' is no value of {enum.full_name}")
        return number

    return convert
