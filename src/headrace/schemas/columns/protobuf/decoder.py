"""Protobuf messages to Arrow columns: the protobuf library parses each message, and columns are made of one field of all of them.

Fields go by their numbers, so what another version of the schema wrote is read as it is: unknown fields are passed over, missing
ones are null or zero. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.byte_columns import ByteSpans, Int64s
from headrace.schemas.columns.codec import PinnedSchema
from headrace.schemas.columns.column_types import fields_of
from headrace.schemas.columns.decoded import Decoded
from headrace.schemas.columns.protobuf import types
from headrace.schemas.columns.protobuf.messages import (
    has_message,
    message_at,
    message_class,
    message_type,
)
from headrace.schemas.wire_format import FIRST_MESSAGE, Framed, NotFramed, parse_protobuf

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

Messages = Sequence[Any]
Column = Callable[[Messages], pa.Array]

_TOGETHER: Final = 4096  # messages that are parsed before their columns are made: all of them at once would fall out of the caches
_MICROS: Final = 1_000_000
_WRONG: Final = (
    ArithmeticError,
    TypeError,
    ValueError,
)  # of single values; UnicodeError and ArrowInvalid are among them


class ProtobufDecoder:
    """Reads messages of the writer's schema as the reader's message. Raises InvalidSchema where the type cannot be had."""

    def __init__(self, writer: PinnedSchema, reader: PinnedSchema, wanted: pa.DataType) -> None:
        message = message_type(reader)
        types.check_wanted(message, wanted, "value")
        self._writer = writer
        self._reader_name = reader.message
        # A reader's own schema may name its message as it likes; a name that the writer has, too, means that message.
        self._names_count = has_message(writer, reader.message)
        self._wanted = wanted
        self._parse = message_class(message).FromString
        self._column = _message_column(message, wanted)

    def decode(self, payload: ByteSpans, header_rest: bytes | None = None) -> Decoded:
        """The messages behind their message indexes."""
        errors: dict[int, str] = {}
        rows, messages = self._messages(payload, header_rest, errors)
        parts = [pa.nulls(0, self._wanted)]
        kept: list[int] = []
        for first in range(0, len(rows), _TOGETHER):
            some = np.arange(first, min(first + _TOGETHER, len(rows)))
            fine, column = self._parsed(rows[some].tolist(), messages.take(some), errors)
            parts.append(column)
            kept += fine
        values = pa.concat_arrays(parts)
        if not errors:
            return Decoded(values)
        order = np.zeros(len(payload), dtype=np.int64)
        order[kept] = np.arange(len(kept))
        absent = np.ones(len(payload), dtype=np.bool_)
        absent[kept] = False
        return Decoded(values.take(pa.array(order, mask=absent)), errors)

    def _parsed(
        self, rows: list[int], messages: ByteSpans, errors: dict[int, str]
    ) -> tuple[list[int], pa.Array]:
        """The rows whose messages are sound, and their column."""
        parsed: list[Any] = []
        kept: list[int] = []
        for row, data in zip(rows, messages.column().to_pylist(), strict=True):
            try:
                parsed.append(self._parse(data))
                kept.append(row)
            except Exception as error:  # noqa: BLE001 - the library has errors of its own for what is no message
                errors[row] = f"not a {self._reader_name}: {error}"
        return kept, self._columns(parsed, kept, errors)

    def _columns(self, parsed: list[Any], kept: list[int], errors: dict[int, str]) -> pa.Array:
        """The columns of the messages. A message with a value that no column can hold goes from `kept` to `errors`."""
        try:
            return self._column(parsed)
        except _WRONG:
            pass
        rows: list[pa.Array] = [pa.nulls(0, self._wanted)]
        fine = []
        for row, message in zip(kept, parsed, strict=True):
            try:
                rows.append(self._column([message]))
                fine.append(row)
            except _WRONG as error:
                errors[row] = str(error)
        kept[:] = fine
        return pa.concat_arrays(rows)

    def _messages(
        self, payload: ByteSpans, header_rest: bytes | None, errors: dict[int, str]
    ) -> tuple[Int64s, ByteSpans]:
        """The rows whose message is the wanted one, and where their messages lie."""
        every = np.arange(len(payload))
        if header_rest is not None:
            try:
                indexes, _ = parse_protobuf(Framed(0, b"", header_rest))
                wrong = self._wrong_message(indexes)
            except NotFramed as error:
                wrong = str(error)
            if wrong:
                errors.update((row, wrong) for row in range(len(payload)))
                every = every[:0]
            return every, payload.take(every)
        is_first = (payload.buffer.data[payload.start] == 0) & (payload.end > payload.start)
        start = payload.start + 1
        fine = is_first & (self._wrong_message(FIRST_MESSAGE) == "")
        for row in np.flatnonzero(~fine).tolist():
            piece = payload.piece(row)
            try:
                indexes, message = parse_protobuf(Framed(0, piece))
                wrong = self._wrong_message(indexes)
            except NotFramed as error:
                wrong = str(error)
            if wrong:
                errors[row] = wrong
            else:
                fine[row] = True
                start[row] = payload.end[row] - len(message)
        rows = np.flatnonzero(fine)
        return rows, ByteSpans(payload.buffer, start[rows], payload.end[rows])

    def _wrong_message(self, indexes: tuple[int, ...]) -> str:
        try:
            name = message_at(self._writer, indexes)
        except LookupError:
            return f"the writer's schema has no message at {list(indexes)}"
        if self._names_count and name != self._reader_name:
            return f"the record is a {name}, not a {self._reader_name}"
        return ""


def _message_column(message: Descriptor, wanted: pa.DataType) -> Column:
    """Makes a column of messages, none of which is missing."""
    special = _special_column(message)
    if special is not None:
        return special
    columns = fields_of(wanted)
    makers = [_field_column(message.fields_by_name[each.name], each.type) for each in columns]

    def make(messages: Messages) -> pa.Array:
        if not makers:
            return pa.array([{}] * len(messages), wanted)
        return pa.StructArray.from_arrays([each(messages) for each in makers], fields=columns)

    return make


def _special_column(message: Descriptor) -> Column | None:
    name = message.full_name
    if name in (types.TIMESTAMP_NAME, types.DURATION_NAME):
        wanted = types.special_type(message)
        assert wanted is not None
        return lambda messages: pa.array(
            [each.seconds * _MICROS + each.nanos // 1000 for each in messages], pa.int64()
        ).cast(wanted)
    if name in types.JSON_NAMES:
        from google.protobuf.json_format import MessageToDict

        return lambda messages: pa.array(
            [json.dumps(MessageToDict(each), separators=(",", ":")) for each in messages],
            pa.string(),
        )
    if name in types.WRAPPERS:
        values = _values(message.fields_by_name["value"])
        return lambda messages: values([each.value for each in messages])
    return None


def _field_column(field: FieldDescriptor, wanted: pa.DataType) -> Column:
    name = field.name
    if types.is_map(field):
        return _map_column(field, wanted)
    if field.is_repeated:
        return _list_column(field, wanted)
    if field.message_type is not None:
        return _optional_message(field, wanted)
    values = _values(field)
    if field.has_presence:
        return lambda messages: values(
            [getattr(each, name) if each.HasField(name) else None for each in messages]
        )
    return lambda messages: values([getattr(each, name) for each in messages])


def _values(field: FieldDescriptor) -> Callable[[list[Any]], pa.Array]:
    """Makes a column of the library's values of a field without parts."""
    if field.type == types.ENUM:
        names = types.enum_names(field)
        return lambda values: pa.array(
            [None if each is None else names.get(each) or str(each) for each in values], pa.string()
        )
    wanted = types.SCALARS[field.type]
    if pt.is_decimal(wanted):
        return lambda values: pa.array(values, pa.uint64()).cast(wanted)
    return lambda values: pa.array(values, wanted)


def _optional_message(field: FieldDescriptor, wanted: pa.DataType) -> Column:
    assert field.message_type is not None
    name, inner = field.name, _message_column(field.message_type, wanted)

    def make(messages: Messages) -> pa.Array:
        is_set = np.fromiter(
            (each.HasField(name) for each in messages), dtype=np.bool_, count=len(messages)
        )
        found = inner([getattr(each, name) for each in messages if each.HasField(name)])
        if is_set.all():
            return found
        return found.take(pa.array(np.maximum(np.cumsum(is_set) - 1, 0), mask=~is_set))

    return make


def _list_column(field: FieldDescriptor, wanted: pa.DataType) -> Column:
    name, element = field.name, _element(field, wanted.value_type)

    def make(messages: Messages) -> pa.Array:
        lists = [getattr(each, name) for each in messages]
        return pa.ListArray.from_arrays(
            _offsets(lists), element(list(chain.from_iterable(lists))), type=wanted
        )

    return make


def _map_column(field: FieldDescriptor, wanted: pa.DataType) -> Column:
    key_field, value_field = types.entry_of(field)
    name, key = field.name, _values(key_field)
    value = _element(value_field, wanted.item_type)

    def make(messages: Messages) -> pa.Array:
        maps = [getattr(each, name) for each in messages]
        entries = [pair for each in maps for pair in each.items()]
        keys, values = [each[0] for each in entries], [each[1] for each in entries]
        return pa.MapArray.from_arrays(_offsets(maps), key(keys), value(values), type=wanted)

    return make


def _element(field: FieldDescriptor, wanted: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return (
        _values(field)
        if field.message_type is None
        else _message_column(field.message_type, wanted)
    )


def _offsets(parts: Sequence[Any]) -> pa.Array:
    ends = np.zeros(len(parts) + 1, dtype=np.int32)
    np.cumsum([len(each) for each in parts], out=ends[1:])
    return pa.array(ends)
