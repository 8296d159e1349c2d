"""Answer whose last field is an array of items, made and encoded one item at a time.

A small request may have a large answer: thousands of names, and kilobytes for each. This owns how long the event loop works on such
an answer before it serves other connections, and how large the answer may become. The content of items, and the refusals in place of
items for which there is no room, are left to the API.
"""

from collections import Counter
from typing import Final

from headrace.broker.requests.answer_errors import error_codes
from headrace.broker.requests.long_work import Slices
from headrace.wire.codec import Piece, encode, is_flexible, struct_encoder
from headrace.wire.message import Response
from headrace.wire.primitives import unsigned_varint

MAX_ITEM_BYTES: Final = 64 * 1024 * 1024  # librdkafka reads no answer above 100 MB
TOO_LARGE: Final = (
    f"The answer would be larger than {MAX_ITEM_BYTES} bytes. Ask for less in one request."
)


class EncodedAnswer(list[Piece]):
    """An encoded body with the error codes that are in it."""

    __slots__ = ("errors",)

    def __init__(self, pieces: list[Piece], errors: Counter[int]) -> None:
        super().__init__(pieces)
        self.errors = errors


class ArrayAnswer:
    """One answer, while it is made."""

    __slots__ = ("_errors", "_items", "_response", "_size", "_slices", "_version", "_write")

    def __init__(self, response: Response, item_class: type, version: int, slices: Slices) -> None:
        """`response` has everything but the items; the array of items is its last field, and empty."""
        self._response = response
        self._version = version
        self._write = struct_encoder(item_class, version, type(response))
        self._items: list[bytes] = []
        self._size = 0
        self._errors: Counter[int] = Counter()
        self._slices = slices

    @property
    def is_full(self) -> bool:
        """Whether there is room for refusals only."""
        return self._size >= MAX_ITEM_BYTES

    async def add(self, item: object) -> None:
        """Add an item. Serves other connections first if this answer has used up its time."""
        await self._slices.pause()
        pieces: list[Piece] = []
        self._write(item, pieces.append)
        encoded = b"".join(pieces)
        self._items.append(encoded)
        self._size += len(encoded)
        self._errors.update(error_codes(item))

    def encoded(self) -> EncodedAnswer:
        """The whole answer."""
        response, version = self._response, self._version
        start = encode(response, version)
        count = len(self._items)
        # An empty array, and behind it no tagged fields, end an encoded response.
        if is_flexible(type(response), version):
            ends = (start[:-2], unsigned_varint(count + 1), start[-1:])
        else:
            ends = (start[:-4], count.to_bytes(4), b"")
        errors = self._errors + error_codes(response)
        return EncodedAnswer([b"".join((*ends[:2], *self._items, ends[2]))], errors)
