"""Formats without a schema."""

import msgspec
import pytest

from headrace.rest.errors import RestError
from headrace.rest.payloads.formats import Format
from headrace.rest.payloads.plain import decode, encode


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (Format.BINARY, b'"AQI="', b"\x01\x02"),
        (Format.BINARY, b'"AQI"', b"\x01\x02"),
        (Format.BINARY, b'""', b""),
        (Format.STRING, b'"h\\u00e9"', "hé".encode()),
        (Format.JSON, b'{ "a" : [1, 2.50] }', b'{"a":[1,2.50]}'),
        (Format.JSON, b'"x y"', b'"x y"'),
        *((kind, b"null", None) for kind in (Format.BINARY, Format.STRING, Format.JSON)),
    ],
)
def test_json_to_bytes(kind: Format, data: bytes, expected: bytes | None) -> None:
    assert encode(kind, data) == expected


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        (Format.BINARY, b"1", "data=1 is not a base64 string."),
        (Format.BINARY, b'"*"', 'data="\\*" is not a valid base64 string.'),
        (Format.BINARY, b'"A"', "not a valid base64"),
        (Format.STRING, b"{}", "data={} is not a string."),
        (Format.JSON, b'"\xff"', "not UTF-8"),
        (Format.JSON, b'{"a":[1,%s]}' % (b"9" * 100_000), "longer than 1000 characters"),
        (Format.JSON, b"9" * 1001, "longer than 1000 characters"),
        (Format.JSON, b"-0." + b"9" * 998, "longer than 1000 characters"),
        (Format.JSON, b"1e999999", "out of range"),
        (Format.JSON, b"[-1e400]", "out of range"),
        (Format.JSON, b"[" * 5000 + b"]" * 5000, "recursion"),
    ],
)
def test_what_is_not_of_the_format(kind: Format, data: bytes, why: str) -> None:
    with pytest.raises(RestError, match=why) as refused:
        encode(kind, data)
    assert (refused.value.status, refused.value.code) == (400, 400)


@pytest.mark.parametrize(
    "data",
    [
        b"9" * 1000,
        b"[-1.%se-3]" % (b"9" * 990),
        b"1e-999999",
        b'"%s"' % (b"9" * 5000),
        b'{"\\"%s":"%s\\\\"}' % (b"9" * 5000, b"9" * 5000),
        b"[%s]" % b",".join([b"9" * 900] * 10),
    ],
)
def test_numbers_that_can_be_read_back(data: bytes) -> None:
    written = encode(Format.JSON, data)
    assert written == data
    assert decode(Format.JSON, written) == msgspec.Raw(data)


def test_bytes_to_json() -> None:
    assert decode(Format.BINARY, b"\x01\x02") == "AQI="
    assert decode(Format.STRING, "hé".encode()) == "hé"
    assert msgspec.json.encode(decode(Format.JSON, b'{"a": 1.0}')) == b'{"a": 1.0}'
    assert decode(Format.JSON, None) is None
    with pytest.raises(ValueError, match="malformed"):
        decode(Format.JSON, b"not json")
