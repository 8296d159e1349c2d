"""Splits a stream of bytes into the JSON values that stand in it one after the other. Pure.

It finds where a value ends and leaves its meaning to the caller. Values may touch or be separated by white space. A
value that is longer than the limit ends the stream. Every byte is looked at once, however the stream is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from typing import Final

from headrace.errors import HeadraceError

# What decides where a value ends: whole strings, the start of a string that goes on in the next chunk, brackets.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
# A whole object or array that is nested no deeper than this, in one match: most values are, and it is several times
# as fast as going from token to token. Which bracket closes which is left to whoever decodes the value.
_QUICK_DEPTH: Final = 6
_QUICK: Final = re.compile(
    reduce(
        lambda inner, _: (
            rb'[\[{](?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|' + inner + rb")*+[\]}]"
        ),
        range(_QUICK_DEPTH),
        rb"(?!)",
    ),
    re.DOTALL,
)
_STRING_REST: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_NOT_WHITE: Final = re.compile(rb"[^ \t\r\n]")
_SCALAR_END: Final = re.compile(rb"[ \t\r\n{\[\"]")
_QUOTE: Final = ord('"')


class BrokenStream(HeadraceError):
    """The stream cannot be split any further; the message says why."""


class ValueTooLong(BrokenStream):
    """A value is longer than the limit."""


class JsonStream:
    """Feed it what arrives; it gives the values that are complete."""

    def __init__(self, max_value_bytes: int) -> None:
        self._max_value_bytes = max_value_bytes
        self._parts: list[bytes] = []  # of the value that is not complete
        self._size = 0
        self._is_scalar = False
        self._depth = 0
        self._in_string = False
        self._is_escaped = False  # the last chunk ended with a backslash in a string

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The values that these bytes complete. Raises BrokenStream."""
        position = 0
        while position < len(chunk):
            start = position
            if not self._parts:
                found = _NOT_WHITE.search(chunk, position)
                if found is None:
                    return
                start = position = found.start()
                if chunk[start] in b"]}":
                    raise BrokenStream(f"Unexpected close marker '{chr(chunk[start])}'")
                self._is_scalar = chunk[start] not in b'{["'
            end = (
                self._end_of_scalar(chunk, position)
                if self._is_scalar
                else self._end(chunk, position)
            )
            self._size += (len(chunk) if end is None else end) - start
            if self._size > self._max_value_bytes:
                raise ValueTooLong(f"a JSON value is longer than {self._max_value_bytes} bytes")
            if end is None:
                self._parts.append(chunk[start:])
                return
            yield self._take(chunk[start:end])
            position = end

    def end(self) -> bytes | None:
        """No more bytes will come: the number or word that had no end mark, if there is one. Raises BrokenStream."""
        if self._parts and not self._is_scalar:
            raise BrokenStream("Unexpected end-of-input")
        return self._take(b"") if self._parts else None

    def _take(self, last: bytes) -> bytes:
        if self._parts:
            last = b"".join((*self._parts, last))
            self._parts = []
        self._size = 0
        return last

    @staticmethod
    def _end_of_scalar(chunk: bytes, position: int) -> int | None:
        found = _SCALAR_END.search(chunk, position)
        return None if found is None else found.start()

    def _end(self, chunk: bytes, position: int) -> int | None:
        """Where an object, array or string ends in this chunk; None if it goes on."""
        if not self._parts:
            whole = _QUICK.match(chunk, position)
            if whole is not None:
                return whole.end()
        return self._scan(chunk, position)

    def _scan(self, chunk: bytes, position: int) -> int | None:
        """The same, from token to token."""
        if self._in_string:
            position = self._go_on_in_string(chunk, position)
            if position < 0:
                return None
            if not self._depth:
                return position
        depth = self._depth
        for token in _TOKEN.finditer(chunk, position):
            sign = token[0]
            if sign in (b"{", b"["):
                depth += 1
            elif sign in (b"}", b"]"):
                depth -= 1
            elif sign == b'"':
                self._in_string = True
                self._go_on_in_string(chunk, token.end())
                break
            if not depth:
                self._depth = 0
                return token.end()
        self._depth = depth
        return None

    def _go_on_in_string(self, chunk: bytes, position: int) -> int:
        """Where the string ends in this chunk; -1 if it goes on."""
        if self._is_escaped:
            self._is_escaped = False
            position += 1
        found = _STRING_REST.match(chunk, position)
        assert found is not None
        position = found.end()
        if position == len(chunk):
            return -1
        if chunk[position] == _QUOTE:
            self._in_string = False
            return position + 1
        self._is_escaped = True
        return -1
