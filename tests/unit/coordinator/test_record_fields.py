import struct

import pytest

from headrace.coordinator.record_fields import (
    RecordReader,
    encode_nullable_string,
    encode_uvarint,
)


def test_numbers_in_order() -> None:
    reader = RecordReader(struct.pack(">bhiq", -1, 2, 3, 4))
    assert (reader.i8(), reader.i16(), reader.i32(), reader.i64()) == (-1, 2, 3, 4)
    with pytest.raises(struct.error):
        reader.i8()


@pytest.mark.parametrize("number", [0, 127, 128, 300, 2**32 - 1])
def test_varints(number: int) -> None:
    assert RecordReader(encode_uvarint(number)).uvarint() == number


def test_a_null_array_and_a_null_string() -> None:
    assert RecordReader(b"\xff\xff\xff\xff").length() == -1
    assert RecordReader(encode_nullable_string(None)).nullable_string() is None
    flexible = RecordReader(b"\0\0")
    flexible.flexible = True
    assert flexible.length() == -1
    assert flexible.nullable_string() is None


def test_a_length_beyond_the_bytes_is_refused() -> None:
    with pytest.raises(struct.error):
        RecordReader(b"\x00\x00\x00\x09").length()
