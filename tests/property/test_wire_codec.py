"""Every message class in every version: our bytes are kio's bytes, and bad bytes are refused."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import MalformedMessage
from headrace.wire.codec import decode, decoder, encode
from headrace.wire.message import Message
from headrace.wire.primitives import unsigned_varint
from headrace.wire.schema import FieldSchema, fields_at
from tests.unit.wire.kio_twin import kio_class, kio_decode, kio_encode, to_kio
from tests.unit.wire.random_messages import all_messages, all_versions, random_message

versions = st.sampled_from(all_versions())
seeds = st.integers(0, 2**32)


def made(cls: type[Message], version: int, seed: int) -> Any:
    return random_message(cls, version, Random(f"{cls.__name__}/{version}/{seed}"))


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_every_version_has_the_bytes_of_kio_both_ways(cls: type[Message]) -> None:
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
        message = made(cls, version, 0)
        raw = encode(message, version)
        assert raw == kio_encode(message, version)
        again, size = decoder(cls, version)(raw, 0)
        assert size == len(raw)
        assert to_kio(again, kio_class(cls, version)) == kio_decode(cls, version, raw)


@settings(max_examples=200, deadline=None)
@given(versions, seeds)
def test_a_decoded_message_is_the_one_encoded(which: tuple[Any, int], seed: int) -> None:
    cls, version = which
    message = made(cls, version, seed)
    raw = encode(message, version)
    assert encode(decode(cls, version, raw), version) == raw
    assert decode(cls, version, memoryview(b"xyz" + raw), 3) == decode(cls, version, raw)


@settings(max_examples=400, deadline=None)
@given(versions, seeds, st.data())
def test_damaged_bytes_are_a_message_or_malformed(
    which: tuple[Any, int], seed: int, data: st.DataObject
) -> None:
    cls, version = which
    raw = bytearray(encode(made(cls, version, seed), version))
    cut = data.draw(st.integers(0, len(raw)))
    for _ in range(data.draw(st.integers(0, 3))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(
                st.sampled_from(b"\0\x01\x7f\x80\xff")
            )
    try:
        decode(cls, version, bytes(raw[:cut]))
    except MalformedMessage:
        pass


@settings(max_examples=200, deadline=None)
@given(versions, st.binary(max_size=200))
def test_any_bytes_are_a_message_or_malformed(which: tuple[Any, int], raw: bytes) -> None:
    cls, version = which
    try:
        decode(cls, version, raw)
    except MalformedMessage:
        pass


@settings(max_examples=100, deadline=None)
@given(versions, seeds)
def test_every_proper_prefix_is_malformed(which: tuple[Any, int], seed: int) -> None:
    cls, version = which
    raw = encode(made(cls, version, seed), version)
    for cut in range(0, len(raw), max(1, len(raw) // 40)):
        with pytest.raises(MalformedMessage):
            decode(cls, version, raw[:cut])


@settings(max_examples=150, deadline=None)
@given(versions.filter(lambda which: _can_take_tags(*which)), seeds, st.binary(max_size=200))
def test_unknown_tags_at_the_end_are_skipped(
    which: tuple[Any, int], seed: int, body: bytes
) -> None:
    cls, version = which
    message = made(cls, version, seed)
    for field in fields_at(cls, version):
        if field.tag is not None:
            setattr(message, field.name, _unset(field))
    raw = encode(message, version)
    assert raw.endswith(b"\0")
    strange = unsigned_varint(9999) + unsigned_varint(len(body)) + body
    with_tag = raw[:-1] + b"\x02" + strange + unsigned_varint(10000) + b"\0"
    assert decoder(cls, version)(with_tag, 0) == (decode(cls, version, raw), len(with_tag))


def _can_take_tags(cls: Any, version: int) -> bool:
    return cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM


def _unset(field: FieldSchema) -> Any:
    return None if field.is_struct and not field.is_array else field.default
