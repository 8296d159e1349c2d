"""Records as lines, by the properties of Kafka's DefaultMessageFormatter. Bytes in, bytes out; no client in sight."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from headrace.cli.shell.command_line import Failure

Headers = Sequence[tuple[str, bytes | None]]
Deserializer = Callable[[bytes], bytes]
Show = Callable[[bytes, Headers], bytes]  # a key or a value, and the headers of its record

NO_TIMESTAMP: Final = 0
_TIMESTAMP_TYPES: Final = {1: "CreateTime", 2: "LogAppendTime"}
CONFLUENT_FORMATTERS: Final = (
    "AvroMessageFormatter",
    "JsonSchemaMessageFormatter",
    "ProtobufMessageFormatter",
)
KNOWN_FORMATTERS: Final = (
    "DefaultMessageFormatter",
    "LoggingMessageFormatter",
    "NoOpMessageFormatter",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a formatter can show of a record. Timestamp types are librdkafka's numbers."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    timestamp_type: int
    timestamp: int
    headers: Headers
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How a key or a value with a schema is shown, and the id of its schema."""

    text: Show
    schema_id: Show


class MessageFormatter:
    """Which columns, in which form."""

    def __init__(
        self, properties: Mapping[str, str], *, key: Shown | None = None, value: Shown | None = None
    ) -> None:
        """`key` and `value` are given where these have schemas; the others go by the deserializers that properties name."""

        def shown(name: str, default: str = "false") -> bool:
            return properties.get(name, default).strip().lower() == "true"

        self._timestamp = shown("print.timestamp")
        self._partition = shown("print.partition")
        self._offset = shown("print.offset")
        self._delivery = shown("print.delivery")
        self._epoch = shown("print.epoch")
        self._headers = shown("print.headers")
        self._key = shown("print.key")
        self._value = shown("print.value", "true")
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_end = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._show_key = key.text if key else _show(properties.get("key.deserializer"))
        self._show_value = value.text if value else _show(properties.get("value.deserializer"))
        with_ids = shown("print.schema.ids")
        self._key_id = key.schema_id if key and with_ids else None
        self._value_id = value.schema_id if value and with_ids else None
        self._id_separator = properties.get("schema.id.separator", "\t").encode()
        self._read_header = deserializer(properties.get("headers.deserializer"))

    def line(self, record: Record) -> bytes:
        """The record as a line. Raises Failure, which names the record, where a part of it cannot be read."""
        try:
            return self._line(record)
        except Failure as failure:
            place = f"offset {record.offset} of {record.topic}-{record.partition}"
            raise Failure(
                f"the record at {place} cannot be printed: {failure.what}",
                why=failure.why,
                hint=failure.hint,
            ) from failure

    def _line(self, record: Record) -> bytes:
        columns = self._position(record)
        if self._headers:
            columns.append(self._headers_text(record.headers))
        if self._key:
            columns.append(self._part(record.key, record.headers, self._show_key, self._key_id))
        if self._value:
            columns.append(
                self._part(record.value, record.headers, self._show_value, self._value_id)
            )
        return self._separator.join(columns) + self._line_end if columns else b""

    def _part(
        self, data: bytes | None, headers: Headers, show: Show, show_id: Show | None
    ) -> bytes:
        text = self._null if data is None else show(data, headers)
        if show_id is None:
            return text
        return text + self._id_separator + (self._null if data is None else show_id(data, headers))

    def _position(self, record: Record) -> list[bytes]:
        columns = []
        if self._timestamp:
            columns.append(timestamp_text(record).encode() or b"NO_TIMESTAMP")
        if self._partition:
            columns.append(b"Partition:%d" % record.partition)
        if self._offset:
            columns.append(b"Offset:%d" % record.offset)
        if self._delivery:
            columns.append(b"Delivery:NOT_PRESENT")
        if self._epoch:
            epoch = record.leader_epoch
            columns.append(b"Epoch:NOT_PRESENT" if epoch is None else b"Epoch:%d" % epoch)
        return columns

    def _headers_text(self, headers: Headers) -> bytes:
        if not headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            name.encode() + b":" + (self._null if value is None else self._read_header(value))
            for name, value in headers
        )


def timestamp_text(record: Record) -> str:
    """`CreateTime:123`, or nothing where a record has no timestamp."""
    kind = _TIMESTAMP_TYPES.get(record.timestamp_type)
    return "" if kind is None else f"{kind}:{record.timestamp}"


def logged(record: Record) -> str:
    """How Kafka's LoggingMessageFormatter logs a record."""

    def text(value: bytes | None) -> str:
        return "null" if value is None else value.decode(errors="replace")

    timestamp = timestamp_text(record)
    return (
        f"{timestamp + ', ' if timestamp else ''}key:{text(record.key)}, value:{text(record.value)}"
    )


def formatter_name(class_name: str) -> str:
    """The formatter that a Java class name means. Raises Failure where there is none."""
    name = class_name.rpartition(".")[2].rpartition("$")[2]
    if name in CONFLUENT_FORMATTERS:
        return "DefaultMessageFormatter"  # of values with schemas
    if name not in KNOWN_FORMATTERS:
        raise Failure(
            f"the formatter {class_name} is not known",
            why="Java classes cannot be loaded here",
            hint=f"one of {', '.join((*KNOWN_FORMATTERS, *CONFLUENT_FORMATTERS))}",
        )
    return name


def deserializer(class_name: str | None) -> Deserializer:
    """What a Java deserializer would make of the bytes, as text. Raises Failure where it is not known."""
    if not class_name:
        return _as_it_is
    name = class_name.rpartition(".")[2]
    if name not in DESERIALIZERS:
        raise Failure(
            f"the deserializer {class_name} is not known",
            why="Java classes cannot be loaded here",
            hint=f"one of {', '.join(DESERIALIZERS)}",
        )
    return DESERIALIZERS[name]


def _show(class_name: str | None) -> Show:
    read = deserializer(class_name)
    return lambda data, _headers: read(data)


def _as_it_is(data: bytes) -> bytes:
    return data


def _number(form: str, size: int) -> Deserializer:
    def read(data: bytes) -> bytes:
        if len(data) != size:
            raise Failure(
                f"Size of data received by deserializer is not {size}", why=f"it is {len(data)}"
            )
        return str(struct.unpack(form, data)[0]).encode()

    return read


def _boolean(data: bytes) -> bytes:
    if data not in (b"\x00", b"\x01"):
        raise Failure(f"Unexpected byte received by BooleanDeserializer: {data.hex()}")
    return b"true" if data == b"\x01" else b"false"


def _uuid(data: bytes) -> bytes:
    try:
        return str(UUID(data.decode())).encode()
    except ValueError as wrong:
        raise Failure("Error parsing data into UUID", why=str(wrong)) from wrong


DESERIALIZERS: Final[dict[str, Deserializer]] = {
    "StringDeserializer": _as_it_is,
    "ByteArrayDeserializer": _as_it_is,
    "BytesDeserializer": _as_it_is,
    "ByteBufferDeserializer": _as_it_is,
    "ShortDeserializer": _number(">h", 2),
    "IntegerDeserializer": _number(">i", 4),
    "LongDeserializer": _number(">q", 8),
    "FloatDeserializer": _number(">f", 4),
    "DoubleDeserializer": _number(">d", 8),
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
}
