"""Makes one batch out of records. Its inverse is `batch_reader`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.ids import NO_LEADER_EPOCH, NO_PRODUCER_ID
from headrace.records.batch_reader import Header, Record
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    attributes_of,
    pack_header,
    renew_crc,
)
from headrace.records.compression import compress
from headrace.records.varints import append_varint


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """What a batch says of itself beside its records."""

    codec: int = 0
    compression_level: int | None = None
    leader_epoch: int = NO_LEADER_EPOCH
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    transactional: bool = False
    control: bool = False
    log_append_time_ms: int | None = None
    delete_horizon_ms: int | None = None


PLAIN = BatchOptions()


def build_batch(records: Sequence[Record], options: BatchOptions = PLAIN) -> bytearray:
    """One batch with these records; offsets are taken from them, the first being the base offset."""
    return build_batch_spanning(records, records[0].offset, records[-1].offset, options)


def build_batch_spanning(
    records: Sequence[Record], base_offset: int, last_offset: int, options: BatchOptions
) -> bytearray:
    """One batch that covers base..last offset, of which some records may be gone (compaction), even all."""
    base_timestamp = _base_timestamp(records, options)
    max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    payload = bytearray()
    for record in records:
        append_record(
            payload, record, record.offset - base_offset, record.timestamp - base_timestamp
        )
    packed = (
        compress(options.codec, payload, options.compression_level) if options.codec else payload
    )
    header = BatchHeader(
        base_offset=base_offset,
        length=HEADER_BYTES - LOG_OVERHEAD + len(packed),
        leader_epoch=options.leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes_of(
            codec=options.codec,
            log_append_time=options.log_append_time_ms is not None,
            transactional=options.transactional,
            control=options.control,
            delete_horizon=options.delete_horizon_ms is not None,
        ),
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp
        if options.log_append_time_ms is None
        else options.log_append_time_ms,
        producer_id=options.producer_id,
        producer_epoch=options.producer_epoch,
        base_sequence=options.base_sequence,
        record_count=len(records),
    )
    batch = bytearray(pack_header(header))
    batch += packed
    renew_crc(batch)
    return batch


def records_at(
    base_offset: int,
    timestamp: int,
    pairs: Iterable[tuple[bytes | None, bytes | None]],
    headers: tuple[Header, ...] = (),
) -> list[Record]:
    """Records with consecutive offsets and one timestamp, from (key, value) pairs."""
    return [
        Record(base_offset + step, timestamp, key, value, headers)
        for step, (key, value) in enumerate(pairs)
    ]


def append_record(
    payload: bytearray, record: Record, offset_delta: int, timestamp_delta: int
) -> None:
    """Append one record in batch format v2."""
    body = bytearray(1)  # attributes, unused
    append_varint(body, timestamp_delta)
    append_varint(body, offset_delta)
    _append_bytes(body, record.key)
    _append_bytes(body, record.value)
    append_varint(body, len(record.headers))
    for name, value in record.headers:
        _append_bytes(body, name.encode())
        _append_bytes(body, value)
    append_varint(payload, len(body))
    payload += body


def _append_bytes(body: bytearray, value: bytes | None) -> None:
    if value is None:
        append_varint(body, -1)
    else:
        append_varint(body, len(value))
        body += value


def _base_timestamp(records: Sequence[Record], options: BatchOptions) -> int:
    if options.delete_horizon_ms is not None:
        return options.delete_horizon_ms
    return records[0].timestamp if records else NO_TIMESTAMP
