"""Short forms of the requests that cases use most, and the versions to send them in."""

from typing import Any
from uuid import UUID

from headrace.ids import NO_TOPIC_ID
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.wire.api_keys import ApiKey
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

TIME_MS = 1_700_000_000_000
ALL, LEADER, NOBODY = -1, 1, 0  # acks
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)
UNSTABLE = {
    ApiKey.INIT_PRODUCER_ID: 6
}  # in the schemas, but not offered by a Kafka 4.3 as it comes


def versions(request: type[Any]) -> range:
    """Every version that Kafka 4.3 offers of a request."""
    first, last = request.VERSIONS
    return range(first, min(last + 1, UNSTABLE.get(request.API_KEY, last + 1)))


def batch(*values: bytes, timestamp: int = TIME_MS, options: BatchOptions | None = None) -> bytes:
    """A record batch with these values, all with the key b"k"."""
    records = records_at(0, timestamp, [(b"k", value) for value in values])
    return bytes(build_batch(records, options or BatchOptions()))


def by_producer(producer_id: int, sequence: int, *, epoch: int = 0) -> BatchOptions:
    """The options of a batch of an idempotent producer."""
    return BatchOptions(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def produce(
    topic: str,
    records: bytes | None,
    *,
    topic_id: UUID = NO_TOPIC_ID,
    partition: int = 0,
    acks: int = ALL,
) -> ProduceRequest:
    part = PartitionProduceData(index=partition, records=records)
    data = TopicProduceData(name=topic, topic_id=topic_id, partition_data=[part])
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])


def fetch(
    topic: str,
    offset: int,
    *,
    topic_id: UUID = NO_TOPIC_ID,
    partition: int = 0,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchRequest:
    part = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
        current_leader_epoch=leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
    )
    data = FetchTopic(topic=topic, topic_id=topic_id, partitions=[part])
    return FetchRequest(max_wait_ms=100, min_bytes=0, max_bytes=1 << 20, topics=[data])


def list_offsets(
    topic: str, *timestamps: int, partition: int = 0, epoch: int = -1
) -> ListOffsetsRequest:
    parts = [
        ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        for timestamp in timestamps
    ]
    topics = [ListOffsetsTopic(name=topic, partitions=parts)]
    return ListOffsetsRequest(replica_id=-1, topics=topics, timeout_ms=10_000)
