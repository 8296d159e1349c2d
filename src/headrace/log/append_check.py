"""Validates a record batch before it is appended, and says in which form it is written (pure).

A leader checks what a client sends from the header alone; records are opened (`record_check`) only where a topic's
configuration asks for it (compacted topics need keys, a topic may demand another codec or bound timestamps), or to say
which one is bad. Where opening takes long it is left to the caller, who can serve others meanwhile: `OPEN_FIRST`.
What nearly every batch is, `is_plain` sees at one look; the others are checked point by point, to say what is wrong.
"""

from typing import Final, NamedTuple

from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.record_check import AT_ONCE_RECORDS, check_steps, target_codec
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    Buffer,
    has_valid_crc,
    read_header,
)
from headrace.records.compression import Codec
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import RecordError, Refusal

MAX_RECORDS: Final = (
    1_000_000  # in a batch of a client, because reading a record costs time whatever its size
)
OPEN_FIRST: Final = Refusal(
    ErrorCode.UNKNOWN_SERVER_ERROR, "the batch is large and has to be opened in steps"
)
"""Not for clients: append again with an `Opened`."""

_FOREVER: Final = 2**63 - 1
_LENGTH_WITHOUT_RECORDS: Final = HEADER_BYTES - LOG_OVERHEAD
_LEAST_RECORD_BYTES: Final = (
    7  # of a record: its length, attributes, timestamp, offset, key, value, headers
)


class Opened(NamedTuple):
    """What opening a batch has found, and for which configuration: another form of it, a refusal, or None if it is fine."""

    config: LogConfig
    found: bytearray | Refusal | None


def is_plain(batch: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Whether a client's batch passes all checks below as it is. If so, the others need not be called."""
    return (
        header.length + LOG_OVERHEAD == len(batch) <= config.plain_max_bytes
        and header.magic == MAGIC
        and 0 <= header.attributes <= Codec.ZSTD  # no attribute bits but those of the codec
        and header.base_offset == 0
        and 0 < header.record_count == header.last_offset_delta + 1 <= MAX_RECORDS
        and (header.producer_id < 0 or header.base_sequence >= 0)
        and header.max_timestamp - now_ms <= config.timestamp_after_max_ms
        and (
            header.attributes != 0  # compressed: the header does not tell
            or header.record_count * _LEAST_RECORD_BYTES <= header.length - _LENGTH_WITHOUT_RECORDS
        )
        and has_valid_crc(batch)
    )


def acceptable_form(
    batch: bytearray | memoryview,
    config: LogConfig,
    now_ms: int,
    *,
    from_client: bool,
    topic_partition: TopicPartition,
    opened: Opened | None = None,
) -> tuple[BatchHeader, bytearray | memoryview] | Refusal:
    """The batch in the form in which it may be appended, and its header; or `OPEN_FIRST`."""
    header = check_batch(batch, config)
    if isinstance(header, Refusal):
        return header
    if from_client:
        refused = check_client_batch(header, config)
        if refused is not None:
            return refused
        if needs_opening(header, config, now_ms):
            found = (
                opened.found
                if opened is not None and opened.config is config
                else _opened_at_once(batch, header, config, now_ms, topic_partition)
            )
            if isinstance(found, Refusal):
                return found
            if found is not None:
                return _check_size(len(found), config) or (read_header(found), found)
    return header, batch


def _opened_at_once(
    batch: Buffer,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    topic_partition: TopicPartition,
) -> bytearray | Refusal | None:
    if header.record_count > AT_ONCE_RECORDS:
        return OPEN_FIRST
    steps = check_steps(batch, header, config, now_ms, topic_partition)
    try:
        next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # what the generator returns
    return OPEN_FIRST


def check_batch(batch: Buffer, config: LogConfig) -> BatchHeader | Refusal:
    """Checks that hold for whoever appends as a leader: one whole batch, undamaged, of a size the topic takes."""
    size = len(batch)
    if size < HEADER_BYTES:
        return Refusal(ErrorCode.CORRUPT_MESSAGE, f"{size} bytes are less than a batch header")
    header = read_header(batch)
    if header.magic != MAGIC:
        return Refusal(
            ErrorCode.INVALID_RECORD,
            f"batch format {header.magic} is not supported, only {MAGIC} is",
        )
    if header.size < size and header.size >= HEADER_BYTES:
        return Refusal(ErrorCode.INVALID_RECORD, "more than one record batch for a partition")
    if header.size != size:
        return Refusal(
            ErrorCode.INVALID_RECORD, f"the batch claims {header.size} bytes and has {size}"
        )
    refused = _check_size(size, config)
    if refused is not None:
        return refused
    if not has_valid_crc(batch):
        return Refusal(ErrorCode.CORRUPT_MESSAGE, "the checksum does not fit the batch")
    return header


def _check_size(size: int, config: LogConfig) -> Refusal | None:
    if size > config.max_message_bytes:
        return Refusal(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, max.message.bytes is {config.max_message_bytes}",
        )
    if size > config.segment_bytes:
        return Refusal(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch has {size} bytes, segment.bytes is {config.segment_bytes}",
        )
    return None


def check_client_batch(header: BatchHeader, config: LogConfig) -> Refusal | None:
    """Checks that hold for clients only, from the header."""
    refused = _check_counts(header)
    if refused is not None:
        return refused
    if header.base_offset != 0:
        return Refusal(
            ErrorCode.INVALID_RECORD, f"a base offset of {header.base_offset}: clients start at 0"
        )
    if header.is_control:
        return Refusal(ErrorCode.INVALID_RECORD, "clients may not write control records")
    if header.is_transactional and not header.has_producer_id:
        return Refusal(ErrorCode.INVALID_RECORD, "a transaction without a producer id")
    if header.has_producer_id and header.base_sequence < 0:
        return Refusal(
            ErrorCode.INVALID_RECORD,
            f"sequence {header.base_sequence} of producer {header.producer_id}",
        )
    if header.codec > Codec.ZSTD:
        return Refusal(ErrorCode.INVALID_RECORD, f"unknown compression codec {header.codec}")
    if header.is_log_append_time and config.log_append_time:
        text = "the producer may not set LogAppendTime itself"
        return Refusal(ErrorCode.INVALID_TIMESTAMP, text, (RecordError(0, text),))
    return None


def _check_counts(header: BatchHeader) -> Refusal | None:
    if header.record_count > MAX_RECORDS:
        return Refusal(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records in a batch; at most {MAX_RECORDS} are taken",
        )
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        return Refusal(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records and a last offset delta of {header.last_offset_delta}",
        )
    if not _has_room(header):
        return Refusal(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records do not fit into a batch of {header.size} bytes",
        )
    return None


def _has_room(header: BatchHeader) -> bool:
    """Whether the batch is large enough for its number of records. Unknown, so true, if it is compressed."""
    return (
        header.codec != Codec.NONE
        or header.record_count * _LEAST_RECORD_BYTES <= header.length - _LENGTH_WITHOUT_RECORDS
    )


def needs_opening(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Whether only the records themselves can tell that the batch is acceptable, or in which form."""
    return (
        config.cleanup_compact
        or config.timestamp_before_max_ms != _FOREVER
        or header.max_timestamp - now_ms > config.timestamp_after_max_ms
        or target_codec(header, config) != header.codec
    )
