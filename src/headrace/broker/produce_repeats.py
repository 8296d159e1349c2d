"""A producer's next request when it looks like its last one: understood at one look. A hot module.

Requests of a producer for one partition differ in their correlation id and their records. What stands between the two
is remembered as it came, with what it meant: the same bytes need no decoding again, and their answer is the same but for
its numbers. Only what goes well takes this way. Anything unusual is left undone and goes the long way, through
`apis.produce`, which finds the same and says so. Nothing is allowed here that is not allowed there; what will depend on
who asks, and not on the bytes alone, belongs into the key.
"""

import asyncio
from collections.abc import Sequence
from struct import Struct
from typing import Final, TypeAlias

from headrace.broker.apis.produce import Uncommitted, topic_key, when_committed
from headrace.broker.clock import Clock
from headrace.broker.frame_buffer import Frame
from headrace.broker.refused_batches import RefusedBatches, TopicKey
from headrace.broker.traffic import Traffic
from headrace.ids import INTERNAL_TOPICS
from headrace.log.append_result import Refused
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
)
from headrace.records.compression import Codec
from headrace.replication.partition import Partition
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
_ALIKE_FROM: Final = 8  # after API, version and correlation id
_END_TAGS: Final = bytes(3)  # of the partition, the topic, the request: none
_ANSWERED_ACKS: Final = (-1, 1)
_MOST_KNOWN: Final = 4096
_MOST_ALIKE_BYTES: Final = 512  # a client id may be longer, and is then decoded each time
_MOST_LENGTHS: Final = 8192  # of requests, over all that are known
_FOREVER: Final = 2**63
_NUMBERS: Final = Struct(">qqq")  # base offset, append time, log start offset
_LEAST_RUN: Final = 2
_SOME_NUMBERS: Final = (-2, -3, -4)  # bytes that no topic's name contains

Taken: TypeAlias = "list[Piece] | asyncio.Future[list[Piece]]"
"""A whole answer, or later its body."""


class _Lengths:
    """What a request's length says of its records, by where their size stands: that size, and where they start."""

    __slots__ = ("_by_end", "_count")

    def __init__(self) -> None:
        self._by_end: dict[int, dict[int, tuple[bytes, int]]] = {}
        self._count = 0

    def behind(self, end: int) -> dict[int, tuple[bytes, int]]:
        """By length, for requests whose records' size stands at `end`."""
        return self._by_end.setdefault(end, {})

    def add(self, end: int, length: int) -> tuple[bytes, int] | None:
        """Find it out for one more length; None if it leaves no room for a batch."""
        for width in range(1, 6):
            position = end + width
            records_bytes = length - len(_END_TAGS) - position
            size = unsigned_varint(max(0, records_bytes) + 1)
            if len(size) == width and records_bytes >= HEADER_BYTES:
                if self._count >= _MOST_LENGTHS:
                    self._count = 0
                    for by_length in self._by_end.values():
                        by_length.clear()
                self._count += 1
                found = self.behind(end)[length] = size, position
                return found
        return None


class _Known:
    """What a request for one partition meant, and its answer around the numbers."""

    __slots__ = (
        "_alike",
        "_answer",
        "_by_length",
        "_end",
        "_lengths",
        "acks",
        "index",
        "start",
        "timeout_ms",
        "topic",
        "topic_id",
        "topic_key",
        "version",
    )

    def __init__(
        self,
        start: bytes,
        alike: bytes,
        version: int,
        topic: str,
        request: ProduceRequest,
        lengths: "_Lengths",
    ) -> None:
        """`start` is what stands before the correlation id, `alike` what stands between it and the records' size."""
        asked = request.topic_data[0]
        self.start = start
        self._alike = alike
        self._end = _ALIKE_FROM + len(alike)
        self._lengths = lengths
        self._by_length = lengths.behind(self._end)
        self.version = version
        self.topic = topic
        self.topic_id = asked.topic_id
        self.topic_key = topic_key(asked, version)
        self.index = asked.partition_data[0].index
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        body = encode_produce_response(version, self.results(*_SOME_NUMBERS))
        head, _, tail = body.partition(_NUMBERS.pack(*_SOME_NUMBERS))
        length, head = len(body) + 5, b"\0" + head  # a correlation id, no tags
        whole = Struct(f">i4s{len(head)}sqqq{len(tail)}s").pack
        self._answer = whole, length, head, tail

    def batch_in(self, frame: Frame, *, is_alike: bool = False) -> memoryview | None:
        """The records of another request, if it is like this one; `is_alike` if the alike part was compared already."""
        found = self._by_length.get(len(frame)) or self._lengths.add(self._end, len(frame))
        if found is None:
            return None
        size, position = found
        if isinstance(frame, bytearray):
            if not (
                (is_alike or frame.startswith(self._alike, _ALIKE_FROM))
                and frame.startswith(size, self._end)
                and frame.startswith(self.start)
                and frame.endswith(_END_TAGS)
            ):
                return None
            return memoryview(frame)[position : -len(_END_TAGS)]
        is_alike = (
            (is_alike or frame[_ALIKE_FROM : self._end] == self._alike)
            and frame[self._end : position] == size
            and frame[:_CORRELATION_AT] == self.start
            and frame[-len(_END_TAGS) :] == _END_TAGS
        )
        return frame[position : -len(_END_TAGS)] if is_alike else None

    def key_of(self, batch: BatchHeader) -> tuple[TopicKey, int, int]:
        """Where `RefusedBatches` has an earlier batch of the same producer."""
        return self.topic_key, self.index, batch.producer_id

    def answer_to(self, frame: Frame, base_offset: int, append_time: int, log_start: int) -> bytes:
        """The answer to one that went well, as a whole frame."""
        whole, length, head, tail = self._answer
        correlation_id = bytes(frame[_CORRELATION_AT:_ALIKE_FROM])
        return whole(length, correlation_id, head, base_offset, append_time, log_start, tail)

    def results(
        self, base_offset: int, append_time: int, log_start: int
    ) -> list[ProduceTopicResult]:
        """The answer in its long form."""
        result = ProducePartitionResult(self.index, 0, base_offset, append_time, log_start)
        return [ProduceTopicResult(self.topic, self.topic_id, [result])]


class ProduceRepeats:
    """All requests that may come again."""

    __slots__ = ("_clock", "_known", "_lengths", "_partitions", "_traffic")

    def __init__(self, partitions: PartitionTable, traffic: Traffic, clock: Clock) -> None:
        self._partitions = partitions
        self._traffic = traffic
        self._clock = clock
        self._known: dict[bytes, _Known] = {}
        self._lengths = _Lengths()

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
        if end - _ALIKE_FROM > _MOST_ALIKE_BYTES:
            return 0
        alike = bytes(frame[_ALIKE_FROM:end])
        start = bytes(frame[:_CORRELATION_AT])
        known = self._known.get(alike)
        if end and (known is None or known.start != start):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[alike] = _Known(start, alike, version, name, request, self._lengths)
        return end

    def append(self, frame: Frame, end: int, refused_batches: RefusedBatches) -> "Taken | None":
        """Do what the request asks for, if it is known. None, and nothing was done, for the long way."""
        known = self._known.get(bytes(frame[_ALIKE_FROM:end]))
        if known is None:
            return None
        records = known.batch_in(frame, is_alike=True)
        partition = self._partition_of(known)
        if records is None or partition is None:
            return None
        header = read_header(records)
        if (
            header.magic != MAGIC
            or header.length + LOG_OVERHEAD != len(records)
            or not 0 <= header.attributes <= Codec.ZSTD
            or (refused_batches and known.key_of(header) in refused_batches)
        ):
            return None
        appended = partition.append(records, acks=known.acks, now_ms=self._clock(), header=header)
        if isinstance(appended, Refused):
            return None
        base_offset, last_offset, append_time, is_duplicate = appended
        counters = self._traffic.of(known.topic)
        counters.produce_requests += 1
        if not is_duplicate:
            counters.bytes_in += len(records)
            counters.messages_in += last_offset - base_offset + 1
        if known.acks == -1 and partition.high_watermark <= last_offset:
            return _later(known, partition, header, base_offset, append_time, refused_batches)
        log_start = partition.log.log_start_offset
        return [known.answer_to(frame, base_offset, append_time, log_start)]

    def append_run(
        self, frames: Sequence[Frame], end: int, refused_batches: RefusedBatches
    ) -> Sequence[Taken]:
        """The same for as many of the first requests as are alike. None of them, if they have to go one by one."""
        known = self._known.get(bytes(frames[0][_ALIKE_FROM:end]))
        partition = None if known is None else self._partition_of(known)
        if known is None or partition is None:
            return ()
        batches: list[memoryview] = []
        headers: list[BatchHeader] = []
        for frame in frames:
            records = known.batch_in(frame)
            if records is None:
                break
            batches.append(records)
            headers.append(read_header(records))
        if len(batches) < _LEAST_RUN or (
            refused_batches and known.key_of(headers[0]) in refused_batches
        ):
            return ()
        base_offset = partition.append_run(batches, headers, acks=known.acks, now_ms=self._clock())
        if base_offset is None:
            return ()
        counters = self._traffic.of(known.topic)
        counters.produce_requests += len(batches)
        counters.bytes_in += sum(map(len, batches))
        log_start, next_offset = partition.log.log_start_offset, base_offset
        is_committed_at = _FOREVER if known.acks != -1 else partition.high_watermark
        taken: list[Taken] = []
        for frame, header in zip(frames, headers, strict=False):
            offset, next_offset = next_offset, next_offset + header.last_offset_delta + 1
            taken.append(
                [known.answer_to(frame, offset, NO_TIMESTAMP, log_start)]
                if next_offset <= is_committed_at
                else _later(known, partition, header, offset, NO_TIMESTAMP, refused_batches)
            )
        counters.messages_in += next_offset - base_offset
        return taken

    def _partition_of(self, known: _Known) -> Partition | None:
        partition = self._partitions.get(known.topic, known.index)
        if (
            partition is not None
            and known.version >= FIRST_WITH_IDS
            and partition.topic_id != known.topic_id
        ):
            return None
        return partition


def _later(
    known: _Known,
    partition: Partition,
    header: BatchHeader,
    base_offset: int,
    append_time: int,
    refused_batches: RefusedBatches,
) -> "asyncio.Future[list[Piece]]":
    """The answer for a batch that stands in the log and is not committed yet."""
    results = known.results(base_offset, append_time, partition.log.log_start_offset)
    next_offset = base_offset + header.last_offset_delta + 1
    waiting = [
        Uncommitted(partition, next_offset, results[0].partitions[0], known.topic_key, header)
    ]
    return when_committed(waiting, known.timeout_ms, known.version, results, refused_batches)


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
