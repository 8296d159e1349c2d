"""The header in front of every request and every response.

Request header v1 is key, version, correlation id and a nullable client id; v2, used by flexible
versions, adds a tag section, but keeps the old form of the client id. v0 lacked the client id and
belonged to ControlledShutdown v0 only, which Kafka 4 no longer has. Response header v0 is the
correlation id, v1 adds a tag section. ApiVersions answers always carry v0: a client that asks for
versions cannot know yet which header it will get.
"""

from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception is named like one
from typing import NamedTuple

from headrace.errors import MalformedMessage
from headrace.wire.api_keys import FLEXIBLE_FROM, NEVER, ApiKey
from headrace.wire.primitives import Buffer, read_unsigned_varint, skip_tags

_FIXED = Struct(">hhih")
_CORRELATION = Struct(">i")
_START = Struct(">ii")  # length, correlation id; then, where there are tags, that there are none
_START_WITH_TAGS = Struct(">iib")
_TAGGED_HEADER_BYTES = 5
_NO_TAGS = b"\0"
MAX_HEADER_TAGS = 1000  # Kafka has defined none; what comes one day will be a handful
_row = tuple.__new__  # half the price of calling a NamedTuple


class RequestHeader(NamedTuple):
    """What a request says about itself; `size` is the offset at which its body begins."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size: int = 0


def decode_request_header(buffer: Buffer) -> RequestHeader:
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(buffer)
        position = _FIXED.size
        client_id = None
        if length >= 0:
            stop = position + length
            if stop > len(buffer):
                raise MalformedMessage("a client id ends after its message")
            client_id = str(buffer[position:stop], "utf-8")
            position = stop
        if api_version >= FLEXIBLE_FROM.get(api_key, NEVER):
            if buffer[position]:
                position = _behind_tags(buffer, position)
            else:
                position += 1
    except (StructError, IndexError, UnicodeDecodeError) as broken:
        raise MalformedMessage(f"request header: {broken}") from None
    return _row(RequestHeader, (api_key, api_version, correlation_id, client_id, position))


def encode_request_header(header: RequestHeader) -> bytes:
    key, version, correlation_id, client_id, _ = header
    tags = _NO_TAGS if version >= FLEXIBLE_FROM.get(key, NEVER) else b""
    if client_id is None:
        return _FIXED.pack(key, version, correlation_id, -1) + tags
    raw = client_id.encode()
    return _FIXED.pack(key, version, correlation_id, len(raw)) + raw + tags


def encode_response_start(correlation_id: int, body_bytes: int, *, has_tags: bool) -> bytes:
    """A frame's length and the response header: all that stands in front of a body of so many bytes."""
    if has_tags:
        return _START_WITH_TAGS.pack(_TAGGED_HEADER_BYTES + body_bytes, correlation_id, 0)
    return _START.pack(_CORRELATION.size + body_bytes, correlation_id)


def response_tags_from(api_key: int) -> int:
    """The first version of an API with a tag section in its response's header."""
    return NEVER if api_key == ApiKey.API_VERSIONS else FLEXIBLE_FROM.get(api_key, NEVER)


def response_header_has_tags(api_key: int, api_version: int) -> bool:
    return api_version >= response_tags_from(api_key)


def decode_correlation_id(buffer: Buffer) -> int:
    """The first field of a response: it tells which request, and so which header, this is."""
    try:
        correlation_id: int = _CORRELATION.unpack_from(buffer)[0]
    except StructError:
        raise MalformedMessage("a response without a correlation id") from None
    return correlation_id


def response_body_offset(buffer: Buffer, api_key: int, api_version: int) -> int:
    """Where the body of a response begins."""
    position = _CORRELATION.size
    if not response_header_has_tags(api_key, api_version):
        return position
    try:
        return _behind_tags(buffer, position)
    except IndexError:
        raise MalformedMessage("a response header without its tags") from None


def _behind_tags(buffer: Buffer, position: int) -> int:
    count, position = read_unsigned_varint(buffer, position)
    if count > MAX_HEADER_TAGS:
        raise MalformedMessage(f"a header with {count} tagged fields")
    return skip_tags(buffer, position, count, len(buffer))
