"""Is this batch acceptable, and in which form does it enter the log (pure).

A leader checks what a client sends from the header alone; records are opened only where a topic's configuration asks
for it (compacted topics need keys, a topic may demand another codec or bound timestamps), or to say which one is bad.
What nearly every batch is, `is_plain` sees at one look; the others are checked point by point, to say what is wrong.
"""

from typing import Final

from headrace.errors import CorruptBatch
from headrace.log.append_result import RecordError, Refused
from headrace.log.log_config import LogConfig
from headrace.records.batch_builder import BatchOptions, build_batch_spanning
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    has_valid_crc,
    read_header,
)
from headrace.records.compression import DEFAULT_LIMIT_BYTES, Codec
from headrace.wire.error_code import ErrorCode

_FOREVER: Final = 2**63 - 1


def is_plain(batch: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Whether a client's batch passes all checks below as it is; for a True the others need not be asked."""
    return (
        header.length + LOG_OVERHEAD == len(batch) <= config.plain_max_bytes
        and header.magic == MAGIC
        and 0 <= header.attributes <= Codec.ZSTD  # a codec and nothing else
        and header.base_offset == 0
        and header.record_count == header.last_offset_delta + 1 > 0
        and (header.producer_id < 0 or header.base_sequence >= 0)
        and header.max_timestamp - now_ms <= config.timestamp_after_max_ms
        and has_valid_crc(batch)
    )


def acceptable_form(
    batch: bytearray | memoryview, config: LogConfig, now_ms: int, *, from_client: bool
) -> tuple[BatchHeader, bytearray | memoryview] | Refused:
    """The batch in the form in which it may be appended, and its header."""
    header = check_batch(batch, config)
    if isinstance(header, Refused):
        return header
    if from_client:
        refused = check_client_batch(header, config)
        if refused is not None:
            return refused
        if needs_opening(header, config, now_ms):
            converted = check_records(batch, header, config, now_ms)
            if isinstance(converted, Refused):
                return converted
            if converted is not None:
                return read_header(converted), converted
    return header, batch


def check_batch(batch: Buffer, config: LogConfig) -> BatchHeader | Refused:
    """Checks that hold for whoever appends as a leader: one whole batch, undamaged, of a size the topic takes."""
    size = len(batch)
    if size < HEADER_BYTES:
        return Refused(ErrorCode.CORRUPT_MESSAGE, f"{size} bytes are less than a batch header")
    header = read_header(batch)
    if header.magic != MAGIC:
        return Refused(
            ErrorCode.INVALID_RECORD,
            f"batch format {header.magic} is not supported, only {MAGIC} is",
        )
    if header.size < size and header.size >= HEADER_BYTES:
        return Refused(ErrorCode.INVALID_RECORD, "more than one record batch for a partition")
    if header.size != size:
        return Refused(
            ErrorCode.INVALID_RECORD, f"the batch claims {header.size} bytes and has {size}"
        )
    refused = _check_size(size, config)
    if refused is not None:
        return refused
    if not has_valid_crc(batch):
        return Refused(ErrorCode.CORRUPT_MESSAGE, "the checksum does not fit the batch")
    return header


def _check_size(size: int, config: LogConfig) -> Refused | None:
    if size > config.max_message_bytes:
        return Refused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, max.message.bytes is {config.max_message_bytes}",
        )
    if size > config.segment_bytes:
        return Refused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch has {size} bytes, segment.bytes is {config.segment_bytes}",
        )
    return None


def check_client_batch(header: BatchHeader, config: LogConfig) -> Refused | None:
    """Checks that hold for clients only, from the header."""
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        return Refused(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records and a last offset delta of {header.last_offset_delta}",
        )
    if header.base_offset != 0:
        return Refused(
            ErrorCode.INVALID_RECORD, f"a base offset of {header.base_offset}: clients start at 0"
        )
    if header.is_control:
        return Refused(ErrorCode.INVALID_RECORD, "clients may not write control records")
    if header.has_producer_id and header.base_sequence < 0:
        return Refused(
            ErrorCode.INVALID_RECORD,
            f"sequence {header.base_sequence} of producer {header.producer_id}",
        )
    if header.codec > Codec.ZSTD:
        return Refused(ErrorCode.INVALID_RECORD, f"unknown compression codec {header.codec}")
    if header.is_log_append_time and config.log_append_time:
        text = "the producer may not set LogAppendTime itself"
        return Refused(ErrorCode.INVALID_TIMESTAMP, text, (RecordError(0, text),))
    return None


def needs_opening(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Whether only the records themselves can tell that the batch is acceptable, or in which form."""
    return (
        config.cleanup_compact
        or config.timestamp_before_max_ms != _FOREVER
        or header.max_timestamp - now_ms > config.timestamp_after_max_ms
        or target_codec(header, config) != header.codec
    )


def target_codec(header: BatchHeader, config: LogConfig) -> int:
    """The codec in which the topic wants the batch stored."""
    match config.compression_type:
        case "producer":
            return header.codec
        case "uncompressed":
            return Codec.NONE
        case name:
            return Codec[name.upper()]


def check_records(
    batch: Buffer, header: BatchHeader, config: LogConfig, now_ms: int
) -> bytearray | Refused | None:
    """Open the batch, check each record; the batch in another codec where the topic demands one, else None."""
    try:
        records = read_batch(batch, DEFAULT_LIMIT_BYTES)
    except CorruptBatch as error:
        return Refused(ErrorCode.INVALID_RECORD, str(error))
    refused = _check_keys(records, config) or _check_times(records, config, now_ms)
    if refused is not None:
        return refused
    codec = target_codec(header, config)
    if codec == header.codec:
        return None
    options = BatchOptions(
        codec=codec,
        compression_level=config.compression_level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )
    converted = build_batch_spanning(records, header.base_offset, header.last_offset, options)
    return _check_size(len(converted), config) or converted


def _check_keys(records: list[Record], config: LogConfig) -> Refused | None:
    if not config.cleanup_compact:
        return None
    text = "Compacted topic cannot accept message without key"
    keyless = tuple(
        RecordError(index, text) for index, record in enumerate(records) if record.key is None
    )
    return Refused(ErrorCode.INVALID_RECORD, text, keyless) if keyless else None


def _check_times(records: list[Record], config: LogConfig, now_ms: int) -> Refused | None:
    if config.log_append_time:
        return None
    text = (
        f"a timestamp is not between {config.timestamp_before_max_ms} ms before and "
        f"{config.timestamp_after_max_ms} ms after the broker's {now_ms}"
    )
    earliest, latest = (
        now_ms - config.timestamp_before_max_ms,
        now_ms + config.timestamp_after_max_ms,
    )
    outside = tuple(
        RecordError(index, text)
        for index, record in enumerate(records)
        if record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest
    )
    return Refused(ErrorCode.INVALID_TIMESTAMP, text, outside) if outside else None
