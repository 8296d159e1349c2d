"""The header of a record batch, read from and stamped into the raw bytes. Never inflates, never copies.

Layout (big endian), see docs/formats/segment.md:

    OFFSET SIZE  FIELD                 covered by the checksum
    0      8     base offset           no     stamped by the leader
    8      4     length (from 12 on)   no
    12     4     leader epoch          no     stamped by the leader
    16     1     magic (2)             no
    17     4     CRC-32C of 21..end    -
    21     2     attributes            yes
    23     4     last offset delta     yes
    27     8     base timestamp        yes
    35     8     max timestamp         yes
    43     8     producer id           yes
    51     2     producer epoch        yes
    53     4     base sequence         yes
    57     4     record count          yes
    61     ...   records               yes

Because offset and leader epoch lie outside the checksum, a leader stamps them without touching the payload.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from headrace.errors import CorruptBatch
from headrace.records.crc32c import crc32c

Buffer = bytes | bytearray | memoryview

_HEADER: Final = Struct(">qiibIhiqqqhii")
_OFFSET_AND_LENGTH: Final = Struct(">qi")
_LENGTH: Final = Struct(">i")
_PLACE: Final = Struct(">qii")  # base offset, length, leader epoch
_I32: Final = Struct(">i")
_U32: Final = Struct(">I")
_I64: Final = Struct(">q")
_I16: Final = Struct(">h")

HEADER_BYTES: Final = _HEADER.size
LOG_OVERHEAD: Final = 12  # base offset and length: what `length` does not count
MAGIC: Final = 2
NO_TIMESTAMP: Final = -1
NO_SEQUENCE: Final = -1

_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_DELETE_HORIZON: Final = 0x40

_MAX_SEQUENCE: Final = 2**31 - 1

_row = tuple.__new__  # half the price of calling a NamedTuple


class BatchHeader(NamedTuple):
    """The 61 bytes in front of every batch, as numbers."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record (or of the place it had before compaction)."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """First offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; sequences wrap from 2^31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return sequence_after(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        """Number of the compression codec."""
        return self.attributes & _CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker's clock, not the producer's, gave the timestamps."""
        return self.attributes & _LOG_APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.attributes & _TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker and not data."""
        return self.attributes & _CONTROL != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers in this batch may go; set by the first compaction that sees them."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON else None

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote the batch."""
        return self.producer_id > -1


def sequence_after(sequence: int, steps: int) -> int:
    """The sequence number `steps` further on, wrapping as Kafka's does."""
    return (sequence + steps) & _MAX_SEQUENCE


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header that starts at `position`; the caller knows that 61 bytes are there."""
    return _row(BatchHeader, _HEADER.unpack_from(buffer, position))


def read_offset_and_size(buffer: Buffer, position: int) -> tuple[int, int]:
    """Base offset and whole size of the batch at `position`, from its first 12 bytes."""
    base_offset, length = _OFFSET_AND_LENGTH.unpack_from(buffer, position)
    return base_offset, length + LOG_OVERHEAD


def read_size(buffer: Buffer, position: int) -> int:
    """Whole size of the batch at `position`."""
    return int(_LENGTH.unpack_from(buffer, position + 8)[0]) + LOG_OVERHEAD


def headers_in(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch. Raises CorruptBatch where the bytes stop being whole batches."""
    position, end = 0, len(buffer)
    while position < end:
        if end - position < HEADER_BYTES:
            raise CorruptBatch(
                f"{end - position} bytes left at {position}: less than a batch header"
            )
        header = read_header(buffer, position)
        if header.size < HEADER_BYTES or position + header.size > end:
            raise CorruptBatch(
                f"batch at {position} claims {header.size} of {end - position} bytes"
            )
        yield position, header
        position += header.size


def has_valid_crc(batch: Buffer) -> bool:
    """Whether the stored checksum fits the bytes of exactly one batch."""
    stored = _U32.unpack_from(batch, 17)[0]
    if type(batch) is memoryview:
        return bool(crc32c(batch[21:]) == stored)
    with memoryview(batch) as view, view[21:] as covered:
        return bool(crc32c(covered) == stored)


def stamp(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Give the batch at `position` its place in the log. The checksum stays right."""
    _I64.pack_into(buffer, position, base_offset)
    _I32.pack_into(buffer, position + 12, leader_epoch)


def unstamp(batch: bytearray | memoryview, header: BatchHeader) -> None:
    """Make a batch again what it was when it had this header, whatever was stamped into it."""
    batch[:HEADER_BYTES] = pack_header(header)


def stamp_all(
    batches: Sequence[bytearray | memoryview],
    headers: Iterable[BatchHeader],
    base_offset: int,
    leader_epoch: int,
) -> list[BatchHeader]:
    """Give batches that were read before their places in the log, one behind the other. Returns their headers after that."""
    stamped: list[BatchHeader] = []
    for header in headers:
        length = header[1]
        _PLACE.pack_into(batches[len(stamped)], 0, base_offset, length, leader_epoch)
        stamped.append(_row(BatchHeader, (base_offset, length, leader_epoch, *header[3:])))
        base_offset += header.last_offset_delta + 1
    return stamped


def stamp_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """Make the broker's clock the batch's timestamp; this lies under the checksum, which is renewed."""
    attributes = _I16.unpack_from(batch, 21)[0]
    _I16.pack_into(batch, 21, attributes | _LOG_APPEND_TIME)
    _I64.pack_into(batch, 35, now_ms)
    renew_crc(batch)


def stamp_append_times(batches: Sequence[bytearray | memoryview], now_ms: int) -> list[BatchHeader]:
    """Make the broker's clock the timestamp of all batches. Returns their headers after that."""
    for batch in batches:
        stamp_append_time(batch, now_ms)
    return [read_header(batch) for batch in batches]


def renew_crc(batch: bytearray | memoryview) -> None:
    """Write the checksum that fits the batch's bytes."""
    with memoryview(batch) as view, view[21:] as covered:
        checksum = crc32c(covered)
    _U32.pack_into(batch, 17, checksum)


def pack_header(header: BatchHeader) -> bytes:
    """The 61 bytes of a header, as they stand; used by builders, which renew the checksum afterwards."""
    return _HEADER.pack(*header)


def attributes_of(
    *,
    codec: int = 0,
    log_append_time: bool = False,
    transactional: bool = False,
    control: bool = False,
    delete_horizon: bool = False,
) -> int:
    """The attribute bits for a new batch."""
    return (
        codec
        | (_LOG_APPEND_TIME if log_append_time else 0)
        | (_TRANSACTIONAL if transactional else 0)
        | (_CONTROL if control else 0)
        | (_DELETE_HORIZON if delete_horizon else 0)
    )
