"""Where the fields of every record of a whole fetch lie, found column by column with numpy (no Python object per record).

Only the lengths of records are walked one by one; every other field is decoded for all records of a fetch at once, whatever
the size of their batches. The bytes may be hostile: each length is held against its record's end before it is used, and
anything that is not what it claims raises CorruptBatch, as `records.batch_reader` does for one batch. It must not know Arrow.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.errors import CorruptBatch
from headrace.records.batch_view import (
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    Buffer,
    has_valid_crc,
    read_header,
)
from headrace.records.compression import DEFAULT_LIMIT_BYTES, Codec, decompress
from headrace.records.control_batch import ControlType, read_marker

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PART_BYTES: Final = 64 * 1024 * 1024  # opened at once: what inflated batches may take together
PART_ROWS: Final = 65_536
_INT64_BITS: Final = 64
_FEW_RECORDS: Final = 16  # fewer of one length are walked as fast as they are compared
_STRETCH_RECORDS: Final = 64


class Aborted(NamedTuple):
    """A transaction that was aborted, as a fetch with read_committed names it."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRange:
    """Which records of a partition: offsets from `start` up to, not including, `end`."""

    start: int
    end: int
    limit_bytes: int = DEFAULT_LIMIT_BYTES


@dataclass(slots=True, kw_only=True)
class Spans:
    """The records of one part of a fetch. Starts and ends are positions in `payload`; a null field has length -1."""

    payload: bytes
    offset: Int64s
    timestamp_ms: Int64s
    log_append_time: Bools
    key_start: Int64s
    key_length: Int64s
    value_start: Int64s
    value_length: Int64s
    header_start: Int64s  # behind the count
    header_count: Int64s
    record_end: Int64s

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(slots=True)
class _Part:
    """Batches that are opened together."""

    headers: list[BatchHeader] = field(default_factory=list)
    pieces: list[bytes | memoryview] = field(default_factory=list)
    payload_bytes: int = 0
    rows: int = 0


def spans_in(
    fetched: Buffer, wanted: RecordRange, aborted: Sequence[Aborted] = ()
) -> Iterator[Spans]:
    """The wanted records, in parts of bounded size. A batch that is cut off at the end is left for the next fetch."""
    part = _Part()
    with memoryview(fetched) as view:
        for position, header in _open_transactions(view, aborted):
            if header.last_offset < wanted.start or not header.record_count:
                continue
            if header.base_offset >= wanted.end:
                break
            batch = view[position : position + header.size]
            _check(batch, header)
            payload = decompress(header.codec, batch[HEADER_BYTES:], wanted.limit_bytes)
            if part.headers and (
                part.payload_bytes + len(payload) > PART_BYTES or part.rows >= PART_ROWS
            ):
                yield _spans(part, wanted)
                part = _Part()
            part.headers.append(header)
            part.pieces.append(payload)
            part.payload_bytes += len(payload)
            part.rows += header.record_count
        if part.headers:
            yield _spans(part, wanted)


def _whole_batches(fetched: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    position, end = 0, len(fetched)
    while end - position >= HEADER_BYTES:
        header = read_header(fetched, position)
        if header.magic != MAGIC:
            raise CorruptBatch(f"unsupported batch format {header.magic}")
        if header.size < HEADER_BYTES:
            raise CorruptBatch(f"a batch at {position} claims {header.size} bytes")
        if position + header.size > end:
            return
        yield position, header
        position += header.size


def _open_transactions(
    view: memoryview, aborted: Sequence[Aborted]
) -> Iterator[tuple[int, BatchHeader]]:
    """The batches that hold data: no markers, and nothing of a transaction that was aborted."""
    coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    ongoing: set[int] = set()
    for position, header in _whole_batches(view):
        while coming and coming[-1].first_offset <= header.last_offset:
            ongoing.add(coming.pop().producer_id)
        if header.is_control:
            if header.producer_id in ongoing and _is_abort(view, position, header):
                ongoing.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ongoing):
            yield position, header


def _is_abort(view: memoryview, position: int, header: BatchHeader) -> bool:
    control_type, _ = read_marker(view[position : position + header.size])
    return control_type == ControlType.ABORT


def _check(batch: memoryview, header: BatchHeader) -> None:
    if not has_valid_crc(batch):
        raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} does not fit")
    if header.codec > Codec.ZSTD or header.record_count < 0:
        raise CorruptBatch(f"the batch at offset {header.base_offset} has an impossible header")


def _spans(part: _Part, wanted: RecordRange) -> Spans:
    payload = b"".join(part.pieces)
    starts, ends, counts = _record_bodies(payload, part)
    data = np.frombuffer(payload, dtype=np.uint8)
    timestamp_delta, position = varints(data, starts + 1, ends)  # behind the unused attributes
    offset_delta, position = varints(data, position, ends)
    key_length, key_start = varints(data, position, ends)
    position = behind(key_start, key_length, ends)
    value_length, value_start = varints(data, position, ends)
    position = behind(value_start, value_length, ends)
    header_count, header_start = varints(data, position, ends)
    if ((header_count < 0) | (header_count > ends - header_start)).any():
        raise CorruptBatch("a record claims an impossible number of headers")
    if ((header_count == 0) & (header_start != ends)).any():
        raise CorruptBatch("a record's length is off")
    offset, timestamp_ms, log_append_time = _stamps(part, counts, offset_delta, timestamp_delta)
    keep = (offset >= wanted.start) & (offset < wanted.end)
    chosen = slice(None) if keep.all() else keep
    return Spans(
        payload=payload,
        offset=offset[chosen],
        timestamp_ms=timestamp_ms[chosen],
        log_append_time=log_append_time[chosen],
        key_start=key_start[chosen],
        key_length=np.maximum(key_length, -1)[chosen],
        value_start=value_start[chosen],
        value_length=np.maximum(value_length, -1)[chosen],
        header_start=header_start[chosen],
        header_count=header_count[chosen],
        record_end=ends[chosen],
    )


def _record_bodies(payload: bytes, part: _Part) -> tuple[Int64s, Int64s, Int64s]:
    """Start and end of every record's body, and how many records each batch has."""
    firsts: list[int] = []
    lasts: list[int] = []
    piece_end = 0
    for header, piece in zip(part.headers, part.pieces, strict=True):
        position = piece_end
        piece_end += len(piece)
        if header.record_count > len(piece):
            raise CorruptBatch(
                f"a batch of {len(piece)} bytes claims {header.record_count} records"
            )
        position = _walk(payload, position, header.record_count, firsts)
        lasts.append(position)
        if position != piece_end:
            raise CorruptBatch("the records of a batch do not end where the batch ends")
    counts = np.array([header.record_count for header in part.headers], dtype=np.int64)
    prefixes = np.array(firsts, dtype=np.int64)
    # A record ends where the next one begins; the last of a batch where its batch ends.
    ends = np.empty_like(prefixes)
    ends[:-1] = prefixes[1:]
    ends[np.cumsum(counts) - 1] = lasts
    length, starts = varints(np.frombuffer(payload, dtype=np.uint8), prefixes, ends)
    if (starts + length != ends).any() or (length < 1).any():
        raise CorruptBatch("a record's length is not the length of a record")
    return starts, ends, counts


def _walk(payload: bytes, position: int, count: int, firsts: list[int]) -> int:
    """Append where each record's length stands. Lengths are taken as positive here, and checked later for all."""
    stretch = _STRETCH_RECORDS
    while count:
        length, following = _alike(payload, position, count)
        if length:
            firsts.extend(range(position, following, (following - position) // length))
            position, count = following, count - length
            stretch = _STRETCH_RECORDS
            continue
        walked = min(count, stretch)
        position = _walk_singly(payload, position, walked, firsts)
        count -= walked
        stretch *= 2  # records of many lengths are not asked again and again whether they are alike
    return position


def _alike(payload: bytes, position: int, count: int) -> tuple[int, int]:
    """How many records from here on have the length of the first one, and where they end; 0 where they are too few.

    Each length that is the same leads to the next one, so none is guessed: the first that differs ends the row.
    """
    if position + 1 >= len(payload):
        return 0, position
    byte, second = payload[position], payload[position + 1]
    if byte < 0x80:
        size = 1 + (byte >> 1)
    elif second < 0x80:
        size = 2 + ((byte & 0x7F | second << 7) >> 1)
    else:
        return 0, position
    most = min(count, (len(payload) - position) // size)
    if most < _FEW_RECORDS or payload[position + size] != byte:
        return 0, position
    data = np.frombuffer(payload, dtype=np.uint8)
    until = position + size * most
    same = data[position:until:size] == byte
    if byte >= 0x80:
        same &= data[position + 1 : until : size] == second
    length = most if same.all() else int(np.argmin(same))
    return (length, position + size * length) if length >= _FEW_RECORDS else (0, position)


def _walk_singly(payload: bytes, position: int, count: int, firsts: list[int]) -> int:
    append = firsts.append
    try:
        for _ in range(count):
            append(position)
            byte = payload[position]
            if byte < 0x80:
                position += 1 + (byte >> 1)
                continue
            second = payload[position + 1]
            if second < 0x80:
                position += 2 + ((byte & 0x7F | second << 7) >> 1)
                continue
            length, shift = byte & 0x7F, 7
            while True:
                position += 1
                byte = payload[position]
                length |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
                if shift > _INT64_BITS:
                    raise CorruptBatch("a record's length is longer than 64 bits")
            position += 1 + (length >> 1)
    except IndexError:
        raise CorruptBatch("the batch ends inside a record's length") from None
    return position


def varints(data: npt.NDArray[np.uint8], at: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """The zigzag numbers at these positions, and the positions behind them."""
    if (at >= ends).any():
        raise CorruptBatch("a record ends inside a variable-length integer")
    byte = data[at]
    encoded = (byte & 0x7F).astype(np.uint64)
    position = at + 1
    longer = np.flatnonzero(byte >= 0x80)
    shift = 7
    while longer.size:
        if (position[longer] >= ends[longer]).any():
            raise CorruptBatch("a record ends inside a variable-length integer")
        byte = data[position[longer]]
        if shift >= _INT64_BITS or (shift == _INT64_BITS - 1 and (byte > 1).any()):
            raise CorruptBatch("a variable-length integer is longer than 64 bits")
        encoded[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        position[longer] += 1
        longer = longer[byte >= 0x80]
        shift += 7
    value = (encoded >> np.uint64(1)).astype(np.int64) ^ -(encoded & np.uint64(1)).astype(np.int64)
    return value, position


def behind(start: Int64s, length: Int64s, ends: Int64s) -> Int64s:
    """The position behind a field; a negative length is a null."""
    if (length > ends - start).any():
        raise CorruptBatch("a field claims more bytes than its record has")
    following: Int64s = start + np.maximum(length, 0)
    return following


def _stamps(
    part: _Part, counts: Int64s, offset_delta: Int64s, timestamp_delta: Int64s
) -> tuple[Int64s, Int64s, Bools]:
    """Offset, timestamp and kind of timestamp of every record."""

    def repeated(values: Iterable[int]) -> Int64s:
        each: Int64s = np.repeat(np.fromiter(values, dtype=np.int64, count=len(counts)), counts)
        return each

    last_delta = repeated(header.last_offset_delta for header in part.headers)
    if ((offset_delta < 0) | (offset_delta > last_delta)).any():
        raise CorruptBatch("a record claims an offset outside its batch")
    offset = repeated(header.base_offset for header in part.headers) + offset_delta
    base = repeated(header.base_timestamp for header in part.headers)
    timestamp_ms = base + timestamp_delta
    appended = repeated(header.is_log_append_time for header in part.headers).astype(np.bool_)
    overflowed = ((base ^ timestamp_ms) & (timestamp_delta ^ timestamp_ms)) < 0
    if (overflowed & ~appended).any():
        raise CorruptBatch("a record claims an impossible timestamp")
    if appended.any():
        newest = repeated(header.max_timestamp for header in part.headers)
        timestamp_ms = np.where(appended, newest, timestamp_ms)
    return offset, timestamp_ms, appended
