import pytest

from headrace.log.append_check import (
    check_batch,
    check_client_batch,
    check_records,
    needs_opening,
    target_codec,
)
from headrace.log.append_result import Refused
from headrace.log.log_config import LogConfig
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import BatchHeader, read_header, renew_crc
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType
from headrace.wire.error_code import ErrorCode
from tests.support.log_samples import NOW_MS, make_batch, make_marker, make_producer_batch

CONFIG = LogConfig()
HOUR_MS = 3600 * 1000


def code_of(found: object) -> ErrorCode:
    assert isinstance(found, Refused), found
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
    assert isinstance(refused, Refused)
    assert [error.batch_index for error in refused.record_errors] == [1]
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
    refused = check_records(batch, read_header(batch), config, NOW_MS)
    assert code_of(refused) == ErrorCode.MESSAGE_TOO_LARGE
    config = LogConfig(compression_type="uncompressed", segment_bytes=50_000)
    refused = check_records(batch, read_header(batch), config, NOW_MS)
    assert code_of(refused) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_compacted_topics_need_keys() -> None:
    records = [Record(0, 0, b"k", b""), Record(1, 0, None, b""), Record(2, 0, b"", b"")]
    batch = build_batch(records)
    config = LogConfig(cleanup_compact=True)
    assert needs_opening(read_header(batch), config, NOW_MS)
    refused = check_records(batch, read_header(batch), config, NOW_MS)
    assert isinstance(refused, Refused)
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.record_errors] == [1]
    keyed = build_batch([records[0]])
    assert check_records(keyed, read_header(keyed), config, NOW_MS) is None


def test_topics_may_bound_timestamps_from_below() -> None:
    times = (NOW_MS - 1000, NOW_MS - 1001, -1)
    batch = build_batch([Record(n, time, b"", b"") for n, time in enumerate(times)])
    config = LogConfig(timestamp_before_max_ms=1000)
    assert needs_opening(read_header(batch), config, NOW_MS)
    refused = check_records(batch, read_header(batch), config, NOW_MS)
    assert isinstance(refused, Refused)
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
