"""A few requests as one call each, over a connection that the caller owns: no retries, no client library in between."""

import time
from uuid import UUID

from headrace.client.connection import Connection
from headrace.records.batch_builder import build_batch, records_at
from headrace.records.batch_reader import read_batch
from headrace.records.batch_view import headers_in
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

PRODUCE_VERSION = 9  # the last ones that name topics
FETCH_VERSION = 12


def create_topic(connection: Connection, name: str, *, partitions: int = 1) -> UUID:
    """Create a topic and return its id."""
    answer = _create_topic(connection, name, partitions)
    assert answer.error_code == 0, answer
    return answer.topic_id


def create_topic_result(connection: Connection, name: str) -> int:
    """Ask for a topic of one partition; the error code."""
    return _create_topic(connection, name, 1).error_code


def _create_topic(connection: Connection, name: str, partitions: int) -> CreatableTopicResult:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    return connection.send(request).topics[0]


def produce_result(
    connection: Connection, topic: str, values: list[bytes], *, partition: int = 0, acks: int = -1
) -> tuple[int, int]:
    """Produce one batch; (error code, base offset)."""
    batch = build_batch(
        records_at(0, time.time_ns() // 1_000_000, [(None, each) for each in values])
    )
    data = PartitionProduceData(index=partition, records=bytes(batch))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    answer = connection.send(request, PRODUCE_VERSION).responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


def produce(connection: Connection, topic: str, values: list[bytes], *, partition: int = 0) -> int:
    """Produce one batch that must be taken. Returns its offset."""
    error_code, offset = produce_result(connection, topic, values, partition=partition)
    assert error_code == 0, f"{topic}-{partition}: error {error_code}"
    return offset


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    max_bytes: int = 10_000_000,
    max_wait_ms: int = 0,
) -> FetchRequest:
    """A request for one partition, without a session."""
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
        forgotten_topics_data=[],
        rack_id="",
    )


def fetch(
    connection: Connection, topic: str, offset: int, *, partition: int = 0
) -> list[bytes | None]:
    """The values from an offset on, as many as one answer holds."""
    answer = connection.send(fetch_request(topic, offset, partition=partition), FETCH_VERSION)
    assert answer.error_code == 0, answer.error_code
    found = answer.responses[0].partitions[0]
    assert found.error_code == 0, f"{topic}-{partition}: error {found.error_code}"
    records = memoryview(found.records or b"")
    return [
        record.value
        for position, header in headers_in(records)
        for record in read_batch(records[position : position + header.size])
        if record.offset >= offset
    ]
