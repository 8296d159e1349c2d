"""Texts as Kafka's own serializers write them."""

import pytest

from headrace.cli.records.message_formatter import deserializer
from headrace.cli.records.plain_serializers import plain_serializer
from headrace.cli.records.value_format import PLAIN_FORMATS
from headrace.cli.shell.command_line import Failure

UUID = b"6ba7b810-9dad-11d1-80b4-00c04fd430c8"


@pytest.mark.parametrize(
    ("name", "text", "data"),
    [
        ("string", b"x", b"x"),
        ("bytes", b"\xff", b"\xff"),
        ("short", b"-2", b"\xff\xfe"),
        ("integer", b"7", b"\0\0\0\x07"),
        ("long", b"7", b"\0\0\0\0\0\0\0\x07"),
        ("float", b"1.5", b"\x3f\xc0\0\0"),
        ("double", b"1.5", b"\x3f\xf8\0\0\0\0\0\0"),
        ("boolean", b"true", b"\x01"),
        ("boolean", b"false", b"\x00"),
        ("uuid", UUID, UUID),
    ],
)
def test_what_is_written_is_shown_again(name: str, text: bytes, data: bytes) -> None:
    assert plain_serializer(name)(text) == data
    assert deserializer(PLAIN_FORMATS[name])(data) == text


def test_json_stays_as_it_is() -> None:
    assert plain_serializer("json")(b'{"a": 1}') == b'{"a": 1}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("short", b"70000"),
        ("integer", b"1.5"),
        ("long", b"x"),
        ("double", b"\xff"),
        ("boolean", b"yes"),
        ("uuid", b"6ba7"),
        ("json", b"{"),
    ],
)
def test_what_is_no_such_value_is_told(name: str, text: bytes) -> None:
    with pytest.raises(Failure):
        plain_serializer(name)(text)
