import pytest

from headrace.ids import TopicPartition
from headrace.log.append_check import (
    MAX_RECORDS,
    OPEN_FIRST,
    Opened,
    acceptable_form,
    check_batch,
    check_client_batch,
    is_plain,
    needs_opening,
)
from headrace.log.log_config import LogConfig
from headrace.log.record_check import AT_ONCE_RECORDS, MAX_TOLD_ERRORS, check_steps, target_codec
from headrace.log.steps import run_at_once
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import BatchHeader, read_header, renew_crc
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal
from tests.support.log_samples import NOW_MS, make_batch, make_marker, make_producer_batch

CONFIG = LogConfig()
HOUR_MS = 3600 * 1000


ORDERS = TopicPartition("orders", 3)


def check_records(
    batch: bytearray, header: BatchHeader, config: LogConfig, now_ms: int
) -> bytearray | Refusal | None:
    return run_at_once(check_steps(batch, header, config, now_ms, ORDERS))


def form_of(
    batch: bytearray, config: LogConfig, opened: Opened | None = None
) -> tuple[BatchHeader, bytearray | memoryview] | Refusal:
    return acceptable_form(
        batch, config, NOW_MS, from_client=True, topic_partition=ORDERS, opened=opened
    )


def code_of(found: object) -> ErrorCode:
    assert isinstance(found, Refusal), found
    assert found.message
    return found.error_code


def test_a_sound_batch_passes() -> None:
    batch = make_batch(3)
    header = check_batch(batch, CONFIG)
    assert isinstance(header, BatchHeader)
    assert header == read_header(batch)
    assert check_client_batch(header, CONFIG) is None
    assert not needs_opening(header, CONFIG, NOW_MS)


def test_bytes_that_are_no_batch() -> None:
    batch = make_batch()
    assert code_of(check_batch(b"", CONFIG)) == ErrorCode.CORRUPT_MESSAGE
    assert code_of(check_batch(batch[:60], CONFIG)) == ErrorCode.CORRUPT_MESSAGE
    assert code_of(check_batch(batch[:-1], CONFIG)) == ErrorCode.INVALID_RECORD
    assert code_of(check_batch(batch + batch, CONFIG)) == ErrorCode.INVALID_RECORD
    damaged = bytearray(batch)
    damaged[-1] ^= 1
    assert code_of(check_batch(damaged, CONFIG)) == ErrorCode.CORRUPT_MESSAGE
    damaged = bytearray(batch)
    damaged[16] = 1
    assert code_of(check_batch(damaged, CONFIG)) == ErrorCode.INVALID_RECORD
    damaged = bytearray(batch)
    damaged[8:12] = (10).to_bytes(4, "big")
    assert code_of(check_batch(damaged, CONFIG)) == ErrorCode.INVALID_RECORD


def test_sizes() -> None:
    batch = make_batch()
    size = len(batch)
    assert isinstance(check_batch(batch, LogConfig(max_message_bytes=size)), BatchHeader)
    small = LogConfig(max_message_bytes=size - 1)
    assert code_of(check_batch(batch, small)) == ErrorCode.MESSAGE_TOO_LARGE
    small = LogConfig(segment_bytes=size - 1)
    assert code_of(check_batch(batch, small)) == ErrorCode.RECORD_LIST_TOO_LARGE


def forged(**fields: int) -> BatchHeader:
    return read_header(make_producer_batch(1, 0))._replace(**fields)


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (forged(record_count=0, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
        (forged(record_count=2), ErrorCode.INVALID_RECORD),
        (forged(last_offset_delta=4), ErrorCode.INVALID_RECORD),
        (forged(base_sequence=-1), ErrorCode.INVALID_RECORD),
        (forged(base_offset=5), ErrorCode.INVALID_RECORD),
        (forged(attributes=5), ErrorCode.INVALID_RECORD),
        (read_header(make_marker(ControlType.ABORT, 1)), ErrorCode.INVALID_RECORD),
    ],
)
def test_what_clients_may_not_write(header: BatchHeader, code: ErrorCode) -> None:
    assert code_of(check_client_batch(header, CONFIG)) == code


def test_only_a_topic_with_the_brokers_times_refuses_a_batch_that_claims_them() -> None:
    claimed = forged(attributes=8)
    by_broker = LogConfig(log_append_time=True)
    assert code_of(check_client_batch(claimed, by_broker)) == ErrorCode.INVALID_TIMESTAMP
    assert check_client_batch(claimed, CONFIG) is None


def test_timestamps_too_far_ahead_are_refused_record_by_record() -> None:
    latest = NOW_MS + HOUR_MS
    records = [
        Record(0, latest, b"k", b""),
        Record(1, latest + 1, b"k", b""),
        Record(2, -1, b"k", b""),
    ]
    batch = build_batch(records)
    assert needs_opening(read_header(batch), CONFIG, NOW_MS)
    refused = check_records(batch, read_header(batch), CONFIG, NOW_MS)
    assert code_of(refused) == ErrorCode.INVALID_TIMESTAMP
    assert isinstance(refused, Refusal)
    [error] = refused.record_errors
    assert error.batch_index == 1
    assert error.message.startswith(f"Timestamp {latest + 1} of message with offset 1 is out of")
    by_broker = LogConfig(log_append_time=True)
    assert check_records(batch, read_header(batch), by_broker, NOW_MS) is None
    fine = build_batch(records[:1])
    assert not needs_opening(read_header(fine), CONFIG, NOW_MS)


@pytest.mark.parametrize(
    ("name", "target"),
    [("producer", Codec.LZ4), ("uncompressed", Codec.NONE), ("zstd", Codec.ZSTD)],
)
def test_the_codec_a_topic_wants(name: str, target: Codec) -> None:
    header = read_header(make_batch(options=BatchOptions(codec=Codec.LZ4)))
    config = LogConfig(compression_type=name)
    assert target_codec(header, config) == target
    assert needs_opening(header, config, NOW_MS) == (target != Codec.LZ4)


def test_a_batch_is_packed_anew_and_stays_the_same_batch() -> None:
    batch = make_producer_batch(5, 7, 3, epoch=2, transactional=True, codec=Codec.GZIP)
    config = LogConfig(compression_type="zstd")
    converted = check_records(batch, read_header(batch), config, NOW_MS)
    assert isinstance(converted, bytearray)
    before, after = read_header(batch), read_header(converted)
    assert after.codec == Codec.ZSTD
    assert read_batch(converted) == read_batch(batch)
    same = ("producer_id", "producer_epoch", "base_sequence", "is_transactional", "max_timestamp")
    assert [getattr(before, name) for name in same] == [getattr(after, name) for name in same]


def test_a_batch_that_grows_too_large_when_unpacked_is_refused() -> None:
    batch = make_batch(value=bytes(100_000), options=BatchOptions(codec=Codec.ZSTD))
    config = LogConfig(compression_type="uncompressed", max_message_bytes=50_000)
    refused = form_of(batch, config)
    assert code_of(refused) == ErrorCode.MESSAGE_TOO_LARGE
    config = LogConfig(compression_type="uncompressed", segment_bytes=50_000)
    refused = form_of(batch, config)
    assert code_of(refused) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_compacted_topics_need_keys() -> None:
    records = [Record(0, 0, b"k", b""), Record(1, 0, None, b""), Record(2, 0, b"", b"")]
    batch = build_batch(records)
    config = LogConfig(cleanup_compact=True)
    assert needs_opening(read_header(batch), config, NOW_MS)
    refused = check_records(batch, read_header(batch), config, NOW_MS)
    assert isinstance(refused, Refusal)
    assert refused.error_code == ErrorCode.INVALID_RECORD
    [error] = refused.record_errors
    text = "Compacted topic cannot accept message without key in topic partition orders-3"
    assert error == (1, text)
    assert refused.text.endswith(f"at most: [RecordError(batchIndex=1, message='{text}')]")
    keyed = build_batch([records[0]])
    assert check_records(keyed, read_header(keyed), config, NOW_MS) is None


def test_topics_may_bound_timestamps_from_below() -> None:
    times = (NOW_MS - 1000, NOW_MS - 1001, -1)
    batch = build_batch([Record(n, time, b"", b"") for n, time in enumerate(times)])
    config = LogConfig(timestamp_before_max_ms=1000)
    assert needs_opening(read_header(batch), config, NOW_MS)
    refused = check_records(batch, read_header(batch), config, NOW_MS)
    assert isinstance(refused, Refusal)
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in refused.record_errors] == [1]
    by_broker = LogConfig(timestamp_before_max_ms=1000, log_append_time=True)
    assert check_records(batch, read_header(batch), by_broker, NOW_MS) is None


def test_records_that_cannot_be_read_are_refused() -> None:
    batch = make_batch(3)
    batch[61] ^= 0xFF  # the length of the first record
    renew_crc(batch)
    refused = check_records(batch, read_header(batch), LogConfig(cleanup_compact=True), NOW_MS)
    assert code_of(refused) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_only_compressed_records_must_have_their_offsets_in_order(codec: Codec) -> None:
    """As in Kafka, which copies the offsets of uncompressed records as they are."""
    records = [Record(offset, 0, b"k", b"") for offset in (0, 2, 1, 3)]
    batch = build_batch(records, BatchOptions(codec=codec))
    found = check_records(batch, read_header(batch), LogConfig(cleanup_compact=True), NOW_MS)
    assert (found is None) == (codec == Codec.NONE)


def many_records(
    count: int, *, key: bytes | None = b"", codec: Codec = Codec.ZSTD, size: int = 0
) -> bytearray:
    records = [Record(n, NOW_MS, key, bytes(size)) for n in range(count)]
    return build_batch(records, BatchOptions(codec=codec))


@pytest.mark.parametrize(
    "batch",
    [many_records(AT_ONCE_RECORDS + 1, codec=Codec.NONE), many_records(2, size=2_000_000)],
    ids=["many records", "many bytes"],
)
def test_a_batch_that_takes_long_to_open_is_left_to_the_caller(batch: bytearray) -> None:
    config = LogConfig(cleanup_compact=True, max_message_bytes=10_000_000)
    assert form_of(batch, config) is OPEN_FIRST
    header = read_header(batch)
    found = run_at_once(check_steps(batch, header, config, NOW_MS, ORDERS))
    assert form_of(batch, config, Opened(config, found)) == (header, batch)
    other = LogConfig(cleanup_compact=True, max_message_bytes=10_000_001)
    assert form_of(batch, other, Opened(config, found)) is OPEN_FIRST


def test_opening_stops_often_enough() -> None:
    batch = many_records(20 * AT_ONCE_RECORDS)
    steps = check_steps(batch, read_header(batch), LogConfig(cleanup_compact=True), NOW_MS, ORDERS)
    assert len(list(steps)) == 19


def test_the_errors_of_very_many_records_are_not_all_told() -> None:
    batch = many_records(3 * MAX_TOLD_ERRORS, key=None)
    config = LogConfig(cleanup_compact=True)
    refused = check_records(batch, read_header(batch), config, NOW_MS)
    assert isinstance(refused, Refusal)
    assert len(refused.record_errors) == MAX_TOLD_ERRORS
    assert f"due to {3 * MAX_TOLD_ERRORS} record errors" in refused.text


@pytest.mark.parametrize(("count", "is_taken"), [(MAX_RECORDS, True), (MAX_RECORDS + 1, False)])
def test_records_are_bounded_in_number(count: int, is_taken: bool) -> None:
    batch = make_batch(options=BatchOptions(codec=Codec.ZSTD))
    header = read_header(batch)._replace(record_count=count, last_offset_delta=count - 1)
    assert (check_client_batch(header, CONFIG) is None) == is_taken
    assert is_plain(batch, header, CONFIG, NOW_MS) == is_taken


@pytest.mark.parametrize(("count", "is_taken"), [(14, True), (15, False)])
def test_records_that_cannot_be_in_a_batch_are_not_believed(count: int, is_taken: bool) -> None:
    batch = make_batch(value=bytes(89))
    assert read_header(batch).size == 61 + 14 * 7 + 2
    header = read_header(batch)._replace(record_count=count, last_offset_delta=count - 1)
    assert (check_client_batch(header, CONFIG) is None) == is_taken
    assert is_plain(batch, header, CONFIG, NOW_MS) == is_taken
