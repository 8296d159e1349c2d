"""What goes into `__consumer_offsets`: records as values, and as Kafka's bytes.

Owns the byte layout of record types 0 and 1 (a committed offset) and 2 (a classic group); see
docs/formats/internal-topics.md. Knows nothing of what the values mean to a group. Types that are not
ours to understand (newer group protocols) decode to None and are passed over: a log written by a newer
broker must still load.

Reads value versions 0-4 of both kinds. Writes what Kafka 4.3 writes: an offset as version 4, or as 1
when it carries its own expiry; a group as version 3. A string that has no room in its record is refused
with `Refused`, as a batch too large would be.
"""

from struct import Struct, pack
from struct import error as struct_error
from typing import NamedTuple
from uuid import UUID

from headrace.coordinator.contract import StoredRecord
from headrace.coordinator.record_fields import (
    MalformedRecord,
    RecordReader,
    encode_nullable_string,
    encode_string,
    encode_uvarint,
)
from headrace.ids import NO_TOPIC_ID
from headrace.records.control_batch import TxnMarker

_OFFSET_COMMIT_TYPES = (0, 1)
_GROUP_METADATA_TYPE = 2
_GROUP_METADATA_VERSION = 3
_FLEXIBLE_FROM = 4
_TOPIC_ID_TAG = 0

_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")


class CommittedOffset(NamedTuple):
    """How far a group has come in one partition."""

    offset: int
    commit_timestamp_ms: int
    leader_epoch: int = -1
    metadata: str = ""
    expire_timestamp_ms: int | None = None
    """Set only by old clients that bring their own retention (OffsetCommit v2-4)."""
    topic_id: UUID = NO_TOPIC_ID


class StoredMember(NamedTuple):
    """A member as the generation's record remembers it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A classic group in one generation."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_since_ms: int = -1
    members: tuple[StoredMember, ...] = ()


class OffsetRecord(NamedTuple):
    """An offset was committed, or (None) is no more."""

    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset | None


class GroupRecord(NamedTuple):
    """A group reached a generation, or (None) is no more."""

    group_id: str
    metadata: GroupMetadata | None


class PendingOffsetRecord(NamedTuple):
    """An offset was committed in a transaction of this producer, which is open. Stored as the offset, in a transactional batch."""

    producer_id: int
    record: OffsetRecord


class TransactionEndRecord(NamedTuple):
    """A producer's transaction has ended. Stored as a marker."""

    producer_id: int
    is_commit: bool


GroupLogRecord = OffsetRecord | GroupRecord | PendingOffsetRecord | TransactionEndRecord


# -- writing -------------------------------------------------------------------------------------


def encode_record(record: GroupLogRecord) -> StoredRecord:
    """Key and value of a record; value None for a tombstone."""
    if isinstance(record, PendingOffsetRecord):
        record = record.record
    assert not isinstance(record, TransactionEndRecord), "a marker has a batch of its own"
    if isinstance(record, OffsetRecord):
        return _encode_offset_key(record), (
            None if record.committed is None else _encode_offset_value(record.committed)
        )
    key = _I16.pack(_GROUP_METADATA_TYPE) + encode_string(record.group_id)
    return key, None if record.metadata is None else _encode_group_value(record.metadata)


def _encode_offset_key(record: OffsetRecord) -> bytes:
    return b"".join(
        (
            b"\0\1",
            encode_string(record.group_id),
            encode_string(record.topic),
            _I32.pack(record.partition),
        )
    )


def _encode_offset_value(committed: CommittedOffset) -> bytes:
    if committed.expire_timestamp_ms is not None:
        return b"".join(
            (
                pack(">hq", 1, committed.offset),
                encode_string(committed.metadata),
                pack(">qq", committed.commit_timestamp_ms, committed.expire_timestamp_ms),
            )
        )
    metadata = committed.metadata.encode()
    has_topic_id = committed.topic_id != NO_TOPIC_ID
    return b"".join(
        (
            pack(">hqi", 4, committed.offset, committed.leader_epoch),
            encode_uvarint(len(metadata) + 1),
            metadata,
            _I64.pack(committed.commit_timestamp_ms),
            # One tagged field: its number, its size, the id. Or none.
            b"\1\0\x10" + committed.topic_id.bytes if has_topic_id else b"\0",
        )
    )


def _encode_group_value(metadata: GroupMetadata) -> bytes:
    parts = [
        _I16.pack(_GROUP_METADATA_VERSION),
        encode_string(metadata.protocol_type),
        _I32.pack(metadata.generation_id),
        encode_nullable_string(metadata.protocol_name),
        encode_nullable_string(metadata.leader_id),
        pack(">qi", metadata.state_since_ms, len(metadata.members)),
    ]
    for member in metadata.members:
        parts += (
            encode_string(member.member_id),
            encode_nullable_string(member.instance_id),
            encode_string(member.client_id),
            encode_string(member.client_host),
            pack(">ii", member.rebalance_timeout_ms, member.session_timeout_ms),
            _I32.pack(len(member.subscription)),
            member.subscription,
            _I32.pack(len(member.assignment)),
            member.assignment,
        )
    return b"".join(parts)


def in_transaction(record: GroupLogRecord, producer_id: int) -> GroupLogRecord:
    """What a record means that was written in a transaction. Only commits of offsets wait for its end."""
    if isinstance(record, OffsetRecord) and record.committed is not None:
        return PendingOffsetRecord(producer_id, record)
    return record


def marker_record(marker: TxnMarker) -> GroupLogRecord:
    """What a marker means to groups."""
    return TransactionEndRecord(marker.producer_id, marker.is_commit)


# -- reading -------------------------------------------------------------------------------------


def decode_record(key: bytes, value: bytes | None) -> GroupLogRecord | None:
    """The record, or None if its type is not one of ours. Raises `MalformedRecord`."""
    try:
        reader = RecordReader(key)
        record_type = reader.i16()
        if record_type in _OFFSET_COMMIT_TYPES:
            return OffsetRecord(
                group_id=reader.string(),
                topic=reader.string(),
                partition=reader.i32(),
                committed=None if value is None else _decode_offset_value(value),
            )
        if record_type == _GROUP_METADATA_TYPE:
            return GroupRecord(
                group_id=reader.string(),
                metadata=None if value is None else _decode_group_value(value),
            )
    except (struct_error, ValueError, IndexError) as cause:
        raise MalformedRecord(f"key {key[:80].hex()}: {cause}") from cause
    return None


def _decode_offset_value(value: bytes) -> CommittedOffset:
    reader = RecordReader(value)
    version = reader.value_version()
    reader.flexible = version >= _FLEXIBLE_FROM
    offset = reader.i64()
    leader_epoch = reader.i32() if version >= 3 else -1
    metadata = reader.string()
    commit_timestamp_ms = reader.i64()
    expire_timestamp_ms = reader.i64() if version == 1 else -1
    topic_id = reader.tags().get(_TOPIC_ID_TAG)
    return CommittedOffset(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=commit_timestamp_ms,
        expire_timestamp_ms=None if expire_timestamp_ms == -1 else expire_timestamp_ms,
        topic_id=NO_TOPIC_ID if topic_id is None else UUID(bytes=topic_id),
    )


def _decode_group_value(value: bytes) -> GroupMetadata:
    reader = RecordReader(value)
    version = reader.value_version()
    reader.flexible = version >= _FLEXIBLE_FROM
    protocol_type = reader.string()
    generation_id = reader.i32()
    protocol_name = reader.nullable_string()
    leader_id = reader.nullable_string()
    state_since_ms = reader.i64() if version >= 2 else -1
    members = tuple(_decode_member(reader, version) for _ in range(reader.length()))
    reader.tags()
    return GroupMetadata(
        protocol_type=protocol_type,
        generation_id=generation_id,
        protocol_name=protocol_name,
        leader_id=leader_id,
        state_since_ms=state_since_ms,
        members=members,
    )


def _decode_member(reader: RecordReader, version: int) -> StoredMember:
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id = reader.string()
    client_host = reader.string()
    rebalance_timeout_ms = reader.i32() if version >= 1 else -1
    session_timeout_ms = reader.i32()
    subscription = reader.sized_bytes()
    assignment = reader.sized_bytes()
    reader.tags()
    return StoredMember(
        member_id=member_id,
        instance_id=instance_id,
        client_id=client_id,
        client_host=client_host,
        # Version 0 had no rebalance timeout; the session timeout served for both.
        rebalance_timeout_ms=(
            session_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms
        ),
        session_timeout_ms=session_timeout_ms,
        subscription=subscription,
        assignment=assignment,
    )
