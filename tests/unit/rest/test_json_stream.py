"""Examples of streams of JSON values; tests/property has the rule."""

import pytest

from headrace.rest.json_stream import BrokenStream, JsonStream


def values(*chunks: bytes) -> list[bytes]:
    stream = JsonStream(1000)
    found = [value for chunk in chunks for value in stream.feed(chunk)]
    last = stream.end()
    return found if last is None else [*found, last]


def test_objects_with_and_without_space_between() -> None:
    assert values(b'{"a":1}{"b":[2,{}]}\r\n {"c":"}"} ') == [
        b'{"a":1}',
        b'{"b":[2,{}]}',
        b'{"c":"}"}',
    ]


def test_a_string_that_is_cut_behind_a_backslash() -> None:
    assert values(b'{"a":"x\\', b'"y"', b"}") == [b'{"a":"x\\"y"}']
    assert values(b'{"a":"\\\\', b'"}{}') == [b'{"a":"\\\\"}', b"{}"]


def test_scalars_end_where_something_else_begins() -> None:
    assert values(b"12", b'3 true{"a":1}nu', b"ll") == [b"123", b"true", b'{"a":1}', b"null"]


def test_nothing_but_space_is_nothing() -> None:
    assert values(b"", b" \n", b"\t") == []


@pytest.mark.parametrize("text", [b"{", b'{"a', b"[1,", b'"abc', b'"abc\\'])
def test_a_value_without_its_end(text: bytes) -> None:
    with pytest.raises(BrokenStream, match="end-of-input"):
        values(text)


@pytest.mark.parametrize("text", [b"}", b'{"a":1}]'])
def test_an_end_without_its_value(text: bytes) -> None:
    with pytest.raises(BrokenStream, match="Unexpected close marker"):
        values(text)
