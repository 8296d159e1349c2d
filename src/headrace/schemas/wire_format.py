"""Confluent's wire format of serialised keys and values: the reference to a schema in front of the payload. Pure.

A reference is a magic byte with an id (0, four bytes) or with a GUID (1, sixteen bytes). It stands in front of the
payload or, in the newer header transport, in a record header, and the payload is bare. Protobuf adds the message
indexes behind the reference: the path to the message type within its file. What the payload means is left to codecs.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from headrace.errors import HeadraceError

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
FIRST_MESSAGE: Final = (0,)

_ID: Final = 0
_GUID: Final = 1
_ID_BYTES: Final = 5
_GUID_BYTES: Final = 17
_HIGHEST_ID: Final = 2**31 - 1
_MAX_INDEXES: Final = 100  # protoc does not nest messages more deeply
_MAX_VARINT_BYTES: Final = 5

SchemaReference = int | UUID
"""An id, which counts within one registry and context, or a GUID, which counts everywhere."""


class NotFramed(HeadraceError):
    """The bytes do not start with a reference to a schema; the message says what is wrong with them."""


class Framed(NamedTuple):
    """A serialised key or value, with the reference taken off."""

    schema: SchemaReference
    payload: bytes  # of Protobuf without a header: the message indexes, too
    header_rest: bytes | None = None  # what followed the reference in the header it came from


def encode_reference(schema: SchemaReference) -> bytes:
    """The bytes that stand for a schema. Raises ValueError for a number that no id can be."""
    if isinstance(schema, UUID):
        return bytes((_GUID,)) + schema.bytes
    if not 0 <= schema <= _HIGHEST_ID:
        raise ValueError(f"{schema} is not a schema id")
    return bytes((_ID,)) + schema.to_bytes(4, "big")


def frame(
    schema: SchemaReference, payload: bytes, *, message_indexes: Sequence[int] | None = None
) -> bytes:
    """A payload behind its schema's reference; `message_indexes` are those of a Protobuf message."""
    indexes = b"" if message_indexes is None else encode_message_indexes(message_indexes)
    return encode_reference(schema) + indexes + payload


def parse(data: bytes, header: bytes | None = None) -> Framed:
    """Take a serialised key or value apart; `header` is the value of its schema header, if it has one.

    Raises NotFramed.
    """
    if header is not None:
        schema, end = _parse_reference(header)
        return Framed(schema, data, header[end:])
    schema, end = _parse_reference(data)
    return Framed(schema, data[end:])


def parse_protobuf(framed: Framed) -> tuple[tuple[int, ...], bytes]:
    """The message indexes and the message of a Protobuf payload. Raises NotFramed."""
    if framed.header_rest is not None:
        return _parse_message_indexes(framed.header_rest)[0], framed.payload
    indexes, end = _parse_message_indexes(framed.payload)
    return indexes, framed.payload[end:]


def schema_header(
    headers: Iterable[tuple[str, bytes | None]] | None, *, is_key: bool
) -> bytes | None:
    """The value of the header that refers to a record's schema, or None. The first one counts."""
    wanted = KEY_HEADER if is_key else VALUE_HEADER
    return next((value for name, value in headers or () if name == wanted), None)


def encode_message_indexes(indexes: Sequence[int]) -> bytes:
    """Message indexes as zigzag varints behind their number; the first message of a file is the single byte 0."""
    if tuple(indexes) == FIRST_MESSAGE:
        return b"\x00"
    encoded = bytearray()
    for number in (len(indexes), *indexes):
        if not 0 <= number <= _HIGHEST_ID:
            raise ValueError(f"{number} is not a message index")
        rest = number << 1
        while rest > 0x7F:
            encoded.append(rest & 0x7F | 0x80)
            rest >>= 7
        encoded.append(rest)
    return bytes(encoded)


def _parse_reference(data: bytes) -> tuple[SchemaReference, int]:
    if not data:
        raise NotFramed("no bytes where a reference to a schema was expected")
    if data[0] == _ID and len(data) >= _ID_BYTES:
        schema_id = int.from_bytes(data[1:_ID_BYTES], "big")
        if schema_id > _HIGHEST_ID:
            raise NotFramed(f"{schema_id} is not a schema id")
        return schema_id, _ID_BYTES
    if data[0] == _GUID and len(data) >= _GUID_BYTES:
        return UUID(bytes=bytes(data[1:_GUID_BYTES])), _GUID_BYTES
    if data[0] in (_ID, _GUID):
        raise NotFramed(f"{len(data)} bytes are too few for a reference to a schema")
    raise NotFramed(f"unknown magic byte 0x{data[0]:02x}: no reference to a schema")


def _parse_message_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    count, position = _parse_varint(data, 0)
    if count == 0:
        return FIRST_MESSAGE, position
    if not 0 < count <= _MAX_INDEXES:
        raise NotFramed(f"{count} message indexes: expected 1 to {_MAX_INDEXES}")
    indexes = []
    for _ in range(count):
        index, position = _parse_varint(data, position)
        if index < 0:
            raise NotFramed(f"the message index {index} is negative")
        indexes.append(index)
    return tuple(indexes), position


def _parse_varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for count, byte in enumerate(data[position : position + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), position + count + 1
    raise NotFramed("the message indexes end within a number")
