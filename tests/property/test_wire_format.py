"""Confluent's wire format: what is framed is parsed back, and no bytes raise anything but NotFramed."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.wire_format import NotFramed, encode_reference, frame, parse, parse_protobuf

IDS = st.integers(0, 2**31 - 1)
REFERENCES = st.one_of(IDS, st.uuids())
INDEXES = st.lists(IDS, min_size=1, max_size=100).map(tuple)


@given(REFERENCES, st.binary())
def test_framed_is_parsed_back(reference: int | UUID, payload: bytes) -> None:
    framed = parse(frame(reference, payload))
    assert (framed.schema, framed.payload, framed.header_rest) == (reference, payload, None)


@given(REFERENCES, INDEXES, st.binary())
def test_message_indexes_are_parsed_back(
    reference: int | UUID, indexes: tuple[int, ...], payload: bytes
) -> None:
    framed = parse(frame(reference, payload, message_indexes=indexes))
    assert parse_protobuf(framed) == (indexes, payload)


@given(st.binary(), st.one_of(st.none(), st.binary()))
def test_any_bytes_are_parsed_or_refused(data: bytes, header: bytes | None) -> None:
    try:
        framed = parse(data, header)
    except NotFramed:
        return
    source = data if header is None else header
    assert source.startswith(encode_reference(framed.schema))
    try:
        indexes, message = parse_protobuf(framed)
    except NotFramed:
        return
    assert indexes
    assert framed.payload.endswith(message)


@given(st.integers(min_value=2**31))
def test_no_larger_number_is_an_id(number: int) -> None:
    with pytest.raises(ValueError, match="not a schema id"):
        encode_reference(number)
