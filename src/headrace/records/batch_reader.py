"""Opens one batch: its records as values. For tools, compaction and lookups; never on the produce or fetch path."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.errors import CorruptBatch
from headrace.records.batch_view import (
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    Buffer,
    has_valid_crc,
    read_header,
)
from headrace.records.compression import DEFAULT_LIMIT_BYTES, decompress
from headrace.records.varints import read_varint

Header = tuple[str, bytes | None]

_I64_LIMIT: Final = 2**63


class Record(NamedTuple):
    """One record, with its place in the log."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def read_batch(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> list[Record]:
    """Every record of exactly one batch, after its checks. CorruptBatch if it is not what it claims."""
    return list(iterate_batch(batch, limit_bytes))


def iterate_batch(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """The same, one record after the other; some may come before what is wrong is found."""
    if len(batch) < HEADER_BYTES:
        raise CorruptBatch(f"{len(batch)} bytes are less than a batch header")
    header = read_header(batch)
    if header.size != len(batch):
        raise CorruptBatch(f"the batch claims {header.size} bytes and has {len(batch)}")
    if header.magic != MAGIC:
        raise CorruptBatch(f"unsupported batch format {header.magic}")
    if not has_valid_crc(batch):
        raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} does not fit")
    yield from iterate_records(batch, header, limit_bytes)


def iterate_records(
    batch: Buffer, header: BatchHeader, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[Record]:
    """The records of a batch whose header and checksum the caller has checked."""
    with memoryview(batch) as view:
        payload = bytes(decompress(header.codec, view[HEADER_BYTES : header.size], limit_bytes))
    position = 0
    for _ in range(header.record_count):
        length, position = read_varint(payload, position)
        end = position + length
        if length < 0 or end > len(payload):
            raise CorruptBatch(
                f"a record claims {length} bytes; {len(payload) - position} are left"
            )
        yield _read_record(payload, position, end, header)
        position = end
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes follow the last record")


def _read_record(payload: bytes, position: int, end: int, batch: BatchHeader) -> Record:
    timestamp_delta, position = read_varint(payload, position + 1)  # behind the unused attributes
    offset_delta, position = read_varint(payload, position)
    key, position = _read_bytes(payload, position, end)
    value, position = _read_bytes(payload, position, end)
    headers, position = _read_headers(payload, position, end)
    if position != end:
        raise CorruptBatch(f"a record's length is off by {end - position}")
    timestamp = (
        batch.max_timestamp if batch.is_log_append_time else batch.base_timestamp + timestamp_delta
    )
    if not 0 <= offset_delta <= batch.last_offset_delta:
        raise CorruptBatch(f"a record claims the offset {offset_delta} behind its batch's first")
    if not -_I64_LIMIT <= timestamp < _I64_LIMIT:
        raise CorruptBatch(f"a record claims the timestamp {timestamp}")
    return Record(batch.base_offset + offset_delta, timestamp, key, value, headers)


def _read_bytes(payload: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(payload, position)
    if length < 0:
        return None, position
    if position + length > end:
        raise CorruptBatch(
            f"a field claims {length} bytes; {end - position} are left in its record"
        )
    return payload[position : position + length], position + length


def _read_headers(payload: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(payload, position)
    if count == 0:
        return (), position
    if count < 0 or count > end - position:
        raise CorruptBatch(f"a record claims {count} headers")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _read_bytes(payload, position, end)
        value, position = _read_bytes(payload, position, end)
        if name is None:
            raise CorruptBatch("a header has no key")
        try:
            headers.append((name.decode(), value))
        except UnicodeDecodeError as error:
            raise CorruptBatch(f"a header's key is not UTF-8: {error}") from error
    return tuple(headers), position
