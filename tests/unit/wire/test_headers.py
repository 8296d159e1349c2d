"""Request and response headers in their versions."""

import pytest

from headrace.errors import MalformedMessage
from headrace.wire.api_keys import ApiKey
from headrace.wire.headers import (
    MAX_HEADER_TAGS,
    RequestHeader,
    decode_correlation_id,
    decode_request_header,
    encode_request_header,
    encode_response_start,
    response_body_offset,
    response_header_has_tags,
)
from headrace.wire.primitives import tag_section

V1 = bytes.fromhex("0003 0008 00000007 0002 6162")  # Metadata v8, correlation 7, client "ab"
V2 = bytes.fromhex("0003 0009 00000007 0002 6162 00")
V2_NULL_CLIENT = bytes.fromhex("0003 0009 00000007 ffff 00")


@pytest.mark.parametrize(
    ("raw", "header"),
    [
        (V1, RequestHeader(3, 8, 7, "ab", 12)),
        (V2, RequestHeader(3, 9, 7, "ab", 13)),
        (V2_NULL_CLIENT, RequestHeader(3, 9, 7, None, 11)),
    ],
)
def test_request_headers(raw: bytes, header: RequestHeader) -> None:
    assert decode_request_header(raw + b"body") == header
    assert decode_request_header(memoryview(raw)) == header
    assert encode_request_header(header) == raw


def test_unknown_tags_of_a_request_header_are_skipped() -> None:
    raw = V2[:-1] + tag_section([(0, b"x"), (77, bytes(200))])
    assert decode_request_header(raw + b"body").size == len(raw)


def test_an_unknown_api_is_read_up_to_the_client_id() -> None:
    raw = bytes.fromhex("7fff 0009 00000007 0002 6162 00")
    assert decode_request_header(raw) == RequestHeader(0x7FFF, 9, 7, "ab", 12)


def test_an_api_versions_request_of_the_future_has_a_flexible_header() -> None:
    raw = bytes.fromhex("0012 0063 00000007 0002 6162 00")
    assert decode_request_header(raw).size == 13


@pytest.mark.parametrize("cut", range(len(V2)))
def test_a_cut_request_header_is_malformed(cut: int) -> None:
    with pytest.raises(MalformedMessage):
        decode_request_header(V2[:cut])


def test_a_client_id_that_is_not_utf8_is_malformed() -> None:
    with pytest.raises(MalformedMessage):
        decode_request_header(bytes.fromhex("0003 0008 00000007 0001 ff"))


@pytest.mark.parametrize(
    ("api_key", "version", "raw"),
    [
        (ApiKey.METADATA, 8, "00000007"),
        (ApiKey.METADATA, 9, "0000000700"),
        (ApiKey.API_VERSIONS, 3, "00000007"),
        (ApiKey.API_VERSIONS, 4, "00000007"),
        (ApiKey.SASL_HANDSHAKE, 1, "00000007"),
    ],
)
def test_response_headers(api_key: ApiKey, version: int, raw: str) -> None:
    header = bytes.fromhex(raw)
    has_tags = response_header_has_tags(api_key, version)
    start = encode_response_start(7, 4, has_tags=has_tags)
    assert start == (len(header) + 4).to_bytes(4) + header
    assert decode_correlation_id(header) == 7
    assert response_body_offset(header + b"body", api_key, version) == len(header)


def test_a_cut_response_header_is_malformed() -> None:
    with pytest.raises(MalformedMessage):
        decode_correlation_id(b"\0\0\0")
    with pytest.raises(MalformedMessage):
        response_body_offset(b"\0\0\0\7", ApiKey.METADATA, 9)


def test_a_header_has_a_bounded_number_of_tagged_fields() -> None:
    most = V2[:-1] + tag_section([(99, b"")] * MAX_HEADER_TAGS)
    assert decode_request_header(most).size == len(most)
    with pytest.raises(MalformedMessage, match="1001 tagged fields"):
        decode_request_header(V2[:-1] + tag_section([(99, b"")] * (MAX_HEADER_TAGS + 1)))
