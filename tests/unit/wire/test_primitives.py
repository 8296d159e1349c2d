"""Varints and tag sections."""

import pytest

from headrace.errors import MalformedMessage
from headrace.wire.primitives import (
    read_unsigned_varint,
    skip_tags,
    tag_section,
    unsigned_varint,
    uuid_of,
)


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16383, "ff7f"),
        (16384, "808001"),
        (2**31 - 1, "ffffffff07"),
    ],
)
def test_varints(value: int, raw: str) -> None:
    assert unsigned_varint(value).hex() == raw
    assert read_unsigned_varint(b"." + bytes.fromhex(raw) + b".", 1) == (value, 1 + len(raw) // 2)


def test_tags_are_skipped() -> None:
    section = tag_section([(0, b"abc"), (200, bytes(300))])
    assert skip_tags(section + b"rest", 1, section[0], len(section) + 4) == len(section)


def test_a_tag_beyond_the_end_is_refused() -> None:
    section = tag_section([(0, b"abc")])[:-1]
    with pytest.raises(MalformedMessage):
        skip_tags(section, 1, section[0], len(section))


def test_ids_are_made_once() -> None:
    assert uuid_of(bytes(16)) is uuid_of(bytes(16))
    assert uuid_of(bytes(range(16))).bytes == bytes(range(16))
