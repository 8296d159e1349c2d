import random

import pytest

from headrace.log.compaction.offset_map import SLOT_BYTES, OffsetMap, entries_in


def test_last_offset_of_a_key_wins() -> None:
    offsets = OffsetMap(4)
    offsets.put(b"a", 0)
    offsets.put(b"", 1)
    offsets.put(b"a", 7)
    assert [offsets.get(key) for key in (b"a", b"", b"b")] == [7, 1, -1]
    assert len(offsets) == 2


@pytest.mark.parametrize("load_factor", [0.5, 0.9, 1.0])
def test_full_map_is_still_right(load_factor: float) -> None:
    chance = random.Random(3)
    offsets = OffsetMap(500, load_factor)
    known: dict[bytes, int] = {}
    offset = 0
    while offsets.room:
        key = chance.randbytes(chance.randrange(3))
        known[key] = offset
        offsets.put(key, offset)
        offset += 1
    assert len(known) == len(offsets) == 500
    assert {key: offsets.get(key) for key in known} == known
    assert offsets.get(b"not there") == -1


def test_another_key_than_fits_is_a_bug() -> None:
    offsets = OffsetMap(1)
    offsets.put(b"a", 1)
    offsets.put(b"a", 2)
    with pytest.raises(AssertionError, match="full"):
        offsets.put(b"b", 3)


def test_memory_is_what_was_asked_for() -> None:
    memory_bytes = 1024 * 1024
    offsets = OffsetMap(entries_in(memory_bytes, 0.75), 0.75)
    assert memory_bytes - 3 * SLOT_BYTES <= offsets.memory_bytes <= memory_bytes + SLOT_BYTES
    assert entries_in(0) == 1, "compaction must get on even with nothing"
