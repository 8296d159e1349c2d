import pytest

from headrace.coordinator.record_fields import MalformedRecord
from headrace.coordinator.transaction.state import Status, Transaction
from headrace.coordinator.transaction.stored_records import (
    FIXED_VERSION,
    FLEXIBLE_VERSION,
    TransactionRecord,
    decode_record,
    encode_record,
)
from headrace.ids import ProducerId, TopicPartition
from headrace.wire.refusal import Refused

KEY = bytes.fromhex("00000003747874")
PREPARED = Transaction(
    producer_id=ProducerId(4000),
    producer_epoch=7,
    timeout_ms=60_000,
    status=Status.PREPARE_COMMIT,
    last_update_ms=1_700_000_000_001,
    start_ms=1_700_000_000_000,
    partitions=frozenset((TopicPartition("b", 0), TopicPartition("a", 2), TopicPartition("a", 1))),
    client_version=2,
    previous_producer_id=ProducerId(4000),
    next_producer_id=ProducerId(5000),
)
# What TransactionLogValue of Apache Kafka 4.3.0 makes of the same fields (MessageUtil.toVersionPrefixedBytes).
PREPARED_V0 = bytes.fromhex(
    "0000"  # version
    "0000000000000fa0"
    "0007"
    "0000ea60"
    "02"
    "00000002"
    "0001"
    "61"
    "00000002"
    "00000001"
    "00000002"
    "0001"
    "62"
    "00000001"
    "00000000"
    "0000018bcfe56801"
    "0000018bcfe56800"
)
PREPARED_V1 = bytes.fromhex(
    "0001"
    "0000000000000fa0"
    "0007"
    "0000ea60"
    "02"
    "03"
    "02"
    "61"
    "03"
    "00000001"
    "00000002"
    "00"
    "02"
    "62"
    "02"
    "00000000"
    "00"
    "0000018bcfe56801"
    "0000018bcfe56800"
    "03"
    "00"
    "08"
    "0000000000000fa0"
    "01"
    "08"
    "0000000000001388"
    "02"
    "02"
    "0002"
)
EMPTY = Transaction(
    producer_id=ProducerId(1),
    producer_epoch=0,
    timeout_ms=1_000,
    status=Status.EMPTY,
    last_update_ms=5,
)
EMPTY_V0 = bytes.fromhex(
    "000000000000000000010000000003e800ffffffff0000000000000005ffffffffffffffff"
)
EMPTY_V1 = bytes.fromhex("000100000000000000010000000003e800000000000000000005ffffffffffffffff00")


@pytest.mark.parametrize(
    ("transaction", "version", "value"),
    [
        (PREPARED, FIXED_VERSION, PREPARED_V0),
        (PREPARED, FLEXIBLE_VERSION, PREPARED_V1),
        (EMPTY, FIXED_VERSION, EMPTY_V0),
        (EMPTY, FLEXIBLE_VERSION, EMPTY_V1),
    ],
)
def test_values_are_written_as_kafka_writes_them(
    transaction: Transaction, version: int, value: bytes
) -> None:
    assert encode_record(TransactionRecord("txt", transaction), version) == (KEY, value)


@pytest.mark.parametrize("value", [PREPARED_V1, EMPTY_V0, EMPTY_V1])
def test_values_are_read_back(value: bytes) -> None:
    expected = PREPARED if value == PREPARED_V1 else EMPTY
    assert decode_record(KEY, value) == TransactionRecord("txt", expected)


def test_fixed_values_have_no_place_for_what_kips_added_later() -> None:
    read = decode_record(KEY, PREPARED_V0)
    assert read is not None
    assert read.transaction == PREPARED._replace(
        client_version=0, previous_producer_id=ProducerId(-1), next_producer_id=ProducerId(-1)
    )


def test_an_unknown_tag_is_passed_over() -> None:
    next_epoch = "03020005"
    value = EMPTY_V1[:-1] + bytes.fromhex("01" + next_epoch)
    assert decode_record(KEY, value) == TransactionRecord("txt", EMPTY)


def test_a_tombstone() -> None:
    assert encode_record(TransactionRecord("txt", None)) == (KEY, None)
    assert decode_record(KEY, None) == TransactionRecord("txt", None)


def test_records_of_other_types_are_passed_over() -> None:
    assert decode_record(bytes.fromhex("00010003747874"), EMPTY_V0) is None


@pytest.mark.parametrize("status", [6, 7, 8, 255])
def test_a_status_that_is_never_stored_is_refused(status: int) -> None:
    value = bytearray(EMPTY_V0)
    value[16] = status
    with pytest.raises(MalformedRecord, match="status"):
        decode_record(KEY, bytes(value))


@pytest.mark.parametrize("value", [PREPARED_V0, PREPARED_V1])
def test_values_cut_anywhere_are_refused(value: bytes) -> None:
    for length in range(len(value)):
        with pytest.raises(MalformedRecord):
            decode_record(KEY, value[:length])


def test_a_transactional_id_with_no_room_in_the_key_is_refused() -> None:
    with pytest.raises(Refused):
        encode_record(TransactionRecord("t" * 40_000, EMPTY))
