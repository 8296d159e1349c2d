"""Pool of receive buffers of 64 KiB and more (pure). Reusing a buffer avoids page faults, which cost more than copying the bytes.

A buffer is given back when its frame has been answered. The event loop may still hold a view of it then, so a buffer is
handed out again only when no view of it is left.
"""

from typing import Final

SMALLEST_BYTES: Final = 64 * 1024  # below this, new memory costs next to nothing
MOST_KEPT_BYTES: Final = 16 * 1024 * 1024


class BufferPool:
    """Buffers by size, each a power of two."""

    __slots__ = ("_by_size", "kept_bytes")

    def __init__(self) -> None:
        self._by_size: dict[int, list[bytearray]] = {}
        self.kept_bytes = 0

    def take_pooled(self, size: int) -> bytearray | None:
        """A block of at least `size` bytes, if there is one already. Its content is undefined."""
        blocks = self._by_size.get(_block_size(size))
        while blocks:
            block = blocks.pop()
            self.kept_bytes -= len(block)
            if _is_unseen(block):
                return block
        return None

    def take(self, size: int) -> bytearray:
        """A block of at least `size` bytes; a new one if need be."""
        if size < SMALLEST_BYTES:
            return bytearray(size)
        return self.take_pooled(size) or bytearray(_block_size(size))

    def give_back(self, block: bytearray) -> None:
        """The block is no longer needed; keep it if it is one of ours and there is room."""
        size = len(block)
        is_ours = size >= SMALLEST_BYTES and size == _block_size(size)
        if is_ours and self.kept_bytes + size <= MOST_KEPT_BYTES:
            self._by_size.setdefault(size, []).append(block)
            self.kept_bytes += size


def _block_size(size: int) -> int:
    return max(SMALLEST_BYTES, 1 << (size - 1).bit_length())


def _is_unseen(block: bytearray) -> bool:
    """Whether no view of the block is left: only then may its size change."""
    try:
        block.append(block.pop())
    except BufferError:
        return False
    return True
