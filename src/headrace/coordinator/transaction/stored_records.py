"""What goes into `__transaction_state`: records as values, and as Kafka's bytes.

Owns the byte layout of record type 0 (a transactional id); see docs/formats/internal-topics.md. Knows nothing of what the
values mean. Types that are not ours to understand decode to None and are passed over: a log written by a newer broker must
still load.

Reads value versions 0 and 1. Writes version 1, whose tagged fields hold the producer ids around a change of ids and the
client's transaction version, or version 0 as long as the cluster's feature `transaction.version` is 0.
"""

from itertools import groupby
from operator import attrgetter
from struct import Struct, pack
from struct import error as struct_error
from typing import Final, NamedTuple

from headrace.coordinator.contract import StoredRecord
from headrace.coordinator.record_fields import (
    MalformedRecord,
    RecordReader,
    encode_string,
    encode_uvarint,
)
from headrace.coordinator.transaction.state import Status, Transaction
from headrace.ids import NO_PRODUCER_ID, ProducerId, TopicPartition

TRANSACTION_TYPE: Final = 0
FIXED_VERSION: Final = 0
FLEXIBLE_VERSION: Final = 1

_NUMBERS: Final = {
    Status.EMPTY: 0,
    Status.ONGOING: 1,
    Status.PREPARE_COMMIT: 2,
    Status.PREPARE_ABORT: 3,
    Status.COMPLETE_COMMIT: 4,
    Status.COMPLETE_ABORT: 5,
}
_STATUSES: Final = {number: status for status, number in _NUMBERS.items()}
_PREVIOUS_PRODUCER_ID_TAG: Final = 0
_NEXT_PRODUCER_ID_TAG: Final = 1
_CLIENT_VERSION_TAG: Final = 2

_I16 = Struct(">h")
_I64 = Struct(">q")


class TransactionRecord(NamedTuple):
    """A transactional id reached a state, or (None) is no more."""

    transactional_id: str
    transaction: Transaction | None


# -- writing -------------------------------------------------------------------------------------


def encode_record(record: TransactionRecord, value_version: int = FLEXIBLE_VERSION) -> StoredRecord:
    """Key and value of a record; value None for a tombstone."""
    key = _I16.pack(TRANSACTION_TYPE) + encode_string(record.transactional_id)
    if record.transaction is None:
        return key, None
    return key, _encode_value(record.transaction, value_version)


def _encode_value(transaction: Transaction, version: int) -> bytes:
    is_flexible = version >= FLEXIBLE_VERSION
    return b"".join(
        (
            pack(
                ">hqhib",
                version,
                transaction.producer_id,
                transaction.producer_epoch,
                transaction.timeout_ms,
                _NUMBERS[transaction.status],
            ),
            _encode_partitions(transaction, is_flexible=is_flexible),
            pack(">qq", transaction.last_update_ms, transaction.start_ms),
            _encode_tags(transaction) if is_flexible else b"",
        )
    )


def _encode_partitions(transaction: Transaction, *, is_flexible: bool) -> bytes:
    """Null for an empty transactional id, as Kafka writes it."""
    if transaction.status is Status.EMPTY:
        return b"\0" if is_flexible else pack(">i", -1)
    topics = [
        (topic, [each.partition for each in partitions])
        for topic, partitions in groupby(sorted(transaction.partitions), attrgetter("topic"))
    ]
    parts = [_count(len(topics), is_flexible=is_flexible)]
    for topic, indexes in topics:
        name = topic.encode()
        parts += (
            encode_uvarint(len(name) + 1) + name if is_flexible else encode_string(topic),
            _count(len(indexes), is_flexible=is_flexible),
            pack(f">{len(indexes)}i", *indexes),
            b"\0" if is_flexible else b"",
        )
    return b"".join(parts)


def _count(count: int, *, is_flexible: bool) -> bytes:
    return encode_uvarint(count + 1) if is_flexible else pack(">i", count)


def _encode_tags(transaction: Transaction) -> bytes:
    """Those that differ from their defaults, each with its number and its size."""
    tags = []
    if transaction.previous_producer_id != NO_PRODUCER_ID:
        tags.append(b"\0\x08" + _I64.pack(transaction.previous_producer_id))
    if transaction.next_producer_id != NO_PRODUCER_ID:
        tags.append(b"\1\x08" + _I64.pack(transaction.next_producer_id))
    if transaction.client_version:
        tags.append(b"\2\x02" + _I16.pack(transaction.client_version))
    return encode_uvarint(len(tags)) + b"".join(tags)


# -- reading -------------------------------------------------------------------------------------


def decode_record(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """The record, or None if its type is not ours. Raises `MalformedRecord`."""
    try:
        reader = RecordReader(key)
        if reader.i16() != TRANSACTION_TYPE:
            return None
        return TransactionRecord(
            transactional_id=reader.string(),
            transaction=None if value is None else _decode_value(value),
        )
    except (struct_error, ValueError, IndexError) as cause:
        raise MalformedRecord(f"key {key[:80].hex()}: {cause}") from cause


def _decode_value(value: bytes) -> Transaction:
    reader = RecordReader(value)
    reader.flexible = reader.value_version() >= FLEXIBLE_VERSION
    producer_id, producer_epoch = reader.i64(), reader.i16()
    timeout_ms = reader.i32()
    status = _decode_status(reader.i8())
    partitions = _decode_partitions(reader)
    last_update_ms, start_ms = reader.i64(), reader.i64()
    tags = reader.tags()
    return Transaction(
        producer_id=ProducerId(producer_id),
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        status=status,
        last_update_ms=last_update_ms,
        start_ms=start_ms,
        partitions=frozenset() if status is Status.EMPTY else partitions,
        client_version=_tagged(tags, _CLIENT_VERSION_TAG, _I16, 0),
        previous_producer_id=ProducerId(
            _tagged(tags, _PREVIOUS_PRODUCER_ID_TAG, _I64, NO_PRODUCER_ID)
        ),
        next_producer_id=ProducerId(_tagged(tags, _NEXT_PRODUCER_ID_TAG, _I64, NO_PRODUCER_ID)),
    )


def _decode_status(number: int) -> Status:
    if number not in _STATUSES:
        # Kafka's Dead (6) and PrepareEpochFence (7) exist in memory only.
        raise struct_error(f"transaction status {number}")
    return _STATUSES[number]


def _decode_partitions(reader: RecordReader) -> frozenset[TopicPartition]:
    partitions: set[TopicPartition] = set()
    for _ in range(reader.length()):
        topic = reader.string()
        partitions.update(TopicPartition(topic, reader.i32()) for _ in range(reader.length()))
        reader.tags()
    return frozenset(partitions)


def _tagged(tags: dict[int, bytes], tag: int, layout: Struct, default: int) -> int:
    if tag not in tags:
        return default
    value: int = layout.unpack(tags[tag])[0]
    return value
