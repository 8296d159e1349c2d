"""`.snapshot`: producer state as it was before an offset, so that recovery need not replay the whole log.

Layout (big endian): i16 version 1; u32 CRC-32C of everything behind it; i32 count; 46 bytes for each producer:
i64 producer id, i16 epoch, i32 last sequence, i64 last offset, i32 offset delta of the last batch, i64 timestamp,
i32 coordinator epoch, i64 first offset of its open transaction (-1 if none). Behind these, if any producer has more than one
batch: i32 count; 40 bytes for each batch that came before the last one of its producer, oldest first: i64 producer id,
i32 first sequence, i32 last sequence, i64 base offset, i64 last offset, i64 timestamp. Kafka does not read so far.
"""

from struct import Struct
from typing import Final

from headrace.errors import CorruptBatch
from headrace.log.producers.producer_state import KnownBatch, ProducerEntry, ProducerState
from headrace.records.batch_view import sequence_after
from headrace.records.crc32c import crc32c

SNAPSHOT_SUFFIX: Final = ".snapshot"

_VERSION: Final = 1
_VERSION_AND_CRC: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_EARLIER_BATCH: Final = Struct(">qiiqqq")


def encode_snapshot(state: ProducerState) -> bytes:
    """The file's bytes."""
    body = bytearray(_COUNT.pack(len(state)))
    for entry in state:
        last = entry.batches[-1] if entry.batches else None
        body += _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            0 if last is None else last.last_offset - last.base_offset,
            entry.last_timestamp,
            entry.coordinator_epoch,
            -1 if entry.txn_first_offset is None else entry.txn_first_offset,
        )
    body += _encode_earlier_batches(state)
    return _VERSION_AND_CRC.pack(_VERSION, crc32c(body)) + bytes(body)


def _encode_earlier_batches(state: ProducerState) -> bytes:
    """A retry of any batch that was in flight must be recognised after a restart, not only of the last one."""
    earlier = [
        _EARLIER_BATCH.pack(entry.producer_id, *batch)
        for entry in state
        for batch in list(entry.batches)[:-1]
    ]
    return _COUNT.pack(len(earlier)) + b"".join(earlier) if earlier else b""


def decode_snapshot(content: bytes) -> ProducerState:
    """The state; CorruptBatch if the file is damaged, which makes recovery fall back to an older one."""
    start = _VERSION_AND_CRC.size
    if len(content) < start + _COUNT.size:
        raise CorruptBatch(f"a snapshot of {len(content)} bytes")
    version, crc = _VERSION_AND_CRC.unpack_from(content)
    body = content[start:]
    count = _COUNT.unpack_from(body)[0]
    entries_end = _COUNT.size + count * _ENTRY.size
    if version != _VERSION or crc32c(body) != crc or not 0 <= entries_end <= len(body):
        raise CorruptBatch("a producer snapshot whose checksum or length does not fit")
    earlier = _decode_earlier_batches(body[entries_end:])
    state = ProducerState()
    for fields in _ENTRY.iter_unpack(body[_COUNT.size : entries_end]):
        entry = _producer(fields)
        entry.batches.extendleft(reversed(earlier.get(entry.producer_id, ())))
        state.put(entry)
    return state


def _decode_earlier_batches(content: bytes) -> dict[int, list[KnownBatch]]:
    if not content:
        return {}
    if len(content) < _COUNT.size or (
        len(content) != _COUNT.size + _COUNT.unpack_from(content)[0] * _EARLIER_BATCH.size
    ):
        raise CorruptBatch("a producer snapshot whose length does not fit")
    batches: dict[int, list[KnownBatch]] = {}
    for producer_id, *fields in _EARLIER_BATCH.iter_unpack(content[_COUNT.size :]):
        batches.setdefault(producer_id, []).append(KnownBatch(*fields))
    return batches


def _producer(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first = (
        fields
    )
    entry = ProducerEntry(producer_id)
    entry.epoch = epoch
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.txn_first_offset = None if first < 0 else first
    if last_offset >= 0:
        entry.batches.append(
            KnownBatch(
                sequence_after(last_sequence, -delta),
                last_sequence,
                last_offset - delta,
                last_offset,
                timestamp,
            )
        )
    return entry
