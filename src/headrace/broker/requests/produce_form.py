"""Forms of Produce requests: the bytes that requests of one producer for one partition have in common (pure). A hot module.

Such requests differ in their correlation id and their records. A form has the bytes between the two as they came, what
they mean, and the answer around its numbers. A request of a known form needs no decoding, and its answer no encoding.
"""

from struct import Struct
from typing import Final

from headrace.broker.net.frame_buffer import Frame
from headrace.broker.net.refused_batches import TopicKey
from headrace.records.batch_view import HEADER_BYTES
from headrace.wire.messages.produce import ProduceRequest, TopicProduceData
from headrace.wire.primitives import Buffer, read_unsigned_varint, unsigned_varint
from headrace.wire.produce_response_codec import (
    FIRST_WITH_IDS,
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)

FORM_FROM: Final = 8  # in a frame: after API key, version and correlation id
_CORRELATION_AT: Final = 4
_END_TAGS: Final = bytes(3)  # of the partition, the topic, the request: none
_MOST_LENGTHS: Final = 8192  # of requests, over all forms
_NUMBERS: Final = Struct(">qqq")  # base offset, append time, log start offset
_SOME_NUMBERS: Final = (-2, -3, -4)  # bytes that no topic's name contains


class FrameLengths:
    """Size and start of the records in a frame, derived from the length of the frame and the position of the records' size."""

    __slots__ = ("_by_end", "_count")

    def __init__(self) -> None:
        self._by_end: dict[int, dict[int, tuple[bytes, int]]] = {}
        self._count = 0

    def behind(self, end: int) -> dict[int, tuple[bytes, int]]:
        """By length, for requests whose records' size stands at `end`."""
        return self._by_end.setdefault(end, {})

    def add(self, end: int, length: int) -> tuple[bytes, int] | None:
        """Derive both for one more frame length; None if that leaves no room for a batch."""
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


class ProduceForm:
    """What requests of one form ask for, and their answer around the numbers."""

    __slots__ = (
        "_answer",
        "_by_length",
        "_end",
        "_lengths",
        "acks",
        "bytes",
        "index",
        "request",
        "start",
        "timeout_s",
        "topic",
        "topic_id",
        "topic_key",
        "version",
    )

    def __init__(
        self,
        start: bytes,
        common_bytes: bytes,
        version: int,
        topic: str,
        request: ProduceRequest,
        lengths: FrameLengths,
    ) -> None:
        """`start` is what stands before the correlation id, `common_bytes` what stands between it and the records' size."""
        asked = request.topic_data[0]
        self.start = start
        self.bytes = common_bytes
        self._end = FORM_FROM + len(common_bytes)
        self._lengths = lengths
        self._by_length = lengths.behind(self._end)
        self.version = version
        self.topic = topic
        self.topic_id = asked.topic_id if version >= FIRST_WITH_IDS else None
        self.topic_key = topic_key(asked, version)
        self.index = asked.partition_data[0].index
        self.acks = request.acks
        self.timeout_s = request.timeout_ms / 1000
        self.request = _without_records(request)
        body = self.encoded(*_SOME_NUMBERS)
        head, _, tail = body.partition(_NUMBERS.pack(*_SOME_NUMBERS))
        length, head = len(body) + 5, b"\0" + head  # correlation id, then no tagged fields
        whole = Struct(f">i4s{len(head)}sqqq{len(tail)}s").pack
        self._answer = whole, length, head, tail

    def batch_in(self, frame: Frame, *, is_compared: bool = False) -> memoryview | None:
        """The records of a frame, if it has this form; `is_compared` if the common bytes are known to be there."""
        found = self._by_length.get(len(frame)) or self._lengths.add(self._end, len(frame))
        if found is None:
            return None
        size, position = found
        if isinstance(frame, bytearray):
            if not (
                (is_compared or frame.startswith(self.bytes, FORM_FROM))
                and frame.startswith(size, self._end)
                and frame.startswith(self.start)
                and frame.endswith(_END_TAGS)
            ):
                return None
            return memoryview(frame)[position : -len(_END_TAGS)]
        has_form = (
            (is_compared or frame[FORM_FROM : self._end] == self.bytes)
            and frame[self._end : position] == size
            and frame[:_CORRELATION_AT] == self.start
            and frame[-len(_END_TAGS) :] == _END_TAGS
        )
        return frame[position : -len(_END_TAGS)] if has_form else None

    def answer_to(self, frame: Buffer, base_offset: int, append_time: int, log_start: int) -> bytes:
        """The answer to a request whose batch was appended, as a whole frame. Of its own frame it takes the start only."""
        whole, length, head, tail = self._answer
        correlation_id = bytes(frame[_CORRELATION_AT:FORM_FROM])
        return whole(length, correlation_id, head, base_offset, append_time, log_start, tail)

    def refusal_to(self, frame: Buffer, error_code: int, append_time: int, log_start: int) -> bytes:
        """The answer to a request whose batch was appended and is not acknowledged, as a whole frame."""
        body = self.encoded(-1, append_time, log_start, error_code)
        correlation_id = bytes(frame[_CORRELATION_AT:FORM_FROM])
        return (len(body) + 5).to_bytes(4) + correlation_id + b"\0" + body

    def encoded(
        self, base_offset: int, append_time: int, log_start: int, error_code: int = 0
    ) -> bytes:
        """The body of an answer."""
        result = ProducePartitionResult(self.index, error_code, base_offset, append_time, log_start)
        topic = self.request.topic_data[0]
        results = [ProduceTopicResult(topic.name, topic.topic_id, [result])]
        return encode_produce_response(self.version, results)


def start_of(frame: Frame) -> bytes:
    """What stands before the correlation id: API key and version."""
    return bytes(frame[:_CORRELATION_AT])


def form_end(frame: Frame, records: Buffer) -> int:
    """Where the size of the records stands, if nothing but the records follows; else 0."""
    stop = len(frame) - len(_END_TAGS)
    position = stop - len(records)
    end = position - len(unsigned_varint(len(records) + 1))
    is_last = (
        end > FORM_FROM
        and bytes(frame[stop:]) == _END_TAGS
        and read_unsigned_varint(frame, end) == (len(records) + 1, position)
        and frame[position:stop] == records
    )
    return end if is_last else 0


def topic_key(topic: TopicProduceData, version: int) -> TopicKey:
    """What a request of this version names a topic by."""
    return topic.topic_id if version >= FIRST_WITH_IDS else topic.name


def _without_records(request: ProduceRequest) -> ProduceRequest:
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    return ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[
            TopicProduceData(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_data=[type(partition)(index=partition.index, records=None)],
            )
        ],
    )
