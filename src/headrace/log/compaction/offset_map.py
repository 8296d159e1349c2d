"""The newest offset of each key in the dirty part of a log, in memory of a fixed size (pure).

Keys are held as 16-byte digests in one open-addressing table of two flat arrays: 24 bytes a slot, so that with the
load factor of 0.75 a key costs 32 bytes (as a dict it would be about 150). Two keys of one digest would be taken for
the same key; with 128 bits of BLAKE2b that does not happen, not even on purpose.
"""

from array import array
from hashlib import blake2b
from typing import Final

SLOT_BYTES: Final = 24
LOAD_FACTOR: Final = 0.75

_DIGEST_BYTES: Final = 16
_from_bytes: Final = int.from_bytes


def entries_in(memory_bytes: int, load_factor: float = LOAD_FACTOR) -> int:
    """How many keys a map of this size holds; at least one, so that compaction always gets on."""
    return max(1, int(memory_bytes // SLOT_BYTES * load_factor))


class OffsetMap:
    """Holds `max_entries` keys; `is_full` before another one is put is the caller's to respect."""

    __slots__ = ("_digests", "_entries", "_max_entries", "_offsets", "_slots")

    def __init__(self, max_entries: int, load_factor: float = LOAD_FACTOR) -> None:
        assert max_entries >= 1
        self._max_entries = max_entries
        self._slots = int(max_entries / load_factor) + 1
        self._digests = bytearray(_DIGEST_BYTES * self._slots)
        self._offsets = array("q", (0,)) * self._slots  # one more than the offset; 0 is a free slot
        self._entries = 0

    def __len__(self) -> int:
        return self._entries

    @property
    def room(self) -> int:
        """How many more keys can be put."""
        return self._max_entries - self._entries

    @property
    def memory_bytes(self) -> int:
        """Bytes of the table."""
        return self._slots * SLOT_BYTES

    def put(self, key: bytes, offset: int) -> None:
        """Remember that `key` was last written at `offset`; offsets come in ascending order."""
        digest = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        slot = self._slot(digest)
        if not self._offsets[slot]:
            assert self._entries < self._max_entries, "the map is full"
            self._digests[slot * _DIGEST_BYTES : (slot + 1) * _DIGEST_BYTES] = digest
            self._entries += 1
        self._offsets[slot] = offset + 1

    def get(self, key: bytes) -> int:
        """The newest offset of `key`, -1 if the dirty part does not have it."""
        return self._offsets[self._slot(blake2b(key, digest_size=_DIGEST_BYTES).digest())] - 1

    def _slot(self, digest: bytes) -> int:
        """The slot of this digest, or the free one where it would go."""
        offsets, digests, slots = self._offsets, self._digests, self._slots
        slot = _from_bytes(digest[:8], "little") % slots
        while offsets[slot]:
            at = slot * _DIGEST_BYTES
            if digests[at : at + _DIGEST_BYTES] == digest:
                break
            slot += 1
            if slot == slots:
                slot = 0
        return slot
