"""Frames: an i32 length in front of every request and every response.

`FrameReader` is fed with bytes as they arrive, in any cut, and hands out whole frames in order. A
frame that arrived within one piece is a view of it; the others are put together in a buffer of their
own. A length that is negative or above the limit raises MalformedMessage, and the stream has no
further frames: nobody can tell where the next one begins.
"""

from collections.abc import Iterable
from struct import Struct

from headrace.errors import MalformedMessage

_LENGTH = Struct(">i")
LENGTH_BYTES = 4
MAX_FRAME_BYTES = 100 * 1024 * 1024  # socket.request.max.bytes


class FrameReader:
    """Cuts a stream of bytes into frames."""

    __slots__ = ("_max_frame_bytes", "_need", "_partial")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._partial = bytearray()  # the beginning of a frame, with its length
        self._need = LENGTH_BYTES

    @property
    def buffered_bytes(self) -> int:
        """How much of a frame is waiting for the rest of it."""
        return len(self._partial)

    def feed(self, data: bytes) -> list[memoryview]:
        """Takes what arrived; returns the frames it completes, without their lengths."""
        if not self._partial:
            return self._cut(memoryview(data))
        self._partial += data
        if len(self._partial) < self._need:
            return []
        whole, self._partial = self._partial, bytearray()
        return self._cut(memoryview(whole).toreadonly())

    def _cut(self, view: memoryview) -> list[memoryview]:
        frames = []
        position = 0
        end = len(view)
        self._need = LENGTH_BYTES
        while end - position >= LENGTH_BYTES:
            (length,) = _LENGTH.unpack_from(view, position)
            if not 0 <= length <= self._max_frame_bytes:
                raise MalformedMessage(
                    f"a frame of {length} bytes; at most {self._max_frame_bytes} are accepted"
                )
            stop = position + LENGTH_BYTES + length
            if stop > end:
                self._need = LENGTH_BYTES + length
                break
            frames.append(view[position + LENGTH_BYTES : stop])
            position = stop
        self._partial += view[position:]
        return frames


def length_prefix(pieces: Iterable[bytes | memoryview]) -> bytes:
    """The length that goes in front of a frame made of these pieces."""
    return _LENGTH.pack(sum(map(len, pieces)))
