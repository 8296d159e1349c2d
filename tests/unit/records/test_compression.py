import random
import tracemalloc
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard

from headrace.errors import BatchTooLarge, CorruptBatch
from headrace.records.compression import Codec, compress, decompress

CODECS = pytest.mark.parametrize("codec", list(Codec)[1:])
SAMPLES = [b"", b"a", b"abc" * 30_000, random.Random(1).randbytes(100_000)]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("data", SAMPLES, ids=["empty", "one", "text", "noise"])
def test_round_trip(codec: Codec, data: bytes) -> None:
    for form in (data, bytearray(data), memoryview(data)):
        packed = compress(codec, form)
        assert bytes(decompress(codec, packed)) == data
        assert bytes(decompress(codec, memoryview(packed))) == data


@CODECS
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, bytes(50_000))
    assert len(decompress(codec, packed, 50_000)) == 50_000
    with pytest.raises(BatchTooLarge):
        decompress(codec, packed, 49_999)


@CODECS
def test_a_bomb_is_refused_within_bounded_memory(codec: Codec) -> None:
    """64 MiB out of a few kilobytes; opening stops at the limit, long before that much is held."""
    packed = compress(codec, bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLarge):
            decompress(codec, packed, 1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_a_lying_length_is_refused_before_memory_is_taken() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLarge):
            decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x" * 10, 1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_many_xerial_blocks_share_one_limit() -> None:
    packed = compress(Codec.SNAPPY, bytes(320 * 1024))
    with pytest.raises(BatchTooLarge):
        decompress(Codec.SNAPPY, packed, 300 * 1024)


@CODECS
def test_noise_is_corrupt_and_nothing_worse(codec: Codec) -> None:
    chance = random.Random(codec)
    packed = compress(codec, b"some text, some more text, and noise: " + chance.randbytes(300))
    for _ in range(2000):
        damaged = bytearray(packed)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        del damaged[chance.randint(0, len(damaged)) :]
        try:
            decompress(codec, bytes(damaged), 1 << 20)
        except CorruptBatch:
            pass


def test_raw_snappy_is_read_too() -> None:
    packed = bytes(cramjam.snappy.compress_raw(b"raw " * 100))
    assert decompress(Codec.SNAPPY, packed) == b"raw " * 100


def test_snappy_is_written_in_xerial_blocks() -> None:
    packed = compress(Codec.SNAPPY, bytes(40_000))
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    size = int.from_bytes(packed[16:20], "big")
    assert len(cramjam.snappy.decompress_raw(packed[20 : 20 + size])) == 32 * 1024


@pytest.mark.parametrize(
    "packed",
    [
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00",
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x09abc",
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff",
    ],
)
def test_broken_xerial_frames_are_corrupt(packed: bytes) -> None:
    with pytest.raises(CorruptBatch):
        decompress(Codec.SNAPPY, packed)


def test_other_writers_frames_are_read() -> None:
    data = b"from another library " * 1000
    linked = lz4.frame.compress(data, block_linked=True, content_checksum=True, store_size=True)
    assert decompress(Codec.LZ4, linked) == data
    streaming = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    assert decompress(Codec.ZSTD, streaming.compress(data) + streaming.flush()) == data
    two_frames = compress(Codec.ZSTD, data) + compress(Codec.ZSTD, data)
    assert decompress(Codec.ZSTD, two_frames) == data + data
    assert decompress(Codec.GZIP, zlib.compress(data, wbits=31)) == data


def test_unknown_codecs_are_corrupt() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(CorruptBatch, match=f"codec {codec}"):
            decompress(codec, b"")
        with pytest.raises(CorruptBatch, match=f"codec {codec}"):
            compress(codec, b"")


def test_levels_are_honoured() -> None:
    data = b"".join(b"%d;" % (number * number) for number in range(20_000))
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 0, 12), (Codec.ZSTD, 1, 19)):
        assert len(compress(codec, data, high)) < len(compress(codec, data, low))


def test_names_in_settings() -> None:
    assert [codec.config_name for codec in Codec] == [
        "uncompressed",
        "gzip",
        "snappy",
        "lz4",
        "zstd",
    ]
