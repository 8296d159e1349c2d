import pytest

from headrace.errors import CorruptBatch
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import read_header
from headrace.records.control_batch import ControlType, build_marker, read_marker


@pytest.mark.parametrize("control_type", ControlType)
def test_a_marker_reads_as_it_was_built(control_type: ControlType) -> None:
    marker = build_marker(
        control_type,
        producer_id=9,
        producer_epoch=2,
        coordinator_epoch=7,
        timestamp=1234,
        offset=50,
    )
    header = read_header(marker)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, -1)
    assert (header.base_offset, header.last_offset) == (50, 50)
    assert read_marker(marker) == (control_type, 7)
    [record] = read_batch(marker)
    assert record.key == b"\x00\x00\x00" + bytes([control_type])
    assert record.value == b"\x00\x00\x00\x00\x00\x07"


def control(key: bytes | None, value: bytes | None) -> bytearray:
    return build_batch([Record(0, 0, key, value)], BatchOptions(control=True))


def test_types_of_other_people_are_carried() -> None:
    assert read_marker(control(b"\x00\x00\x00\x06", None)) == (6, -1)
    assert read_marker(control(b"\x00\x01\x00\x01extra", b"\x00\x00\x00\x00\x00\x03more")) == (1, 3)


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00"])
def test_no_control_record_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        read_marker(control(key, b""))


def test_a_marker_may_not_be_a_bomb() -> None:
    bomb = build_batch(
        [Record(0, 0, b"\x00\x00\x00\x00", bytes(1 << 20))], BatchOptions(control=True, codec=4)
    )
    with pytest.raises(CorruptBatch):
        read_marker(bomb)
