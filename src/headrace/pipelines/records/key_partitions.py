"""The partitions of many keys at once: Kafka's murmur2 with numpy, the same numbers as `client.key_partition`."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.client.key_partition import murmur2
from headrace.pipelines.records.record_spans import Int64s

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)
_LONG_BYTES: Final = 256  # longer keys are hashed one by one: a step per word would touch few keys

UInt32s = npt.NDArray[np.uint32]


def partitions_of_keys(keys: pa.Array, partition_count: int) -> Int64s:
    """The partition of each key; what stands for a null key is not meant to be used."""
    offset, count = keys.offset, len(keys)
    _, ends_buffer, data_buffer = keys.buffers()
    assert ends_buffer is not None
    ends = np.frombuffer(memoryview(ends_buffer), dtype=np.int32)[
        offset : offset + count + 1
    ].astype(np.int64)
    data = np.frombuffer(b"" if data_buffer is None else memoryview(data_buffer), dtype=np.uint8)
    hashes = _hashes(data, ends[:-1], ends[1:] - ends[:-1])
    return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % partition_count


def _hashes(data: npt.NDArray[np.uint8], starts: Int64s, lengths: Int64s) -> UInt32s:
    digest: UInt32s = _SEED ^ lengths.astype(np.uint32)
    short = lengths <= _LONG_BYTES
    words = np.where(short, lengths // 4, 0)
    for number in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > number)
        word = _word(data, starts[rows] + 4 * number, 4) * _M
        word = (word ^ word >> np.uint32(24)) * _M
        digest[rows] = digest[rows] * _M ^ word
    for rest in (1, 2, 3):
        rows = np.flatnonzero(short & (lengths % 4 == rest))
        if rows.size:
            tail = _word(data, starts[rows] + lengths[rows] - rest, rest)
            digest[rows] = (digest[rows] ^ tail) * _M
    digest = (digest ^ digest >> np.uint32(13)) * _M
    digest ^= digest >> np.uint32(15)
    for row in np.flatnonzero(~short):
        start = int(starts[row])
        digest[row] = murmur2(data[start : start + int(lengths[row])].tobytes())
    return digest


def _word(data: npt.NDArray[np.uint8], at: Int64s, width: int) -> UInt32s:
    """Little-endian numbers of `width` bytes."""
    found = data[at].astype(np.uint32)
    for place in range(1, width):
        found |= data[at + place].astype(np.uint32) << np.uint32(8 * place)
    return found
