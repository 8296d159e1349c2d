"""Memory is lent again only when nobody looks at it."""

from headrace.broker.spare_memory import MOST_KEPT_BYTES, SMALLEST_BYTES, SpareMemory


def test_what_is_given_back_is_lent_again() -> None:
    spares = SpareMemory()
    assert spares.take_spare(100_000) is None
    block = spares.take(100_000)
    assert len(block) == 128 * 1024
    spares.give_back(block)
    assert spares.kept_bytes == len(block)
    assert spares.take_spare(200_000) is None, "too small"
    assert spares.take_spare(70_000) is block
    assert spares.kept_bytes == 0


def test_a_block_that_is_looked_at_is_let_go() -> None:
    spares = SpareMemory()
    block = spares.take(100_000)
    view = memoryview(block)[5:10]
    spares.give_back(block)
    another = spares.take(100_000)
    assert another is not block
    assert spares.kept_bytes == 0
    view.release()


def test_small_memory_is_not_worth_keeping() -> None:
    spares = SpareMemory()
    assert len(spares.take(SMALLEST_BYTES - 1)) == SMALLEST_BYTES - 1
    spares.give_back(bytearray(SMALLEST_BYTES - 1))
    spares.give_back(bytearray(SMALLEST_BYTES + 1))
    assert spares.kept_bytes == 0


def test_no_more_is_kept_than_the_limit() -> None:
    spares = SpareMemory()
    for _ in range(20):
        spares.give_back(bytearray(1024 * 1024))
    assert spares.kept_bytes == MOST_KEPT_BYTES
