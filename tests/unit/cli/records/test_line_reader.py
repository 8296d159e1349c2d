"""Lines as records, as Kafka's LineMessageReader reads them."""

import pytest

from headrace.cli.records.line_reader import Line, LineReader
from headrace.cli.shell.command_line import Failure

BOTH = {"parse.key": "true", "parse.headers": "true"}


def test_a_line_is_a_value() -> None:
    assert LineReader({}).read(b"a\tb") == Line([], None, b"a\tb")
    assert LineReader({}).read(b"\xff\xfe") == Line([], None, b"\xff\xfe")


def test_headers_key_and_value() -> None:
    line = LineReader(BOTH).read(b"h1:v1,h2:v:2\tkey\tvalue\twith tab")
    assert line == Line([("h1", b"v1"), ("h2", b"v:2")], b"key", b"value\twith tab")


def test_own_separators() -> None:
    properties = BOTH | {
        "key.separator": "=",
        "headers.delimiter": "|",
        "headers.separator": ";",
        "headers.key.separator": "/",
    }
    line = LineReader(properties).read(b"a/1;b/2|k=v")
    assert line == Line([("a", b"1"), ("b", b"2")], b"k", b"v")


def test_the_null_marker_stands_for_nothing() -> None:
    reader = LineReader(BOTH | {"null.marker": "NULL"})
    assert reader.read(b"NULL\tNULL\tNULL") == Line([], None, None)
    assert reader.read(b"h:NULL\tk\tv") == Line([("h", None)], b"k", b"v")
    with pytest.raises(Failure, match="Header keys should not be equal to the null marker"):
        reader.read(b"NULL:1\tk\tv")


def test_missing_separators_are_told_with_the_line() -> None:
    reader = LineReader({"parse.key": "true"})
    reader.read(b"k\tv")
    with pytest.raises(Failure, match="No key separator found on line number 2: 'oops'"):
        reader.read(b"oops")
    with pytest.raises(Failure, match="No headers delimiter found on line number 1: 'oops'"):
        LineReader({"parse.headers": "true"}).read(b"oops")
    with pytest.raises(Failure, match="No header key separator found in pair 'b' on line number 1"):
        LineReader({"parse.headers": "true"}).read(b"a:1,b\tv")


def test_errors_can_be_ignored() -> None:
    reader = LineReader(BOTH | {"ignore.error": "true"})
    assert reader.read(b"only a value") == Line([], None, b"only a value")
    assert reader.read(b"a:1,b\tk\tv") == Line([("a", b"1"), ("b", None)], b"k", b"v")


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"headers.separator": ":"}, "headers.separator and headers.key.separator"),
        ({"headers.delimiter": ","}, "headers.delimiter and headers.separator"),
        ({"null.marker": "\t"}, "null.marker and key.separator"),
        ({"null.marker": ","}, "null.marker and headers.separator"),
    ],
)
def test_separators_must_differ(properties: dict[str, str], told: str) -> None:
    with pytest.raises(Failure, match=f"{told} may not be equal"):
        LineReader(properties)
