"""ListOffsets at a leader that has just been elected, and of partitions that are named more than once."""

import pytest

from headrace.broker.apis import list_offsets
from headrace.controller.changes import ChangeBatch, PartitionChanged
from headrace.controller.values import PartitionState
from headrace.records.batch_builder import build_batch
from headrace.records.batch_reader import Record
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.unit.broker.apis.one_broker import BROKER_ID, LOG_DIR, NOW_MS, OneBroker, on_broker

OTHER = BROKER_ID + 1


async def asked(broker: OneBroker, timestamp: int, version: int) -> ListOffsetsPartitionResponse:
    ask = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=[ask])])
    (topic,) = (await broker.ask(list_offsets, request, version)).topics
    (answer,) = topic.partitions
    return answer


async def newly_elected(broker: OneBroker) -> Partition:
    """A leader with a record of an earlier epoch, whose follower has not been heard of."""
    await broker.topic("orders")
    partition = broker.partitions.get("orders", 0)
    assert partition is not None
    state = PartitionState((BROKER_ID, OTHER), (BROKER_ID, OTHER), BROKER_ID, 1, 1)
    broker.feed.apply(ChangeBatch(1, 0, (PartitionChanged("orders", 0, state),)))
    batch = memoryview(build_batch([Record(0, NOW_MS, None, b"value")]))
    partition.append([batch], acks=1, now_ms=NOW_MS)
    elected = PartitionState((BROKER_ID, OTHER), (BROKER_ID, OTHER), BROKER_ID, 2, 2)
    broker.feed.apply(ChangeBatch(1, 0, (PartitionChanged("orders", 0, elected),)))
    return partition


@pytest.mark.parametrize(
    ("version", "error"),
    [(10, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)],
)
def test_a_new_leader_tells_no_end_before_it_knows_what_is_committed(
    version: int, error: ErrorCode
) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        partition = await newly_elected(broker)
        for timestamp in (list_offsets.LATEST, NOW_MS):
            assert (await asked(broker, timestamp, version)).error_code == error
        assert (await asked(broker, list_offsets.EARLIEST, version)).offset == 0
        partition.read_as_leader(FollowerFetch(OTHER, 5, 1, 1, 2), 1, now_ms=NOW_MS)
        assert (await asked(broker, list_offsets.LATEST, version)).offset == 1
        assert (await asked(broker, NOW_MS, version)).offset == 0

    story()


@on_broker()
async def test_a_bad_sector_under_a_lookup_by_time_costs_the_directory(broker: OneBroker) -> None:
    await broker.topic("orders")
    partition = broker.partitions.get("orders", 0)
    assert partition is not None
    batch = memoryview(build_batch([Record(0, NOW_MS, None, b"value")]))
    partition.append([batch], acks=1, now_ms=NOW_MS)
    broker.disk.bad_bytes.add((f"{LOG_DIR}/orders-0/00000000000000000000.log", 0))
    answer = await asked(broker, NOW_MS, 10)
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert list(broker.log_dirs.offline) == [LOG_DIR]


@on_broker()
async def test_a_partition_that_is_asked_for_twice_is_refused_once(broker: OneBroker) -> None:
    await broker.topic("orders", 2)
    asks = [ListOffsetsPartition(partition_index=0, timestamp=NOW_MS)]
    others = [ListOffsetsPartition(partition_index=1, timestamp=NOW_MS)]
    topics = [ListOffsetsTopic(name="orders", partitions=each) for each in (asks, others, asks)]
    for timestamp in (NOW_MS, list_offsets.LATEST):
        asks[0].timestamp = others[0].timestamp = timestamp
        (topic,) = (await broker.ask(list_offsets, ListOffsetsRequest(topics=topics), 7)).topics
        errors = {each.partition_index: each.error_code for each in topic.partitions}
        assert errors == {0: ErrorCode.INVALID_REQUEST, 1: ErrorCode.NONE}
