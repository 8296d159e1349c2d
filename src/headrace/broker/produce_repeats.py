"""A producer's next request when it looks like its last one: understood at one look. A hot module.

Requests of a producer for one partition differ in their correlation id and their records. What stands between the two
is remembered as it came, with what it meant: the same bytes need no decoding again, and their answer is the same but for
its numbers. Only what goes well takes this way. Anything unusual is left undone and goes the long way, through
`apis.produce`, which finds the same and says so. Nothing is allowed here that is not allowed there; what will depend on
who asks, and not on the bytes alone, belongs into the key.
"""

import asyncio
from collections.abc import Callable
from struct import Struct
from typing import Final

from headrace.broker.apis.produce import INTERNAL_TOPICS, when_committed
from headrace.broker.clock import Clock
from headrace.broker.frame_buffer import Frame
from headrace.broker.traffic import Traffic
from headrace.log.append_result import Refused
from headrace.records.batch_view import HEADER_BYTES, LOG_OVERHEAD, MAGIC, read_header
from headrace.records.compression import Codec
from headrace.replication.partition_table import PartitionTable
from headrace.wire.codec import Piece
from headrace.wire.messages.produce import ProduceRequest
from headrace.wire.primitives import Buffer, read_unsigned_varint, unsigned_varint
from headrace.wire.produce_response_codec import (
    FIRST_FLEXIBLE,
    FIRST_WITH_IDS,
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)

_CORRELATION_AT: Final = 4
_CORRELATION: Final = Struct(">i")
_ALIKE_FROM: Final = 8  # after API, version and correlation id
_END_TAGS: Final = bytes(3)  # of the partition, the topic, the request: none
_ANSWERED_ACKS: Final = (-1, 1)
_MOST_KNOWN: Final = 4096
_NUMBERS: Final = Struct(">qqq")  # base offset, append time, log start offset
_SOME_NUMBERS: Final = (-2, -3, -4)  # bytes that no topic's name contains


class _Known:
    """What a request for one partition meant, and its answer around the numbers."""

    __slots__ = ("acks", "index", "pack", "start", "timeout_ms", "topic", "topic_id", "version")

    def __init__(self, start: bytes, version: int, topic: str, request: ProduceRequest) -> None:
        """`start` is what stands before the correlation id."""
        asked = request.topic_data[0]
        self.start = start
        self.version = version
        self.topic = topic
        self.topic_id = asked.topic_id
        self.index = asked.partition_data[0].index
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        body = encode_produce_response(version, self.results(*_SOME_NUMBERS))
        head, _, tail = body.partition(_NUMBERS.pack(*_SOME_NUMBERS))
        length, head = len(body) + 5, b"\0" + head  # a correlation id, no tags
        whole = Struct(f">ii{len(head)}sqqq{len(tail)}s").pack
        self.pack: Callable[[int, int, int, int], bytes] = (
            lambda correlation_id, base_offset, append_time, log_start: whole(
                length, correlation_id, head, base_offset, append_time, log_start, tail
            )
        )

    def results(
        self, base_offset: int, append_time: int, log_start: int
    ) -> list[ProduceTopicResult]:
        """The answer in its long form."""
        result = ProducePartitionResult(self.index, 0, base_offset, append_time, log_start)
        return [ProduceTopicResult(self.topic, self.topic_id, [result])]


class ProduceRepeats:
    """All requests that may come again."""

    __slots__ = ("_clock", "_known", "_partitions", "_traffic")

    def __init__(self, partitions: PartitionTable, traffic: Traffic, clock: Clock) -> None:
        self._partitions = partitions
        self._traffic = traffic
        self._clock = clock
        self._known: dict[bytes, _Known] = {}

    def learn(self, frame: Frame, version: int, request: ProduceRequest) -> int:
        """Remember a request. Returns where the part ends that will come again; 0 if none will."""
        if (
            version < FIRST_FLEXIBLE
            or request.acks not in _ANSWERED_ACKS
            or request.transactional_id is not None
        ):
            return 0
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return 0
        topic = request.topic_data[0]
        ask = topic.partition_data[0]
        name = topic.name
        if version >= FIRST_WITH_IDS:
            name = self._partitions.topic_name(topic.topic_id) or ""
        if self._partitions.get(name, ask.index) is None or name in INTERNAL_TOPICS:
            return 0
        end = _end_of_alike(frame, ask.records or b"")
        alike = bytes(frame[_ALIKE_FROM:end])
        start = bytes(frame[:_CORRELATION_AT])
        known = self._known.get(alike)
        if end and (known is None or known.start != start):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[alike] = _Known(start, version, name, request)
        return end

    def append(self, frame: Frame, end: int) -> "list[Piece] | asyncio.Future[list[Piece]] | None":
        """Do what the request asks for, if it is known: the whole answer, or its body later; None for the long way."""
        known = self._known.get(bytes(frame[_ALIKE_FROM:end]))
        if (
            known is None
            or bytes(frame[:_CORRELATION_AT]) != known.start
            or len(frame) < end + HEADER_BYTES
        ):
            return None
        size, position = read_unsigned_varint(frame, end)
        stop = position + size - 1
        if size <= HEADER_BYTES or bytes(frame[stop:]) != _END_TAGS:
            return None
        records = memoryview(frame)[position:stop]
        header = read_header(records)
        partition = self._partitions.get(known.topic, known.index)
        if (
            partition is None
            or (known.version >= FIRST_WITH_IDS and partition.topic_id != known.topic_id)
            or header.magic != MAGIC
            or header.length + LOG_OVERHEAD != len(records)
            or not 0 <= header.attributes <= Codec.ZSTD
        ):
            return None
        acks = known.acks
        appended = partition.append(records, acks=acks, now_ms=self._clock(), header=header)
        if isinstance(appended, Refused):
            return None
        base_offset, last_offset, append_time, is_duplicate = appended
        counters = self._traffic.of(known.topic)
        counters.produce_requests += 1
        if not is_duplicate:
            counters.bytes_in += len(records)
            counters.messages_in += last_offset - base_offset + 1
        log_start = partition.log.log_start_offset
        if acks == -1 and partition.high_watermark <= last_offset:
            results = known.results(base_offset, append_time, log_start)
            waiting = [(partition, last_offset + 1, results[0].partitions[0])]
            return when_committed(waiting, known.timeout_ms, known.version, results)
        correlation_id = _CORRELATION.unpack_from(frame, _CORRELATION_AT)[0]
        return [known.pack(correlation_id, base_offset, append_time, log_start)]


def _end_of_alike(frame: Frame, records: Buffer) -> int:
    """Where the size of the records stands, if nothing but the records follows; else 0."""
    stop = len(frame) - len(_END_TAGS)
    position = stop - len(records)
    end = position - len(unsigned_varint(len(records) + 1))
    is_last = (
        end > _ALIKE_FROM
        and bytes(frame[stop:]) == _END_TAGS
        and read_unsigned_varint(frame, end) == (len(records) + 1, position)
        and frame[position:stop] == records
    )
    return end if is_last else 0
