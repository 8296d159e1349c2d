"""Turns what the socket delivers into whole frames (pure). Half of a `BufferedProtocol`.

Bytes land in an area shared by all connections as long as no frame is under way, so that an idle connection costs
nothing; the rest of a large frame lands in the frame's own memory, without a copy. A frame is a `bytearray`: its owner may
stamp into it. Memory grows with what has arrived, not with what a length claims.
"""

from struct import Struct
from typing import Final

from headrace.errors import MalformedMessage

_LENGTH: Final = Struct(">i")
_FIRST_BYTES: Final = 16 * 1024  # a frame up to this size is allocated at once
_GROWTH: Final = 2  # times what has arrived


class FrameBuffer:
    """The receiving side of one connection."""

    __slots__ = ("_filled", "_frame", "_head", "_length", "_max_frame_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._head = b""  # fewer than four bytes of a length
        self._frame: bytearray | None = None  # the frame under way
        self._length = 0
        self._filled = 0

    @property
    def held_bytes(self) -> int:
        """Memory held for a frame under way."""
        return 0 if self._frame is None else len(self._frame)

    def area(self, shared: memoryview) -> memoryview:
        """Where the next bytes go."""
        if self._frame is None:
            return shared
        if self._filled == len(self._frame):
            grown = min(self._length, _GROWTH * len(self._frame))
            self._frame += bytes(grown - len(self._frame))
        return memoryview(self._frame)[self._filled :]

    def received(self, shared: memoryview, count: int) -> list[bytearray]:
        """`count` bytes have landed in the area. Returns the frames that are whole now."""
        if self._frame is None:
            return self._cut(shared[:count])
        self._filled += count
        if self._filled < self._length:
            return []
        frame, self._frame = self._frame, None
        return [frame]

    def _cut(self, arrived: memoryview) -> list[bytearray]:
        frames: list[bytearray] = []
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
        self._frame = bytearray(min(length, max(_FIRST_BYTES, _GROWTH * len(beginning))))
        self._frame[: len(beginning)] = beginning
        self._length = length
        self._filled = len(beginning)
