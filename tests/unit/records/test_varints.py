import pytest

from headrace.errors import CorruptBatch
from headrace.records.varints import append_varint, read_varint


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_zigzag(number: int, encoded: str) -> None:
    target = bytearray(b"x")
    append_varint(target, number)
    assert target == b"x" + bytes.fromhex(encoded)
    assert read_varint(bytes(target), 1) == (number, len(target))


@pytest.mark.parametrize("encoded", ["", "80", "ffffff", "ffffffffffffffffff02", "80" * 10 + "01"])
def test_cut_or_too_long_is_corrupt(encoded: str) -> None:
    with pytest.raises(CorruptBatch):
        read_varint(bytes.fromhex(encoded), 0)
