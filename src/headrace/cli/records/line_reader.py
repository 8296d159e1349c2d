"""Lines as records, by the properties of Kafka's LineMessageReader: `h1:v1,h2:v2⇥key⇥value`."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from headrace.cli.shell.command_line import Failure

Headers = list[tuple[str, str | bytes | None]]


class Line(NamedTuple):
    """What a line says."""

    headers: Headers
    key: bytes | None
    value: bytes | None


class LineReader:
    """Takes lines apart. It counts them, for its complaints."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._parse_key = _flag(properties, "parse.key")
        self._parse_headers = _flag(properties, "parse.headers")
        self._ignore_error = _flag(properties, "ignore.error")
        marker = properties.get("null.marker")
        self._null_marker = None if marker is None else marker.encode()
        separators = {
            "headers.delimiter": properties.get("headers.delimiter", "\t"),
            "headers.separator": properties.get("headers.separator", ","),
            "headers.key.separator": properties.get("headers.key.separator", ":"),
        }
        _check_distinct(separators, marker, properties.get("key.separator", "\t"))
        self._key_separator = properties.get("key.separator", "\t").encode()
        self._headers_delimiter = separators["headers.delimiter"].encode()
        self._headers_separator = re.compile(separators["headers.separator"].encode())
        self._headers_key_separator = separators["headers.key.separator"].encode()
        self._number = 0

    def read(self, line: bytes) -> Line:
        """A line without its end. Raises Failure where a separator is missing."""
        self._number += 1
        if not (self._parse_key or self._parse_headers or self._null_marker is not None):
            return Line([], None, line)
        rest = line
        headers: Headers = []
        if self._parse_headers:
            text, rest = self._cut(rest, self._headers_delimiter, "headers delimiter", line)
            if text is not None and text != self._null_marker:
                headers = self._headers(text)
        key = None
        if self._parse_key:
            key, rest = self._cut(rest, self._key_separator, "key separator", line)
        return Line(headers, self._or_null(key), self._or_null(rest))

    def _cut(
        self, rest: bytes, separator: bytes, name: str, line: bytes
    ) -> tuple[bytes | None, bytes]:
        before, found, after = rest.partition(separator)
        if found:
            return before, after
        if self._ignore_error:
            return None, rest
        text = line.decode(errors="replace")
        raise Failure(
            f"No {name} found on line number {self._number}: '{text}'",
            hint="ignore.error=true takes such lines as values",
        )

    def _headers(self, text: bytes) -> Headers:
        headers: Headers = []
        for pair in self._headers_separator.split(text):
            name, found, value = pair.partition(self._headers_key_separator)
            if not found and not self._ignore_error:
                raise Failure(
                    f"No header key separator found in pair '{pair.decode(errors='replace')}'"
                    f" on line number {self._number}"
                )
            if name == self._null_marker:
                raise Failure(
                    f"Header keys should not be equal to the null marker '{name.decode()}' as they can't be null"
                )
            headers.append((name.decode(errors="replace"), self._or_null(value) if found else None))
        return headers

    def _or_null(self, text: bytes | None) -> bytes | None:
        return None if text == self._null_marker else text


def _flag(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "false").strip().lower() == "true"


def _check_distinct(separators: dict[str, str], marker: str | None, key_separator: str) -> None:
    names = list(separators)
    for position, first in enumerate(names):
        for second in names[position + 1 :]:
            if separators[first] == separators[second]:
                raise Failure(f"{first} and {second} may not be equal")
    if marker is not None:
        for name, text in {"key.separator": key_separator, **separators}.items():
            if text == marker:
                raise Failure(f"null.marker and {name} may not be equal")
