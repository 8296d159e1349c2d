"""Fetch responses by hand: pieces to be sent in order, between which the batches stay unread.

Three layouts: versions 4-11 have plain lengths, 12 is flexible with topic names, 13-18 are flexible
with topic ids. What is rare (aborted transactions, a diverging epoch, the new leader) goes through
the compiled encoder, so that it is written down once. A test holds both to the same bytes.

A response is built of `FetchedPartition`s; what is rare stands apart in their `details`. Only the
length of `records` is looked at, so they may be a view of anything.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from headrace.wire.codec import Piece, struct_encoder, tagged_array
from headrace.wire.message import UUID
from headrace.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from headrace.wire.primitives import unsigned_varint

FIRST_WITH_SESSIONS = 7
FIRST_WITH_PREFERRED_REPLICA = 11
FIRST_FLEXIBLE = 12
FIRST_WITH_IDS = 13
FIRST_WITH_ENDPOINTS = 16

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_ERROR_AND_SESSION = Struct(">hi").pack
_FETCHED_V4 = Struct(">ihqqii").pack
_FETCHED_V5 = Struct(">ihqqqii").pack
_FETCHED_V11 = Struct(">ihqqqiii").pack
_FETCHED_V12 = Struct(">ihqqqBi").pack


class FetchDetails(NamedTuple):
    """What a partition's answer says beyond its offsets (v12+; snapshots are the quorum's own)."""

    diverging_epoch: EpochEndOffset | None = None
    current_leader: LeaderIdAndEpoch | None = None
    snapshot_id: SnapshotId | None = None


class FetchedPartition:
    """The answer for one partition.

    `aborted_transactions` is None for read_uncommitted and a sequence, maybe empty, for
    read_committed; `records` are whole batches and never None, because librdkafka would give up.
    """

    __slots__ = (
        "aborted_transactions",
        "details",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition_index",
        "preferred_read_replica",
        "records",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - by position, because one is made for every partition of every fetch
        self,
        partition_index: int,
        error_code: int = 0,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        records: bytes | memoryview = b"",
        aborted_transactions: Sequence[AbortedTransaction] | None = None,
        preferred_read_replica: int = -1,
        details: FetchDetails | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.aborted_transactions = aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.details = details


class FetchedTopic(NamedTuple):
    """The answers for one topic."""

    topic: str
    topic_id: UUID
    partitions: Sequence[FetchedPartition]


def encode_fetch_response(
    version: int,
    topics: Sequence[FetchedTopic],
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Piece]:
    """The body of a response as pieces to be sent in order; records are pieces as they are."""
    pieces: list[Piece] = []
    between: list[Piece] = [_INT32.pack(throttle_time_ms)]  # what goes in front of the next records
    if version >= FIRST_WITH_SESSIONS:
        between.append(_ERROR_AND_SESSION(error_code, session_id))
    if version < FIRST_FLEXIBLE:
        _encode_plain(version, topics, between, pieces)
    else:
        _encode_flexible(version, topics, between, pieces)
        if version >= FIRST_WITH_ENDPOINTS and node_endpoints:
            write = struct_encoder(NodeEndpoint, version, FetchResponse)
            between.append(tagged_array(0, node_endpoints, write))
        else:
            between.append(b"\0")
    if between:
        pieces.append(b"".join(between))
    return pieces


def _encode_flexible(
    version: int, topics: Sequence[FetchedTopic], between: list[Piece], pieces: list[Piece]
) -> None:
    append = between.append
    append(unsigned_varint(len(topics) + 1))
    for topic in topics:
        if version >= FIRST_WITH_IDS:
            append(topic.topic_id.int.to_bytes(16))
        else:
            name = topic.topic.encode()
            append(unsigned_varint(len(name) + 1))
            append(name)
        append(unsigned_varint(len(topic.partitions) + 1))
        for one in topic.partitions:
            if one.details is not None or one.aborted_transactions:
                _encode_rare(version, one, between, pieces)
                continue
            records = one.records
            size = len(records)
            append(
                _FETCHED_V12(
                    one.partition_index,
                    one.error_code,
                    one.high_watermark,
                    one.last_stable_offset,
                    one.log_start_offset,
                    0 if one.aborted_transactions is None else 1,
                    one.preferred_read_replica,
                )
            )
            if size:
                append(unsigned_varint(size + 1))
                pieces.append(b"".join(between))
                pieces.append(records)
                between.clear()
                append(b"\0")
            else:
                append(b"\1\0")
        append(b"\0")


def _encode_plain(
    version: int, topics: Sequence[FetchedTopic], between: list[Piece], pieces: list[Piece]
) -> None:
    between.append(_INT32.pack(len(topics)))
    for topic in topics:
        name = topic.topic.encode()
        between += (_INT16.pack(len(name)), name, _INT32.pack(len(topic.partitions)))
        for one in topic.partitions:
            if one.aborted_transactions:
                _encode_rare(version, one, between, pieces)
                continue
            size = len(one.records)
            aborted = -1 if one.aborted_transactions is None else 0
            row = (one.partition_index, one.error_code, one.high_watermark, one.last_stable_offset)
            if version >= FIRST_WITH_PREFERRED_REPLICA:
                replica = one.preferred_read_replica
                between.append(_FETCHED_V11(*row, one.log_start_offset, aborted, replica, size))
            elif version >= 5:
                between.append(_FETCHED_V5(*row, one.log_start_offset, aborted, size))
            else:
                between.append(_FETCHED_V4(*row, aborted, size))
            if size:
                pieces.append(b"".join(between))
                pieces.append(one.records)
                between.clear()


def _encode_rare(
    version: int, one: FetchedPartition, between: list[Piece], pieces: list[Piece]
) -> None:
    details = one.details or FetchDetails()
    message = PartitionData(
        partition_index=one.partition_index,
        error_code=one.error_code,
        high_watermark=one.high_watermark,
        last_stable_offset=one.last_stable_offset,
        log_start_offset=one.log_start_offset,
        diverging_epoch=details.diverging_epoch,
        current_leader=details.current_leader,
        snapshot_id=details.snapshot_id,
        aborted_transactions=one.aborted_transactions,
        preferred_read_replica=one.preferred_read_replica,
        records=one.records,
    )
    pieces += between
    between.clear()
    struct_encoder(PartitionData, version, FetchResponse)(message, pieces.append)
