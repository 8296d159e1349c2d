"""The protocol's primitive forms over a buffer: varints, strings, tag sections, UUIDs.

For the compiled codec these are the slow halves of what it does inline: a varint longer than a byte,
a tag nobody knows. A reader takes a buffer and a position and returns the value with the position
after it. A buffer that ends too early raises IndexError or struct.error, which the codecs turn into
MalformedMessage.
"""

from functools import lru_cache
from struct import Struct
from typing import TypeAlias

from headrace.errors import MalformedMessage
from headrace.wire.message import UUID

Buffer: TypeAlias = bytes | bytearray | memoryview

_LENGTH16 = Struct(">h")
MAX_LENGTH = 0x7FFF_FFFF
ONE_BYTE = [bytes((value,)) for value in range(0x80)]


@lru_cache(maxsize=4096)
def uuid_of(raw: bytes) -> UUID:
    """The id with these 16 bytes. Cached: the same few topic ids arrive again and again."""
    return UUID(bytes=raw)


def unsigned_varint(value: int) -> bytes:
    if value < 0x80:
        return ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x20_0000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    value = buffer[position]
    if value < 0x80:
        return value, position + 1
    return finish_unsigned_varint(buffer, position + 1, value)


def finish_unsigned_varint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """The rest of a varint whose first byte, already read, says that more follow."""
    byte = buffer[position]
    if byte < 0x80:  # two bytes: most batches, and all that is not a batch
        return first & 0x7F | byte << 7, position + 1
    value = first & 0x7F
    shift = 7
    while shift < 35:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > MAX_LENGTH:
                break
            return value, position
        shift += 7
    raise MalformedMessage("a varint does not fit 31 bits")


def skip_tags(buffer: Buffer, position: int, count: int, end: int) -> int:
    """Steps over the `count` fields of a tag section. Who reads from a stranger has bounded the count."""
    for _ in range(count):
        _, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        position += size
        if position > end:
            raise MalformedMessage("a tagged field is longer than its message")
    return position


def tag_section(fields: list[tuple[int, bytes]]) -> bytes:
    """Tagged fields, in ascending order of tag, as the end of a struct."""
    out = [unsigned_varint(len(fields))]
    for tag, body in fields:
        out += (unsigned_varint(tag), unsigned_varint(len(body)), body)
    return b"".join(out)
