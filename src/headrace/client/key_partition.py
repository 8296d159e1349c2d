"""Partition of a key: Kafka's murmur2, so that Java, librdkafka (murmur2) and we agree."""

from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """The hash of Kafka's default partitioner, as an unsigned number of 32 bits."""
    length = len(key)
    digest = _SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(key[position : position + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        digest = digest * _M & _MASK ^ word
    if length != whole:
        digest = (digest ^ int.from_bytes(key[whole:], "little")) * _M & _MASK
    digest = (digest ^ digest >> 13) * _M & _MASK
    return digest ^ digest >> 15


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition of a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
