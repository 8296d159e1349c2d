"""Produce by hand: requests without a copy of their batches, responses in few calls.

Three layouts: versions 3-8 have plain lengths, 9-12 are flexible with topic names, 13 is flexible
with topic ids. What is rare in a response (an error message, rejected records, the new leader) goes
through the compiled encoder, so that it is written down once. A test holds both to the same bytes.

A request becomes a `ProduceRequestView`: one topic after the other, each with (partition index,
records) pairs, whose records are views of the frame. A response is built of
`ProducePartitionResult`s; what is rare stands apart in their `details`.
"""

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception is named like one
from typing import NamedTuple

from headrace.errors import MalformedMessage
from headrace.wire.codec import Piece, struct_encoder, tagged_array
from headrace.wire.message import NO_UUID, UUID
from headrace.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
)
from headrace.wire.primitives import (
    Buffer,
    checked_count,
    finish_unsigned_varint,
    not_null,
    read_compact_string,
    read_string,
    skip_tags,
    unsigned_varint,
    uuid_of,
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


class ProduceTopicView(NamedTuple):
    """The batches for one topic, which has a name up to version 12 and an id from then on."""

    name: str
    topic_id: UUID
    partitions: list[tuple[int, memoryview | None]]  # index, records


class ProduceRequestView(NamedTuple):
    """A produce request whose records are still in the frame they came in."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopicView]


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


def decode_produce_request(version: int, buffer: Buffer, offset: int = 0) -> ProduceRequestView:
    view = memoryview(buffer)
    try:
        if version < FIRST_FLEXIBLE:
            return _decode_plain(view, offset)
        return _decode_flexible(view, offset, with_ids=version >= FIRST_WITH_IDS)
    except (StructError, IndexError, UnicodeDecodeError) as broken:
        raise MalformedMessage(f"ProduceRequest v{version}: {broken}") from None


def _decode_plain(view: memoryview, position: int) -> ProduceRequestView:
    transactional_id, position = read_string(view, position)
    acks, timeout_ms, topic_count = _PLAIN_HEAD.unpack_from(view, position)
    position += 10
    topics = []
    for _ in range(checked_count(topic_count)):
        name, position = read_string(view, position)
        (count,) = _LENGTH32.unpack_from(view, position)
        position += 4
        partitions: list[tuple[int, memoryview | None]] = []
        for _ in range(checked_count(count)):
            index, size = _PLAIN_PARTITION.unpack_from(view, position)
            position += 8
            if size < 0:
                partitions.append((index, None))
                continue
            stop = position + size
            if stop > len(view):
                raise MalformedMessage("a batch ends after its message")
            partitions.append((index, view[position:stop]))
            position = stop
        topics.append(ProduceTopicView(not_null(name), NO_UUID, partitions))
    return ProduceRequestView(transactional_id, acks, timeout_ms, topics)


def _decode_flexible(view: memoryview, position: int, *, with_ids: bool) -> ProduceRequestView:
    transactional_id = None
    if view[position]:
        transactional_id, position = read_compact_string(view, position)
    else:
        position += 1
    acks, timeout_ms, topic_count = _FLEXIBLE_HEAD.unpack_from(view, position)
    position += 7
    if topic_count > 127:
        topic_count, position = finish_unsigned_varint(view, position, topic_count)
    topics = []
    name: str | None = ""
    topic_id = NO_UUID
    for _ in range(checked_count(topic_count - 1)):
        if with_ids:
            raw, count = _ID_AND_COUNT.unpack_from(view, position)
            position += 17
            topic_id = uuid_of(raw)
        else:
            name, position = read_compact_string(view, position)
            not_null(name)
            count = view[position]
            position += 1
        if count > 127:
            count, position = finish_unsigned_varint(view, position, count)
        partitions, position = _compact_partitions(view, position, count)
        topics.append(_row(ProduceTopicView, (name, topic_id, partitions)))
    skip_tags(view, position + 1, view[position], len(view))
    return _row(ProduceRequestView, (transactional_id, acks, timeout_ms, topics))


def _compact_partitions(
    view: memoryview, position: int, count: int
) -> tuple[list[tuple[int, memoryview | None]], int]:
    """The partitions whose number, plus one, is `count`, and the tags that close their topic."""
    end = len(view)
    partitions: list[tuple[int, memoryview | None]] = []
    for _ in range(checked_count(count - 1)):
        index, size = _FLEXIBLE_PARTITION.unpack_from(view, position)
        position += 5
        if size > 127:
            size, position = finish_unsigned_varint(view, position, size)
        records = None
        if size:
            stop = position + size - 1
            if stop > end:
                raise MalformedMessage("a batch ends after its message")
            records = view[position:stop]
            position = stop
        partitions.append((index, records))
        if view[position]:
            position = skip_tags(view, position + 1, view[position], end)
        else:
            position += 1
    if view[position]:
        return partitions, skip_tags(view, position + 1, view[position], end)
    return partitions, position + 1


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
