"""Produce responses by hand, in few calls. (The compiled decoder reads requests as fast, without a copy.)

Three layouts: versions 3-8 have plain lengths, 9-12 are flexible with topic names, 13 is flexible
with topic ids. What is rare (an error message, rejected records, the new leader) stands apart in a
result's `details` and goes through the compiled encoder, so that it is written down once. A test holds
both to the same bytes.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from headrace.wire.codec import Piece, struct_encoder, tagged_array
from headrace.wire.message import UUID
from headrace.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
)
from headrace.wire.primitives import (
    unsigned_varint,
)

FIRST_FLEXIBLE = 9
FIRST_WITH_ENDPOINTS = 10
FIRST_WITH_IDS = 13

_LENGTH16 = Struct(">h")
_LENGTH32 = Struct(">i")
_PLAIN_HEAD = Struct(">hii")  # acks, timeout, topics
_PLAIN_PARTITION = Struct(">ii")  # index, size of its records
_FLEXIBLE_HEAD = Struct(">hiB")
_FLEXIBLE_PARTITION = Struct(">iB")
_ID_AND_COUNT = Struct(">16sB")

_RESULT_V3 = Struct(">ihqq").pack
_RESULT_V5 = Struct(">ihqqq").pack
_RESULT_V8 = Struct(">ihqqqih").pack
_RESULT_V9 = Struct(">ihqqqBxx").pack

_row = tuple.__new__  # half the price of calling a NamedTuple


class ProduceErrorDetails(NamedTuple):
    """What a result says beyond its code: text and rejected records (v8+), the new leader (v10+)."""

    error_message: str | None = None
    record_errors: Sequence[BatchIndexAndErrorMessage] = ()
    current_leader: LeaderIdAndEpoch | None = None


class ProducePartitionResult:
    """What became of the batches for one partition."""

    __slots__ = (
        "base_offset",
        "details",
        "error_code",
        "index",
        "log_append_time_ms",
        "log_start_offset",
    )

    def __init__(
        self,
        index: int,
        error_code: int = 0,
        base_offset: int = -1,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        details: ProduceErrorDetails | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.details = details


class ProduceTopicResult(NamedTuple):
    """The results for one topic."""

    name: str
    topic_id: UUID
    partitions: Sequence[ProducePartitionResult]


def encode_produce_response(
    version: int,
    topics: Sequence[ProduceTopicResult],
    *,
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """The body of a response; `node_endpoints` name the leaders that details refer to (v10+)."""
    if version < FIRST_FLEXIBLE:
        return _encode_plain(version, topics, throttle_time_ms)
    pieces: list[Piece] = [unsigned_varint(len(topics) + 1)]
    append = pieces.append
    for topic in topics:
        if version >= FIRST_WITH_IDS:
            append(topic.topic_id.bytes)
        else:
            name = topic.name.encode()
            append(unsigned_varint(len(name) + 1))
            append(name)
        append(unsigned_varint(len(topic.partitions) + 1))
        for one in topic.partitions:
            if one.details is not None:
                _encode_details(version, one, one.details, pieces)
                continue
            append(
                _RESULT_V9(
                    one.index,
                    one.error_code,
                    one.base_offset,
                    one.log_append_time_ms,
                    one.log_start_offset,
                    1,  # no record errors; no message and no tags are the two zero bytes after it
                )
            )
        append(b"\0")
    append(_LENGTH32.pack(throttle_time_ms))
    if version < FIRST_WITH_ENDPOINTS or not node_endpoints:
        append(b"\0")
    else:
        write = struct_encoder(NodeEndpoint, version, ProduceResponse)
        append(tagged_array(0, node_endpoints, write))
    return b"".join(pieces)


def _encode_plain(
    version: int, topics: Sequence[ProduceTopicResult], throttle_time_ms: int
) -> bytes:
    pieces: list[Piece] = [_LENGTH32.pack(len(topics))]
    for topic in topics:
        name = topic.name.encode()
        pieces += (_LENGTH16.pack(len(name)), name, _LENGTH32.pack(len(topic.partitions)))
        for one in topic.partitions:
            if version >= 8 and one.details is not None:
                _encode_details(version, one, one.details, pieces)
                continue
            row = (one.index, one.error_code, one.base_offset, one.log_append_time_ms)
            if version >= 8:
                pieces.append(_RESULT_V8(*row, one.log_start_offset, 0, -1))
            elif version >= 5:
                pieces.append(_RESULT_V5(*row, one.log_start_offset))
            else:
                pieces.append(_RESULT_V3(*row))
    pieces.append(_LENGTH32.pack(throttle_time_ms))
    return b"".join(pieces)


def _encode_details(
    version: int, one: ProducePartitionResult, details: ProduceErrorDetails, pieces: list[Piece]
) -> None:
    message = PartitionProduceResponse(
        index=one.index,
        error_code=one.error_code,
        base_offset=one.base_offset,
        log_append_time_ms=one.log_append_time_ms,
        log_start_offset=one.log_start_offset,
        record_errors=details.record_errors,
        error_message=details.error_message,
        current_leader=details.current_leader,
    )
    struct_encoder(PartitionProduceResponse, version, ProduceResponse)(message, pieces.append)
