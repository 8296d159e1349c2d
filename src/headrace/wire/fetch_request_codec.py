"""Fetch requests by hand, as plain rows.

Three layouts: versions 4-11 have plain lengths, 12 is flexible with topic names, 13-18 are flexible
with topic ids; the replica id moves into a tag at 15. The cluster id, which no broker looks at, is
skipped. A test holds this decoder and the compiled one to the same result.
"""

from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception is named like one
from typing import NamedTuple

from headrace.errors import MalformedMessage
from headrace.wire.message import NO_UUID, UUID
from headrace.wire.primitives import (
    Buffer,
    checked_count,
    finish_unsigned_varint,
    not_null,
    read_compact_string,
    read_string,
    read_unsigned_varint,
    skip_tags,
    uuid_of,
)

FIRST_WITH_SESSIONS = 7
FIRST_WITH_RACK = 11
FIRST_FLEXIBLE = 12
FIRST_WITH_IDS = 13
FIRST_WITH_REPLICA_STATE = 15

NO_HIGH_WATERMARK = 0x7FFF_FFFF_FFFF_FFFF  # a fetch that does not tell its own

_INT32 = Struct(">i")
_INT64 = Struct(">q")
_LIMITS = Struct(">iiib")
_SESSION = Struct(">ii")
_FLEXIBLE_HEAD = Struct(">iiibiiB")  # limits, session, number of topics
_REPLICA_STATE = Struct(">iq")
_ID_AND_COUNT = Struct(">16sB")
_PARTITION_V4 = Struct(">iqi")
_PARTITION_V5 = Struct(">iqqi")
_PARTITION_V9 = Struct(">iiqqi")
_PARTITION_V12 = Struct(">iiqiqiB")


class FetchPartitionView(NamedTuple):
    """From where, and how much of, one partition is wanted. -1 where a version does not say."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    high_watermark: int = NO_HIGH_WATERMARK
    replica_directory_id: UUID = NO_UUID


class FetchTopicView(NamedTuple):
    """The wanted partitions of one topic, which has a name up to version 12 and then an id."""

    topic: str
    topic_id: UUID
    partitions: list[FetchPartitionView]


class ForgottenTopicView(NamedTuple):
    """Partitions to be dropped from a fetch session."""

    topic: str
    topic_id: UUID
    partitions: list[int]


class FetchRequestView(NamedTuple):
    """A fetch request; a consumer's has replica id -1."""

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopicView]
    forgotten_topics: list[ForgottenTopicView]
    rack_id: str


_row = tuple.__new__  # half the price of calling a NamedTuple


def decode_fetch_request(version: int, buffer: Buffer, offset: int = 0) -> FetchRequestView:
    data = bytes(buffer)  # a request is short, and reading bytes is cheaper than reading a view
    try:
        if version < FIRST_FLEXIBLE:
            return _decode_plain(version, data, offset)
        return _decode_flexible(version, data, offset)
    except (StructError, IndexError, UnicodeDecodeError) as broken:
        raise MalformedMessage(f"FetchRequest v{version}: {broken}") from None


def _decode_plain(version: int, data: bytes, position: int) -> FetchRequestView:
    (replica_id,) = _INT32.unpack_from(data, position)
    limits = _LIMITS.unpack_from(data, position + 4)
    position += 17
    session = (0, -1)
    if version >= FIRST_WITH_SESSIONS:
        session = _SESSION.unpack_from(data, position)
        position += 8
    topics = []
    count, position = _plain_count(data, position)
    for _ in range(count):
        name, position = read_string(data, position)
        inner, position = _plain_count(data, position)
        partitions, position = _plain_partitions(version, data, position, inner)
        topics.append(FetchTopicView(not_null(name), NO_UUID, partitions))
    forgotten = []
    if version >= FIRST_WITH_SESSIONS:
        count, position = _plain_count(data, position)
        for _ in range(count):
            name, position = read_string(data, position)
            inner, position = _plain_count(data, position)
            indexes, position = _int32_array(data, position, inner)
            forgotten.append(ForgottenTopicView(not_null(name), NO_UUID, indexes))
    rack_id: str | None = ""
    if version >= FIRST_WITH_RACK:
        rack_id, position = read_string(data, position)
    row = (replica_id, -1, *limits, *session, topics, forgotten, not_null(rack_id))
    return _row(FetchRequestView, row)


def _plain_count(data: bytes, position: int) -> tuple[int, int]:
    (count,) = _INT32.unpack_from(data, position)
    return checked_count(count), position + 4


def _plain_partitions(
    version: int, data: bytes, position: int, count: int
) -> tuple[list[FetchPartitionView], int]:
    partitions = []
    if version >= 9:
        layout = _PARTITION_V9
        for _ in range(count):
            index, epoch, offset, start, size = layout.unpack_from(data, position)
            position += layout.size
            partitions.append(FetchPartitionView(index, epoch, offset, -1, start, size))
    elif version >= 5:
        layout = _PARTITION_V5
        for _ in range(count):
            index, offset, start, size = layout.unpack_from(data, position)
            position += layout.size
            partitions.append(FetchPartitionView(index, -1, offset, -1, start, size))
    else:
        layout = _PARTITION_V4
        for _ in range(count):
            index, offset, size = layout.unpack_from(data, position)
            position += layout.size
            partitions.append(FetchPartitionView(index, -1, offset, -1, -1, size))
    return partitions, position


def _int32_array(data: bytes, position: int, count: int) -> tuple[list[int], int]:
    stop = position + 4 * count
    if stop > len(data):
        raise MalformedMessage("an array ends after its message")
    return [value for (value,) in _INT32.iter_unpack(data[position:stop])], stop


def _decode_flexible(version: int, data: bytes, position: int) -> FetchRequestView:
    replica_id = replica_epoch = -1
    if version < FIRST_WITH_REPLICA_STATE:
        (replica_id,) = _INT32.unpack_from(data, position)
        position += 4
    wait, least, most, isolation, session, epoch, count = _FLEXIBLE_HEAD.unpack_from(data, position)
    position += 22
    if count > 127:
        count, position = finish_unsigned_varint(data, position, count)
    topics, position = _topics(version, data, position, count)
    forgotten: list[ForgottenTopicView] = []
    if data[position] == 1:
        position += 1
    else:
        forgotten, position = _forgotten(version, data, position)
    rack_id: str | None = ""
    if data[position] == 1:
        position += 1
    else:
        rack_id, position = read_compact_string(data, position)
        not_null(rack_id)
    if data[position]:
        state = _request_tags(version, data, position)
        replica_id, replica_epoch = state or (replica_id, replica_epoch)
    limits = (replica_id, replica_epoch, wait, least, most, isolation, session, epoch)
    return _row(FetchRequestView, (*limits, topics, forgotten, rack_id))


def _topics(
    version: int, data: bytes, position: int, count: int
) -> tuple[list[FetchTopicView], int]:
    """The topics whose number, plus one, is `count`."""
    topics = []
    name: str | None = ""
    topic_id = NO_UUID
    unpack = _PARTITION_V12.unpack_from
    for _ in range(checked_count(count - 1)):
        if version >= FIRST_WITH_IDS:
            raw, inner = _ID_AND_COUNT.unpack_from(data, position)
            position += 17
            topic_id = uuid_of(raw)
        else:
            name, position = read_compact_string(data, position)
            not_null(name)
            inner = data[position]
            position += 1
        if inner > 127:
            inner, position = finish_unsigned_varint(data, position, inner)
        if not inner:
            raise MalformedMessage("an array is null that must not be")
        partitions = []
        for _ in range(inner - 1):
            index, epoch, offset, fetched, start, size, tags = unpack(data, position)
            position += 33
            mark, directory = NO_HIGH_WATERMARK, NO_UUID
            if tags:
                mark, directory, position = _partition_tags(version, data, position, tags)
            row = (index, epoch, offset, fetched, start, size, mark, directory)
            partitions.append(_row(FetchPartitionView, row))
        tags = data[position]
        position += 1
        if tags:
            position = skip_tags(data, position, tags, len(data))
        topics.append(_row(FetchTopicView, (name, topic_id, partitions)))
    return topics, position


def _forgotten(version: int, data: bytes, position: int) -> tuple[list[ForgottenTopicView], int]:
    forgotten = []
    name: str | None = ""
    topic_id = NO_UUID
    count, position = read_unsigned_varint(data, position)
    for _ in range(checked_count(count - 1)):
        if version >= FIRST_WITH_IDS:
            topic_id = uuid_of(_exactly(data[position : position + 16], 16))
            position += 16
        else:
            name, position = read_compact_string(data, position)
        inner, position = read_unsigned_varint(data, position)
        indexes, position = _int32_array(data, position, checked_count(inner - 1))
        position = skip_tags(data, position + 1, data[position], len(data))
        forgotten.append(ForgottenTopicView(not_null(name), topic_id, indexes))
    return forgotten, position


def _partition_tags(version: int, data: bytes, position: int, count: int) -> tuple[int, UUID, int]:
    high_watermark = NO_HIGH_WATERMARK
    directory_id = NO_UUID
    if count > 127:
        count, position = finish_unsigned_varint(data, position, count)
    for _ in range(count):
        tag, position = read_unsigned_varint(data, position)
        size, position = read_unsigned_varint(data, position)
        body = _exactly(data[position : position + size], size)
        position += size
        if tag == 0 and version >= 17:
            directory_id = uuid_of(_exactly(body, 16))
        elif tag == 1 and version >= 18:
            (high_watermark,) = _INT64.unpack(_exactly(body, 8))
    return high_watermark, directory_id, position


def _request_tags(version: int, data: bytes, position: int) -> tuple[int, int] | None:
    """The replica's id and epoch, where a follower asks. The cluster id (tag 0) is not looked at."""
    state = None
    count, position = read_unsigned_varint(data, position)
    for _ in range(count):
        tag, position = read_unsigned_varint(data, position)
        size, position = read_unsigned_varint(data, position)
        body = _exactly(data[position : position + size], size)
        position += size
        if tag == 1 and version >= FIRST_WITH_REPLICA_STATE:
            state = _REPLICA_STATE.unpack_from(body)
            skip_tags(body, 13, body[12], size)
    return state


def _exactly(body: bytes, size: int) -> bytes:
    if len(body) != size:
        raise MalformedMessage(f"a field of {len(body)} bytes instead of {size}")
    return body
