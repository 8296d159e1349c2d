"""Turns what the socket delivers into whole frames (pure). Half of a `BufferedProtocol`.

Bytes land in an area shared by all connections as long as no frame is under way, so that an idle connection costs
nothing; the rest of a large frame lands in the frame's own memory, without a copy. A frame can be written to: its owner
may stamp into it. Memory that is made anew grows with what has arrived, not with what a length claims.
"""

from struct import Struct
from typing import Final, TypeAlias

from headrace.broker.net.buffer_pool import BufferPool
from headrace.errors import MalformedMessage

_LENGTH: Final = Struct(">i")
_FIRST_BYTES: Final = 16 * 1024  # a frame up to this size is allocated at once
_GROWTH: Final = 2  # factor by which a frame's memory grows

Frame: TypeAlias = bytearray | memoryview
"""A request without its length; a view if it lies in memory that is larger."""


class FrameBuffer:
    """The receiving side of one connection."""

    __slots__ = ("_buffer_pool", "_filled", "_head", "_length", "_max_frame_bytes", "_memory")

    def __init__(self, max_frame_bytes: int, buffer_pool: BufferPool) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer_pool = buffer_pool
        self._head = b""  # fewer than four bytes: a part of a length
        self._memory: bytearray | None = None  # of the frame under way
        self._length = 0
        self._filled = 0

    @property
    def held_bytes(self) -> int:
        """Memory held for a frame under way."""
        return 0 if self._memory is None else min(len(self._memory), self._length)

    def area(self, shared: memoryview) -> memoryview:
        """Where the next bytes go."""
        if self._memory is None:
            return shared
        if self._filled == len(self._memory):
            self._grow(self._memory)
        return memoryview(self._memory)[self._filled : self._length]

    def received(self, shared: memoryview, count: int) -> list[Frame]:
        """`count` bytes have landed in the area. Returns the frames that are whole now."""
        if self._memory is None:
            return self._cut(shared[:count])
        self._filled += count
        if self._filled < self._length:
            return []
        memory, self._memory = self._memory, None
        return [memory if len(memory) == self._length else memoryview(memory)[: self._length]]

    def done(self, frame: Frame) -> None:
        """A frame is no longer needed."""
        if len(frame) <= _FIRST_BYTES:
            return  # it has memory of its own
        memory = frame.obj if isinstance(frame, memoryview) else frame
        if isinstance(memory, bytearray):
            self._buffer_pool.give_back(memory)

    def _cut(self, arrived: memoryview) -> list[Frame]:
        frames: list[Frame] = []
        data = memoryview(self._head + arrived) if self._head else arrived
        position, end = 0, len(data)
        self._head = b""
        while end - position >= 4:
            length = _LENGTH.unpack_from(data, position)[0]
            if not 0 < length <= self._max_frame_bytes:
                raise MalformedMessage(
                    f"a frame of {length} bytes; at most {self._max_frame_bytes} are accepted"
                )
            position += 4
            if position + length > end:
                self._start_frame(length, data[position:])
                return frames
            frames.append(bytearray(data[position : position + length]))
            position += length
        self._head = bytes(data[position:])
        return frames

    def _start_frame(self, length: int, beginning: memoryview) -> None:
        # A pooled buffer of the whole length costs nothing, so it need not grow.
        memory = self._buffer_pool.take_pooled(length) if length > _FIRST_BYTES else None
        if memory is None:
            wanted = max(_FIRST_BYTES, _GROWTH * len(beginning))
            memory = self._buffer_pool.take(min(length, wanted))
        memory[: len(beginning)] = beginning
        self._memory = memory
        self._length = length
        self._filled = len(beginning)

    def _grow(self, memory: bytearray) -> None:
        grown = self._buffer_pool.take(min(self._length, _GROWTH * len(memory)))
        grown[: len(memory)] = memory
        self._buffer_pool.give_back(memory)
        self._memory = grown
