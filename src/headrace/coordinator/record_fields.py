"""Fields of the records in internal topics: Kafka's primitive types, read from bytes and written as bytes. Pure.

Owns lengths, both forms of them (fixed, and varints in flexible versions), tagged fields, and the check of each length
against the bytes that are left. Which fields a record has is left to the `stored_records` of each coordinator.
"""

from struct import Struct
from struct import error as struct_error

from headrace.errors import HeadraceError
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused

_LONGEST_STRING = 2**15 - 1
_UVARINT_BITS = 35  # five bytes: 32 bits and no more

_I8 = Struct(">b")
_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")


class MalformedRecord(HeadraceError):
    """A record of a known type whose bytes do not follow its layout."""


# -- writing -------------------------------------------------------------------------------------


def encode_string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > _LONGEST_STRING:
        # Flexible requests can carry longer strings than the records have room for.
        raise Refused(ErrorCode.MESSAGE_TOO_LARGE)
    return _I16.pack(len(encoded)) + encoded


def encode_nullable_string(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else encode_string(text)


def encode_uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# -- reading -------------------------------------------------------------------------------------


class RecordReader:
    """Reads one field after the other. Raises `struct.error`, `ValueError` or `IndexError` for bytes that end too early."""

    __slots__ = ("_at", "_bytes", "flexible")

    def __init__(self, source: bytes) -> None:
        self._bytes = source
        self._at = 0
        self.flexible = False

    def value_version(self) -> int:
        """The version that a value begins with. Later versions only add tagged fields (KIP-915), so they read like the last known one."""
        version = self.i16()
        if version < 0:
            raise struct_error(f"value version {version}")
        return version

    def i8(self) -> int:
        return self._number(_I8)

    def i16(self) -> int:
        return self._number(_I16)

    def i32(self) -> int:
        return self._number(_I32)

    def i64(self) -> int:
        return self._number(_I64)

    def _number(self, layout: Struct) -> int:
        value: int = layout.unpack_from(self._bytes, self._at)[0]
        self._at += layout.size
        return value

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, _UVARINT_BITS, 7):
            byte = self._bytes[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise struct_error(f"a number of more than {_UVARINT_BITS} bits at {self._at}")

    def take(self, length: int) -> bytes:
        end = self._at + length
        if length < 0 or end > len(self._bytes):
            raise struct_error(f"length {length} at {self._at} of {len(self._bytes)}")
        taken = self._bytes[self._at : end]
        self._at = end
        return taken

    def length(self) -> int:
        """Of an array, -1 for null; each element takes at least a byte, so a larger count is nonsense."""
        count = self.uvarint() - 1 if self.flexible else self.i32()
        if count > len(self._bytes):
            raise struct_error(f"{count} elements in {len(self._bytes)} bytes")
        return count

    def nullable_string(self) -> str | None:
        length = self.uvarint() - 1 if self.flexible else self.i16()
        return None if length == -1 else str(self.take(length), "utf-8")

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise struct_error("null where a string is required")
        return text

    def sized_bytes(self) -> bytes:
        return self.take(self.uvarint() - 1 if self.flexible else self.i32())

    def tags(self) -> dict[int, bytes]:
        if not self.flexible:
            return {}
        return {self.uvarint(): self.take(self.uvarint()) for _ in range(self.uvarint())}
