"""Zigzag variable-length integers, as records use them (the wire protocol's own varints are not zigzag)."""

from headrace.errors import CorruptBatch


def append_varint(target: bytearray, value: int) -> None:
    """Append `value` in zigzag form."""
    encoded = (value << 1) ^ (value >> 63)
    while encoded > 0x7F:
        target.append(encoded & 0x7F | 0x80)
        encoded >>= 7
    target.append(encoded)


def read_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """(value, next position). CorruptBatch where the bytes end or the number is longer than 64 bits."""
    encoded = shift = 0
    try:
        while True:
            byte = buffer[position]
            position += 1
            encoded |= (byte & 0x7F) << shift
            if byte < 0x80:
                if encoded >= 1 << 64:
                    raise CorruptBatch("a variable-length integer is longer than 64 bits")
                return (encoded >> 1) ^ -(encoded & 1), position
            shift += 7
            if shift > 63:
                raise CorruptBatch("a variable-length integer is longer than 64 bits")
    except IndexError:
        raise CorruptBatch("the batch ends inside a variable-length integer") from None
