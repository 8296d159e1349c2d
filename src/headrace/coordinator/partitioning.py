"""Which partition of an internal topic a key belongs to, and so which broker coordinates it. Pure.

The hash is Java's `String.hashCode`: clients never compute it, but a data directory written by one
implementation must be found again by the other.
"""

from functools import lru_cache
from typing import Final

_LONGEST_CACHED: Final = 255


def java_hash(text: str) -> int:
    """`String.hashCode`: a polynomial in 31 over UTF-16 code units, as a signed 32-bit integer."""
    # Very long keys are a stranger's idea, and must not fill the memory.
    return _cached_hash(text) if len(text) <= _LONGEST_CACHED else _hash(text)


def _hash(text: str) -> int:
    units = memoryview(text.encode("utf-16-le", "surrogatepass"))
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


_cached_hash: Final = lru_cache(maxsize=4096)(_hash)


def coordinator_partition(key: str, partition_count: int) -> int:
    """The partition of `__consumer_offsets` for a group id (or of a like topic for its key)."""
    value = java_hash(key)
    # Kafka's abs() maps the one integer without a positive counterpart to 0.
    return 0 if value == -0x8000_0000 else abs(value) % partition_count
