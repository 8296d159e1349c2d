"""Requests as ready frames, so that sending one costs the client the same few microseconds whoever answers.

Correlation ids are all zero: brokers return what they are given, and one connection's answers come in order.
"""

import time
from dataclasses import dataclass
from struct import Struct

from headrace.client.exchange import Exchange
from headrace.records.batch_builder import build_batch, records_at
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE_VERSION = 9  # the last ones that name topics
FETCH_VERSION = 12
PARTITION_FETCH_BYTES = (
    1024 * 1024
)  # what librdkafka and Kafka's consumer ask for unless told otherwise
FETCH_BYTES = 50 * 1024 * 1024
_CLIENT_ID = "bench"
_ERROR = Struct(">h")
# length 4, correlation 4, tags 1; topics 1, name 1 + its length; partitions 1, index 4: there the error code begins.
_BYTES_BEFORE_ERROR = 4 + 4 + 1 + 1 + 1 + 1 + 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceFrame:
    """One Produce request, and where its answer says whether it was taken."""

    frame: bytes
    records: int
    payload_bytes: int
    error_position: int

    def is_refused(self, answer: bytes) -> bool:
        return bool(_ERROR.unpack_from(answer, self.error_position)[0])

    def check(self, answer: bytes | bytearray | memoryview, position: int = 0) -> None:
        """Insist that an answer at this position (its length included) has no error."""
        (error,) = _ERROR.unpack_from(answer, position + self.error_position)
        if error:
            raise RuntimeError(f"a Produce request was refused with error code {error}")


def batch_of(payloads: list[bytes]) -> bytes:
    """One uncompressed batch of these records, dated now."""
    now_ms = time.time_ns() // 1_000_000
    return bytes(build_batch(records_at(0, now_ms, [(None, payload) for payload in payloads])))


def produce_frame(
    topic: str, payloads: list[bytes], *, partition: int = 0, acks: int = -1
) -> ProduceFrame:
    data = PartitionProduceData(index=partition, records=batch_of(payloads))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    return ProduceFrame(
        frame=b"".join(Exchange(_CLIENT_ID).tell(request, PRODUCE_VERSION)),
        records=len(payloads),
        payload_bytes=sum(map(len, payloads)),
        error_position=_BYTES_BEFORE_ERROR + len(topic.encode()),
    )


def fetch_frame(topic: str, offsets: dict[int, int], *, max_wait_ms: int = 500) -> bytes:
    """A Fetch request for these partitions from these offsets, as a consumer with default settings sends it."""
    asked = [
        FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=PARTITION_FETCH_BYTES
        )
        for partition, offset in offsets.items()
    ]
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        topics=[FetchTopic(topic=topic, partitions=asked)],
    )
    return b"".join(Exchange(_CLIENT_ID).tell(request, FETCH_VERSION))
