"""The five codecs of a batch's records, behind two functions. Inflating is always bounded.

A batch of a megabyte can inflate to a gigabyte; whoever opens one says how much it is ready to hold.
Heavy codecs are imported on first use: a broker passes batches on without opening them.
"""

import zlib
from enum import IntEnum
from struct import Struct
from typing import Final

from headrace.errors import BatchTooLarge, CorruptBatch


class Codec(IntEnum):
    """Compression codecs, by their number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def config_name(self) -> str:
        """The codec's name in `compression.type`: "uncompressed" for none."""
        return "uncompressed" if self is Codec.NONE else self.name.lower()


DEFAULT_LIMIT_BYTES: Final = 256 * 1024 * 1024

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = (
    _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
)  # version, oldest reader
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_I32: Final = Struct(">i")
_ZSTD_MAX_WINDOW: Final = 128 * 1024 * 1024


def compress(codec: int, data: bytes | bytearray | memoryview, level: int | None = None) -> bytes:
    """`data` in the given codec; `level` as in Kafka's compression.*.level settings."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
            return packer.compress(data) + packer.flush()
        case Codec.SNAPPY:
            return _compress_xerial(data)
        case Codec.LZ4:
            import lz4.frame

            # Kafka's reader refuses blocks that depend on each other.
            return lz4.frame.compress(
                data, compression_level=level or 0, block_linked=False, store_size=False
            )
        case Codec.ZSTD:
            import zstandard

            return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)
    raise CorruptBatch(f"unknown compression codec {codec}")


def decompress(
    codec: int, data: bytes | memoryview, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> bytes | memoryview:
    """The records inside. CorruptBatch for bytes that are not this codec's; BatchTooLarge beyond the limit."""
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return _decompress_gzip(data, limit_bytes)
        case Codec.SNAPPY:
            return _decompress_snappy(data, limit_bytes)
        case Codec.LZ4:
            return _decompress_lz4(data, limit_bytes)
        case Codec.ZSTD:
            return _decompress_zstd(data, limit_bytes)
    raise CorruptBatch(f"unknown compression codec {codec}")


def _too_large(limit_bytes: int) -> BatchTooLarge:
    return BatchTooLarge(f"the batch inflates to more than {limit_bytes} bytes")


def _decompress_gzip(data: bytes | memoryview, limit_bytes: int) -> bytes:
    inflater = zlib.decompressobj(31)
    try:
        inflated = inflater.decompress(data, limit_bytes + 1)
    except zlib.error as error:
        raise CorruptBatch(f"gzip: {error}") from error
    if len(inflated) > limit_bytes:
        raise _too_large(limit_bytes)
    if not inflater.eof:
        raise CorruptBatch("gzip: the stream ends too early")
    return inflated


def _decompress_lz4(data: bytes | memoryview, limit_bytes: int) -> bytes:
    import lz4.frame

    inflater = lz4.frame.LZ4FrameDecompressor()
    try:
        inflated = inflater.decompress(data, max_length=limit_bytes + 1)
    except RuntimeError as error:
        raise CorruptBatch(f"lz4: {error}") from error
    if len(inflated) > limit_bytes:
        raise _too_large(limit_bytes)
    if not inflater.eof:
        raise CorruptBatch("lz4: the stream ends too early")
    return inflated


def _decompress_zstd(data: bytes | memoryview, limit_bytes: int) -> bytes:
    import zstandard

    try:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
        with decompressor.stream_reader(data, read_across_frames=True) as reader:
            # A cut frame ends quietly here; the record parser misses the records then.
            inflated = reader.read(limit_bytes + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise CorruptBatch(f"zstd: {error}") from error
    if len(inflated) > limit_bytes:
        raise _too_large(limit_bytes)
    return inflated


def _compress_xerial(data: bytes | bytearray | memoryview) -> bytes:
    import cramjam

    pieces = [_XERIAL_HEADER]
    with memoryview(data) as view:
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
            pieces += (_I32.pack(len(block)), block)
    return b"".join(pieces)


def _decompress_snappy(data: bytes | memoryview, limit_bytes: int) -> bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, limit_bytes)
    pieces: list[bytes] = []
    position, left = len(_XERIAL_HEADER), limit_bytes
    while position < len(data):
        if position + 4 > len(data):
            raise CorruptBatch("snappy: the stream ends inside a block's length")
        size = _I32.unpack_from(data, position)[0]
        position += 4
        if size < 0 or position + size > len(data):
            raise CorruptBatch("snappy: a block claims more bytes than there are")
        block = _decompress_snappy_block(data[position : position + size], left)
        pieces.append(block)
        left -= len(block)
        position += size
    return b"".join(pieces)


def _decompress_snappy_block(data: bytes | memoryview, limit_bytes: int) -> bytes:
    import cramjam

    try:
        inflated_bytes = cramjam.snappy.decompress_raw_len(data)
        if inflated_bytes > limit_bytes:
            raise _too_large(limit_bytes)
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"snappy: {error}") from error
