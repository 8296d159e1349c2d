"""Bytes of many values at once, with numpy and Arrow: variable-length integers and pieces of a buffer. Pure.

The unit is a column: one operation over all rows instead of one over each row. It must not know any schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Block = tuple[Bytes, Bools]  # a row of bytes for each value, and which of them are used

PADDING: Final = 16  # bytes that must follow the last one that `Buffer` may read
_U: Final = np.uint64
_STOPS: Final = _U(0x8080808080808080)
_CONTINUES: Final = np.uint8(0x80)


class Buffer:
    """Bytes that are read at many positions at once."""

    def __init__(self, data: pa.Buffer | None, size: int) -> None:
        """The first `size` bytes of an Arrow buffer."""
        self.data = np.zeros(size + PADDING, dtype=np.uint8)
        if data is not None and size:
            self.data[:size] = np.frombuffer(memoryview(data)[:size], dtype=np.uint8)
        self._arrow = pa.py_buffer(self.data)
        self._words = self._at_every_byte("<u8")

    def _at_every_byte(self, kind: str) -> npt.NDArray[Any]:
        """The value of this type that begins at each byte."""
        width = np.dtype(kind).itemsize
        return np.ndarray((len(self.data) - width + 1,), kind, self.data, strides=(1,))

    def numbers(self, kind: str, at: Int64s) -> npt.NDArray[Any]:
        """Numbers of a fixed width, such as `<f8`."""
        found: npt.NDArray[Any] = self._at_every_byte(kind)[at]
        return found

    def varints(self, at: Int64s) -> tuple[npt.NDArray[np.uint64], Int64s]:
        """The numbers of up to 64 bits at these positions, and the positions behind them.

        A number that is longer than ten bytes, or has more than 64 bits, ends at the position -1. The caller checks that the others
        end within their row.
        """
        first = self.data[at]
        if (first < _CONTINUES).all():
            return first.astype(np.uint64), at + 1
        word = self._words[at]
        stops = ~word & _STOPS
        last = stops & (_U(0) - stops)  # the high bit of the last byte
        used = last | (last - _U(1))
        value = word & used & ~_STOPS
        # The groups of seven bits move together: by pairs, by fours, by eights.
        value = (value & _U(0x007F007F007F007F)) | ((value >> _U(1)) & _U(0x3F803F803F803F80))
        value = (value & _U(0x00003FFF00003FFF)) | ((value >> _U(2)) & _U(0x0FFFC0000FFFC000))
        value = (value & _U(0x000000000FFFFFFF)) | ((value >> _U(4)) & _U(0x00FFFFFFF0000000))
        following = at + (np.bitwise_count(used) >> np.uint8(3)).astype(np.int64)
        longer = np.flatnonzero(stops == 0)
        if longer.size:
            self._finish_long(value, following, longer, at[longer])
        return value, following

    def _finish_long(
        self, value: npt.NDArray[np.uint64], following: Int64s, rows: Int64s, at: Int64s
    ) -> None:
        """The ninth and the tenth byte of the numbers that have them."""
        ninth, tenth = self.data[at + 8], self.data[at + 9]
        has_tenth = ninth >= _CONTINUES
        value[rows] |= (ninth & np.uint8(0x7F)).astype(np.uint64) << _U(56)
        value[rows] |= np.where(has_tenth, tenth.astype(np.uint64) << _U(63), _U(0))
        ends = at + np.where(has_tenth, 10, 9)
        following[rows] = np.where(has_tenth & (tenth > 1), -1, ends)

    def pieces(self, start: Int64s, end: Int64s) -> pa.Array:
        """Pieces of the buffer as a binary array. Each one begins where the one before ends, or behind it."""
        cuts = np.zeros(2 * len(start) + 1, dtype=np.int32)
        cuts[1::2] = start
        cuts[2::2] = end
        buffers = [None, pa.py_buffer(cuts), self._arrow]
        alternating = pa.Array.from_buffers(pa.binary(), len(cuts) - 1, buffers, null_count=0)
        return alternating.take(pa.array(np.arange(1, len(cuts), 2)))


@dataclass(frozen=True, slots=True, eq=False)
class ByteSpans:
    """Pieces of a buffer, in the order in which they lie in it."""

    buffer: Buffer
    start: Int64s
    end: Int64s

    @classmethod
    def of(cls, column: pa.Array) -> ByteSpans:
        """The elements of a binary array; a null is an empty piece."""
        ends, data = offsets_and_data(column)
        return cls(Buffer(data, int(ends[-1])), ends[:-1], ends[1:])

    def __len__(self) -> int:
        return len(self.start)

    def take(self, places: Int64s) -> ByteSpans:
        """Some of the pieces, in rising order."""
        return ByteSpans(self.buffer, self.start[places], self.end[places])

    def behind(self, count: int) -> ByteSpans:
        """The pieces without their first bytes."""
        return ByteSpans(self.buffer, self.start + count, self.end)

    def piece(self, place: int) -> bytes:
        """One piece."""
        return self.buffer.data[self.start[place] : self.end[place]].tobytes()

    def column(self) -> pa.Array:
        """The pieces as a binary array."""
        return self.buffer.pieces(self.start, self.end)


def unzigzag(value: npt.NDArray[np.uint64]) -> Int64s:
    """Signed numbers of their zigzag form."""
    found: Int64s = (value >> _U(1)).view(np.int64) ^ -(value & _U(1)).view(np.int64)
    return found


def zigzag(value: Int64s) -> npt.NDArray[np.uint64]:
    """The zigzag form of signed numbers: small ones stay small, whatever their sign."""
    return ((value << 1) ^ (value >> 63)).view(np.uint64)


def offsets_and_data(column: pa.Array) -> tuple[Int64s, pa.Buffer | None]:
    """Where each element of a binary or string array begins in its buffer, one more for the end, and the buffer."""
    _, offsets, data = column.buffers()
    if offsets is None or not len(column):
        return np.zeros(1, dtype=np.int64), data
    ends = np.frombuffer(memoryview(offsets), dtype=np.int32)
    return ends[column.offset : column.offset + len(column) + 1].astype(np.int64), data


def varint_blocks(values: npt.NDArray[np.uint64]) -> Block:
    """Unsigned numbers, seven bits a byte, a row each."""
    longest = int(values.max(initial=0))
    width = max(1, -(-longest.bit_length() // 7))
    shifted = values[:, None] >> (np.arange(width, dtype=np.uint64) * _U(7))
    used = shifted > 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    block = (shifted & _U(0x7F)).astype(np.uint8) | np.where(more, _CONTINUES, np.uint8(0))
    return block, used


def lengths_of_blocks(block: Block) -> Int64s:
    """How many bytes of each row are used."""
    counted: Int64s = block[1].sum(axis=1, dtype=np.int64)
    return counted


def joined_blocks(blocks: Sequence[Block]) -> pa.Array:
    """The used bytes of each row, all blocks of a row one behind the other, as a binary array."""
    data = np.concatenate([block for block, _ in blocks], axis=1)
    used = np.concatenate([mask for _, mask in blocks], axis=1)
    ends = np.concatenate(([0], np.cumsum(used.sum(axis=1)))).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data[used])]
    return pa.Array.from_buffers(pa.binary(), len(data), buffers, null_count=0)


def varint_column(values: npt.NDArray[np.uint64]) -> pa.Array:
    """Unsigned numbers as variable-length integers, one element each."""
    return joined_blocks([varint_blocks(values)])


def fixed_width_column(values: npt.NDArray[Any]) -> pa.Array:
    """Numbers of a fixed width as their bytes, one element each."""
    data = np.ascontiguousarray(values)
    ends = np.arange(len(data) + 1, dtype=np.int32) * np.int32(data.dtype.itemsize)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(data), buffers, null_count=0)


def lengths(column: pa.Array) -> Int64s:
    """The length of each element of a binary array without nulls."""
    return np.diff(offsets_and_data(column)[0])


def joined(pieces: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    """The pieces of each row one behind the other."""
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))


def joined_lists(elements: pa.Array, offsets: Int64s) -> pa.Array:
    """The elements of each list one behind the other; `offsets` says where each list begins, one more for the end."""
    ends, data = offsets_and_data(elements)
    cuts = ends[offsets].astype(np.int32)
    empty = pa.py_buffer(b"") if data is None else data
    return pa.Array.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(cuts), empty], null_count=0
    )
