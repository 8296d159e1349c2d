"""Opens a client's batch and checks each of its records; packs it anew where the topic demands another codec. Pure.

Records are looked at where they lie, in steps, and never made into objects: a batch of a kilobyte may hold a million of
them. What is read is what Kafka reads: lengths, timestamps, offsets, keys; values and headers only have to be as long as
they claim.
"""

from functools import partial
from typing import Final

from headrace.errors import BatchTooLarge, CorruptBatch
from headrace.ids import TopicPartition
from headrace.log.batch_filter import inflate
from headrace.log.log_config import LogConfig
from headrace.log.steps import Steps
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    has_valid_crc,
    pack_header,
    renew_crc,
)
from headrace.records.compression import Codec, compress
from headrace.records.varints import read_varint
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import RecordError, Refusal

AT_ONCE_RECORDS: Final = 500
AT_ONCE_BYTES: Final = 1024 * 1024
_PACKED_AT_ONCE_BYTES: Final = 64 * 1024
MAX_OPENED_BYTES: Final = 64 * 1024 * 1024
MAX_TOLD_ERRORS: Final = 1000

_CODEC_MASK: Final = 0x07
_I64_LIMIT: Final = 2**63
_ONE_BYTE: Final = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))


def target_codec(header: BatchHeader, config: LogConfig) -> int:
    """The codec in which the topic wants the batch stored."""
    match config.compression_type:
        case "producer":
            return header.codec
        case "uncompressed":
            return Codec.NONE
        case name:
            return Codec[name.upper()]


def check_steps(
    batch: Buffer,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    topic_partition: TopicPartition,
) -> Steps[bytearray | Refusal | None]:
    """Check each record; the batch in another codec where the topic demands one, None to take it as it is."""
    payload = inflated(batch, header, AT_ONCE_BYTES)
    if isinstance(payload, BatchTooLarge):
        payload = yield partial(inflated, batch, header, MAX_OPENED_BYTES)
    if isinstance(payload, CorruptBatch):
        return Refusal(ErrorCode.INVALID_RECORD, str(payload))
    check = RecordCheck(payload, header, config, now_ms, topic_partition)
    try:
        while not check.go_on(AT_ONCE_RECORDS):
            yield None
    except CorruptBatch as error:
        return Refusal(ErrorCode.INVALID_RECORD, f"{error} in topic partition {topic_partition}")
    refused = check.refusal()
    codec = target_codec(header, config)
    if refused is not None or codec == header.codec:
        return refused
    pack = partial(_packed, payload, header, codec, config.compression_level, check.max_timestamp)
    if codec == Codec.NONE or len(payload) <= _PACKED_AT_ONCE_BYTES:
        return pack()
    packed: bytearray = yield pack
    return packed


def fault_among_first(
    batch: Buffer,
    header: BatchHeader,
    count: int,
    config: LogConfig,
    topic_partition: TopicPartition,
) -> Refusal | None:
    """What is wrong with the structure of the first `count` records, if they can be opened at once.

    Only for batches with a valid checksum is that the producer's fault; others are left to the checks of the log.
    """
    payload = inflated(batch, header, AT_ONCE_BYTES)
    if isinstance(payload, BatchTooLarge):
        return None
    try:
        if isinstance(payload, CorruptBatch):
            raise payload
        RecordCheck(payload, header, config, 0, topic_partition).go_on(count)
    except CorruptBatch as error:
        if has_valid_crc(batch):
            text = f"{error} in topic partition {topic_partition}"
            return Refusal(ErrorCode.INVALID_RECORD, text)
    return None


def inflated(batch: Buffer, header: BatchHeader, limit_bytes: int) -> bytes | CorruptBatch:
    """The records' bytes, or why they cannot be had."""
    try:
        if header.codec == Codec.NONE:  # without a codec, inflating does not grow the batch
            limit_bytes = max(limit_bytes, header.size)
        return inflate(batch, header, limit_bytes)
    except CorruptBatch as error:
        return error


def _packed(
    payload: bytes, header: BatchHeader, codec: int, level: int | None, max_timestamp: int
) -> bytearray:
    packed = compress(codec, payload, level) if codec else payload
    attributes = header.attributes & ~_CODEC_MASK | codec
    batch = bytearray(
        pack_header(
            header._replace(
                length=HEADER_BYTES - LOG_OVERHEAD + len(packed),
                attributes=attributes,
                max_timestamp=max_timestamp,
            )
        )
    )
    batch += packed
    renew_crc(batch)
    return batch


class RecordCheck:
    """The records of one inflated batch, some at a time. CorruptBatch where they are not what the header claims."""

    __slots__ = (
        "_config",
        "_earliest",
        "_error_count",
        "_errors",
        "_has_keyless",
        "_header",
        "_index",
        "_latest",
        "_payload",
        "_position",
        "_topic_partition",
        "max_timestamp",
    )

    def __init__(
        self,
        payload: bytes,
        header: BatchHeader,
        config: LogConfig,
        now_ms: int,
        topic_partition: TopicPartition,
    ) -> None:
        self._payload = payload
        self._header = header
        self._config = config
        self._topic_partition = topic_partition
        self._position = 0
        self._index = 0
        self._errors: list[RecordError] = []
        self._error_count = 0
        self._has_keyless = False
        self.max_timestamp = NO_TIMESTAMP
        self._earliest = now_ms - config.timestamp_before_max_ms
        self._latest = now_ms + config.timestamp_after_max_ms
        if config.log_append_time or header.is_log_append_time:
            self._earliest, self._latest = -_I64_LIMIT, _I64_LIMIT
        if header.is_log_append_time:
            self.max_timestamp = header.max_timestamp

    def go_on(self, count: int) -> bool:  # noqa: C901, PLR0912 (called once for many records: calls cost most)
        """Check the next `count` records. Returns whether all have been checked."""
        payload, header, position = self._payload, self._header, self._position
        base_timestamp, has_own_times = header.base_timestamp, not header.is_log_append_time
        needs_keys, earliest, latest = self._config.cleanup_compact, self._earliest, self._latest
        is_compressed, record_count = header.codec != Codec.NONE, header.record_count
        stop = min(record_count, self._index + count)
        try:
            for index in range(self._index, stop):
                length, position = read_varint(payload, position)
                end = position + length
                if length < 0 or end > len(payload):
                    raise CorruptBatch(f"a record claims {length} bytes, which are not there")
                # Most of these numbers are one byte long, and a call costs more than all the rest.
                delta = payload[position + 1]  # behind the unused attributes
                if delta < 0x80:
                    delta, position = _ONE_BYTE[delta], position + 2
                else:
                    delta, position = read_varint(payload, position + 1)
                offset_delta, position = read_varint(payload, position)
                if offset_delta != index and (
                    is_compressed or not 0 <= offset_delta < record_count
                ):
                    raise CorruptBatch(f"record {index} claims the offset {offset_delta}")
                key_length, position = read_varint(payload, position)
                if key_length > 0:
                    position += key_length
                elif key_length < 0 and needs_keys:
                    self._add_keyless(index)
                value_length, position = read_varint(payload, position)
                if value_length > 0:
                    position += value_length
                if position >= end or payload[position]:
                    position = _behind_headers(payload, position, end)
                else:
                    position += 1
                if position != end:
                    raise CorruptBatch(f"a record's length is off by {end - position}")
                timestamp = base_timestamp + delta
                if has_own_times and timestamp != NO_TIMESTAMP:
                    if not earliest <= timestamp <= latest:
                        self._add_time(index, timestamp)
                    self.max_timestamp = max(self.max_timestamp, timestamp)
        except IndexError:
            raise CorruptBatch("the batch ends inside a record") from None
        self._position, self._index = position, stop
        if stop < record_count:
            return False
        if position != len(payload):
            raise CorruptBatch(f"{len(payload) - position} bytes follow the last record")
        if self.max_timestamp >= _I64_LIMIT:
            raise CorruptBatch(f"a record claims the timestamp {self.max_timestamp}")
        return True

    def refusal(self) -> Refusal | None:
        """The refusal of records that are well formed but not acceptable."""
        if not self._errors:
            return None
        if self._has_keyless:
            shown = ", ".join(
                f"RecordError(batchIndex={index}, message='{text}')"
                for index, text in self._errors[:3]
            )
            text = (
                f"One or more records have been rejected due to {self._error_count} record errors in "
                f"total, and only showing the first three errors at most: [{shown}]"
            )
            return Refusal(ErrorCode.INVALID_RECORD, text, tuple(self._errors))
        text = "One or more records have been rejected due to invalid timestamp"
        return Refusal(ErrorCode.INVALID_TIMESTAMP, text, tuple(self._errors))

    def _add_keyless(self, index: int) -> None:
        self._has_keyless = True
        self._add(
            index,
            "Compacted topic cannot accept message without key in topic partition "
            f"{self._topic_partition}",
        )

    def _add_time(self, index: int, timestamp: int) -> None:
        self._add(
            index,
            f"Timestamp {timestamp} of message with offset {index} is out of range. "
            f"The timestamp should be within [{self._earliest}, {self._latest}]",
        )

    def _add(self, index: int, text: str) -> None:
        self._error_count += 1
        if len(self._errors) < MAX_TOLD_ERRORS:
            self._errors.append(RecordError(index, text))


def _behind_headers(payload: bytes, position: int, end: int) -> int:
    count, position = read_varint(payload, position)
    if count < 0 or count > end - position:
        raise CorruptBatch(f"a record claims {count} headers")
    for _ in range(count):
        length, position = read_varint(payload, position)
        if length < 0:
            raise CorruptBatch("a header has no key")
        position += length
        length, position = read_varint(payload, position)
        position += max(0, length)
    return position
