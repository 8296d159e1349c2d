"""Confluent's wire format, against bytes that its documentation and its serialisers give."""

from uuid import UUID

import pytest

from headrace.schemas.wire_format import (
    KEY_HEADER,
    VALUE_HEADER,
    Framed,
    NotFramed,
    encode_message_indexes,
    encode_reference,
    frame,
    parse,
    parse_protobuf,
    schema_header,
)

GUID = UUID("89791762-2336-186f-9674-299b90a802e2")


def test_an_id_is_a_zero_byte_and_four_bytes() -> None:
    assert frame(100, b"payload") == b"\x00\x00\x00\x00\x64payload"
    assert parse(b"\x00\x00\x00\x00\x64payload") == Framed(100, b"payload")


def test_a_guid_is_a_one_byte_and_sixteen_bytes() -> None:
    assert encode_reference(GUID) == b"\x01" + GUID.bytes
    assert parse(b"\x01" + GUID.bytes + b"rest") == Framed(GUID, b"rest")


def test_a_reference_in_a_header_leaves_the_payload_bare() -> None:
    header = encode_reference(GUID) + b"\x04\x02\x00"
    framed = parse(b"\x00bare", header)
    assert framed == Framed(GUID, b"\x00bare", b"\x04\x02\x00")
    assert parse_protobuf(framed) == ((1, 0), b"\x00bare")


@pytest.mark.parametrize(
    ("indexes", "encoded"),
    [
        ((0,), b"\x00"),
        ((1,), b"\x02\x02"),
        ((1, 0), b"\x04\x02\x00"),
        ((0, 0), b"\x04\x00\x00"),
        ((64,), b"\x02\x80\x01"),
    ],
)
def test_message_indexes(indexes: tuple[int, ...], encoded: bytes) -> None:
    assert encode_message_indexes(indexes) == encoded
    assert parse_protobuf(Framed(1, encoded + b"message")) == (indexes, b"message")


def test_the_longer_form_of_the_first_message_is_understood() -> None:
    assert parse_protobuf(Framed(1, b"\x02\x00rest")) == ((0,), b"rest")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no bytes"),
        (b"\x00\x00\x01", "too few"),
        (b"\x01" + bytes(15), "too few"),
        (b"\x05json", "magic byte 0x05"),
        (b"\x00\xff\xff\xff\xff", "not a schema id"),
    ],
)
def test_what_is_not_framed_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(NotFramed, match=why):
        parse(data)


@pytest.mark.parametrize(
    "rest",
    [b"", b"\x04\x02", b"\x80", b"\xff\xff\xff\xff\xff\xff", b"\x02\x01", b"\x01", b"\xf0\x03"],
)
def test_broken_message_indexes_are_refused(rest: bytes) -> None:
    with pytest.raises(NotFramed):
        parse_protobuf(Framed(1, rest))


@pytest.mark.parametrize("number", [-1, 2**31])
def test_numbers_that_are_no_ids_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="not a schema id"):
        encode_reference(number)
    with pytest.raises(ValueError, match="not a message index"):
        encode_message_indexes([number])


def test_the_header_of_a_key_is_another_than_that_of_a_value() -> None:
    headers = [("other", b"x"), (VALUE_HEADER, b"v"), (KEY_HEADER, b"k"), (VALUE_HEADER, b"w")]
    assert schema_header(headers, is_key=True) == b"k"
    assert schema_header(headers, is_key=False) == b"v"
    assert schema_header(None, is_key=False) is None
    assert schema_header([("other", b"")], is_key=False) is None
