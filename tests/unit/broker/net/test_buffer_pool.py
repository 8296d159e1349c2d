"""Memory is lent again only when nobody looks at it."""

from headrace.broker.net.buffer_pool import MOST_KEPT_BYTES, SMALLEST_BYTES, BufferPool


def test_what_is_given_back_is_lent_again() -> None:
    buffer_pool = BufferPool()
    assert buffer_pool.take_pooled(100_000) is None
    block = buffer_pool.take(100_000)
    assert len(block) == 128 * 1024
    buffer_pool.give_back(block)
    assert buffer_pool.kept_bytes == len(block)
    assert buffer_pool.take_pooled(200_000) is None, "too small"
    assert buffer_pool.take_pooled(70_000) is block
    assert buffer_pool.kept_bytes == 0


def test_a_block_that_is_looked_at_is_let_go() -> None:
    buffer_pool = BufferPool()
    block = buffer_pool.take(100_000)
    view = memoryview(block)[5:10]
    buffer_pool.give_back(block)
    another = buffer_pool.take(100_000)
    assert another is not block
    assert buffer_pool.kept_bytes == 0
    view.release()


def test_small_memory_is_not_worth_keeping() -> None:
    buffer_pool = BufferPool()
    assert len(buffer_pool.take(SMALLEST_BYTES - 1)) == SMALLEST_BYTES - 1
    buffer_pool.give_back(bytearray(SMALLEST_BYTES - 1))
    buffer_pool.give_back(bytearray(SMALLEST_BYTES + 1))
    assert buffer_pool.kept_bytes == 0


def test_no_more_is_kept_than_the_limit() -> None:
    buffer_pool = BufferPool()
    for _ in range(20):
        buffer_pool.give_back(bytearray(1024 * 1024))
    assert buffer_pool.kept_bytes == MOST_KEPT_BYTES
