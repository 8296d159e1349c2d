"""Messages of one version to bytes and back.

A decoder and an encoder are compiled from a class's `SCHEMA` on first use of a version and kept.
Whatever the bytes, a decoder returns a message or raises MalformedMessage; it makes nothing larger
than a small multiple of what it was given. Like Kafka, it ignores bytes after the message.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from headrace.errors import MalformedMessage
from headrace.wire import primitives
from headrace.wire.message import Message
from headrace.wire.primitives import Buffer

M = TypeVar("M", bound=Message)

Piece: TypeAlias = bytes | memoryview
Decoder: TypeAlias = Callable[[Buffer, int], tuple[M, int]]
Encoder: TypeAlias = Callable[[Any, Callable[[Piece], None]], None]

_decoders: dict[tuple[type, int], Decoder[Any]] = {}
_encoders: dict[tuple[type, int], Encoder] = {}

_DECODER_NAMES = {
    "new": object.__new__,
    "Malformed": MalformedMessage,
    "StructError": struct.error,
    "unpack_from": struct.unpack_from,
    "varint": primitives.read_unsigned_varint,
    "finish": primitives.finish_unsigned_varint,
    "skip_tags": primitives.skip_tags,
    "uuid_of": primitives.uuid_of,
}
_ENCODER_NAMES = {
    "pack": struct.pack,
    "bytes_of": primitives.ONE_BYTE,
    "varint": primitives.unsigned_varint,
    "tag_section": primitives.tag_section,
}


def decode(cls: type[M], version: int, buffer: Buffer, offset: int = 0) -> M:
    """The message that begins at `offset`. Record batches in it are views of `buffer`."""
    return decoder(cls, version)(buffer, offset)[0]


def message_decoder(cls: type[M]) -> Callable[[int, Buffer, int], M]:
    """`decode` for one class, for those who call it often."""
    by_version: dict[int, Decoder[M]] = {}

    def decode_message(version: int, buffer: Buffer, offset: int) -> M:
        read = by_version.get(version)
        if read is None:
            read = by_version[version] = decoder(cls, version)
        return read(buffer, offset)[0]

    return decode_message


def encode(message: Message, version: int) -> bytes:
    return b"".join(encode_pieces(message, version))


def encode_pieces(message: Message, version: int) -> list[Piece]:
    """The message as pieces to be sent one after the other; record batches are not copied."""
    pieces: list[Piece] = []
    encoder(type(message), version)(message, pieces.append)
    return pieces


def decoder(cls: type[M], version: int) -> Decoder[M]:
    """A function from (buffer, offset) to the message and the offset after it."""
    try:
        return _decoders[cls, version]
    except KeyError:
        made = _decoders[cls, version] = _make_decoder(cls, version)
        return made


def encoder(cls: type[Message], version: int) -> Encoder:
    """A function that takes a message and the `append` of a list of pieces."""
    try:
        return _encoders[cls, version]
    except KeyError:
        _check_version(cls, version)
        made = _encoders[cls, version] = _make_encoder(cls, version, is_flexible(cls, version))
        return made


def struct_encoder(cls: type, version: int, owner: type[Message]) -> Encoder:
    """Like `encoder`, for a struct inside the message `owner`."""
    try:
        return _encoders[cls, version]
    except KeyError:
        _check_version(owner, version)
        made = _encoders[cls, version] = _make_encoder(cls, version, is_flexible(owner, version))
        return made


def tagged_array(tag: int, items: Sequence[object], write: Encoder) -> bytes:
    """A tag section with one array of structs; without tags where the array is empty."""
    if not items:
        return b"\0"
    pieces: list[Piece] = [primitives.unsigned_varint(len(items) + 1)]
    for item in items:
        write(item, pieces.append)
    return primitives.tag_section([(tag, b"".join(pieces))])


def is_flexible(cls: type[Message], version: int) -> bool:
    return cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM


def _make_decoder(cls: type[M], version: int) -> Decoder[M]:
    from headrace.wire.decoder_source import DecoderSource

    _check_version(cls, version)
    source = DecoderSource(cls, version, flexible=is_flexible(cls, version)).source
    read: Decoder[M] = source.compile("decode", _DECODER_NAMES)
    return read


def _make_encoder(cls: type, version: int, flexible: bool) -> Encoder:  # noqa: FBT001
    from headrace.wire.encoder_source import EncoderSource

    source = EncoderSource(cls, version, flexible=flexible).source
    write: Encoder = source.compile("encode", _ENCODER_NAMES)
    return write


def _check_version(cls: type[Message], version: int) -> None:
    first, last = cls.VERSIONS
    if not first <= version <= last:
        raise ValueError(f"{cls.__name__} has versions {first}-{last}, not {version}")
