"""Removes records from a batch and leaves its other bytes unchanged (pure).

Records that stay are copied as bytes, not decoded: only key, presence of a value, offset and timestamp are looked at.
Base and last offset, sequences, producer, leader epoch and codec of the batch never change. The base timestamp changes
only with a delete horizon, which takes its field; then every record's timestamp delta is rewritten.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from headrace.errors import CorruptBatch
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    attributes_of,
    pack_header,
    renew_crc,
)
from headrace.records.compression import DEFAULT_LIMIT_BYTES, compress, decompress
from headrace.records.varints import append_varint, read_varint

_DELETE_HORIZON: Final = attributes_of(delete_horizon=True)
_HELD_RECORDS: Final = 10_000
_ONE_BYTE: Final = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))  # zigzag


# One record inside an inflated batch: offset, timestamp delta, key, whether it is a tombstone, and where its bytes are:
# the start of its length field, the end of its timestamp, its end. A plain tuple, because there are millions of them.
RecordSlice = tuple[int, int, bytes | None, bool, int, int, int]

# Whether a record stays, by its offset and key.
Survives = Callable[[int, bytes | None], bool]


class Filtered(NamedTuple):
    """What is left of a batch: None for the bytes if they are those of the batch itself, or if nothing is left."""

    batch: bytearray | None
    kept: int
    dropped: int


def inflate(batch: Buffer, header: BatchHeader, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """The records' bytes. CorruptBatch if they are not the codec's or more than the limit."""
    with memoryview(batch) as view, view[HEADER_BYTES : header.size] as packed:
        return bytes(decompress(header.codec, packed, limit_bytes))


def record_slices(payload: bytes, header: BatchHeader) -> Iterator[RecordSlice]:
    """Every record of an inflated batch. CorruptBatch where the bytes are not the records the header counts."""
    position, size, base_offset = 0, len(payload), header.base_offset
    try:
        for _ in range(header.record_count):
            start = position
            length, position = read_varint(payload, position)
            end = position + length
            if length < 0 or end > size:
                raise CorruptBatch(f"a record claims {length} of {size - position} bytes")
            # Most of these numbers are one byte long, and a call costs more than all the rest.
            position += 1
            if payload[position] < 0x80:
                timestamp_delta = _ONE_BYTE[payload[position]]
                after_timestamp = position + 1
            else:
                timestamp_delta, after_timestamp = read_varint(payload, position)
            if payload[after_timestamp] < 0x80:
                offset_delta = _ONE_BYTE[payload[after_timestamp]]
                position = after_timestamp + 1
            else:
                offset_delta, position = read_varint(payload, after_timestamp)
            key, position = _read_key(payload, position)
            if position >= end:
                raise CorruptBatch(f"the record at {start} is longer than it claims")
            # Of the value's length only the sign matters, which is its lowest bit.
            is_tombstone = payload[position] & 1 == 1
            offset = base_offset + offset_delta
            yield offset, timestamp_delta, key, is_tombstone, start, after_timestamp, end
            position = end
    except IndexError:
        raise CorruptBatch("the batch ends inside a record") from None
    if position != size:
        raise CorruptBatch(f"{size - position} bytes follow the last record")


def _read_key(payload: bytes, position: int) -> tuple[bytes | None, int]:
    length = payload[position]
    if length < 0x80:
        length = _ONE_BYTE[length]
        position += 1
    else:
        length, position = read_varint(payload, position)
    if length < 0:
        return None, position
    return payload[position : position + length], position + length


def checked_slices(payload: bytes, header: BatchHeader) -> Iterable[RecordSlice]:
    """The same, but CorruptBatch is raised before the first record is yielded. Few records are in memory at once."""
    if header.record_count <= _HELD_RECORDS:
        return list(record_slices(payload, header))
    deque(record_slices(payload, header), maxlen=0)
    return record_slices(payload, header)


def filter_batch(
    payload: bytes,
    header: BatchHeader,
    survives: Survives,
    *,
    drops_tombstones: bool = False,
    new_horizon_ms: int | None = None,
) -> Filtered:
    """The batch without the records that are dropped, and without tombstones whose delete horizon has passed.

    `new_horizon_ms` is stamped if the batch has no delete horizon yet and a tombstone, or a marker, stays in it.
    """
    kept = 0
    kept_payload = bytearray()
    max_delta: int | None = None
    has_tombstone = header.is_control
    for offset, delta, key, is_tombstone, start, _, end in record_slices(payload, header):
        if not (is_tombstone and drops_tombstones) and survives(offset, key):
            kept += 1
            has_tombstone = has_tombstone or is_tombstone
            if max_delta is None or delta > max_delta:
                max_delta = delta
            kept_payload += payload[start:end]
    dropped = header.record_count - kept
    if max_delta is None:
        return Filtered(None, 0, dropped)
    horizon_ms = new_horizon_ms if has_tombstone and header.delete_horizon_ms is None else None
    if not dropped and horizon_ms is None:
        return Filtered(None, kept, 0)
    kept_header = header._replace(
        max_timestamp=header.max_timestamp
        if header.is_log_append_time
        else header.base_timestamp + max_delta,
        record_count=kept,
    )
    if horizon_ms is not None:
        kept_payload = _rebased(kept_payload, kept_header, horizon_ms)
        kept_header = kept_header._replace(
            attributes=header.attributes | _DELETE_HORIZON, base_timestamp=horizon_ms
        )
    return Filtered(_packed(kept_header, kept_payload), kept, dropped)


def empty_batch(header: BatchHeader) -> bytearray:
    """A batch without records: what stays where offsets and sequences must be remembered."""
    attributes = attributes_of(
        log_append_time=header.is_log_append_time,
        transactional=header.is_transactional,
        control=header.is_control,
    )
    return _packed(
        header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0),
        bytearray(),
    )


def _rebased(payload: bytearray, header: BatchHeader, base_timestamp: int) -> bytearray:
    shift = header.base_timestamp - base_timestamp
    rebased = bytearray()
    for _, delta, _, _, _, after_timestamp, end in record_slices(bytes(payload), header):
        front = bytearray(1)  # attributes, unused
        append_varint(front, delta + shift)
        append_varint(rebased, len(front) + end - after_timestamp)
        rebased += front
        rebased += payload[after_timestamp:end]
    return rebased


def _packed(header: BatchHeader, payload: bytearray) -> bytearray:
    packed = compress(header.codec, payload) if header.codec else payload
    batch = bytearray(
        pack_header(header._replace(length=HEADER_BYTES - LOG_OVERHEAD + len(packed)))
    )
    batch += packed
    renew_crc(batch)
    return batch
