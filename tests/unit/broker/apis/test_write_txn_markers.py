"""WriteTxnMarkers: how transactions end in the partitions of one broker, and what readers of committed data see of it."""

import pytest

from headrace.broker.apis import describe_producers, list_offsets, write_txn_markers
from headrace.broker.coordinators.marker_senders import marker_sender_client_id
from headrace.broker.net.connection import Connection
from headrace.log.producers.producer_state import NOT_VERIFIED
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.records.batch_view import headers_in
from headrace.replication.partition import Partition
from headrace.replication.partition_read import PartitionRead
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.unit.broker.apis.one_broker import BROKER_ID, NOW_MS, Listener, OneBroker, on_broker

PRODUCER = 4711


def write(partition: Partition, sequence: int, count: int = 1, *, epoch: int = 0) -> None:
    """Records of a transaction, as they come to the log after verification."""
    options = BatchOptions(
        producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, transactional=True
    )
    batch = build_batch(records_at(0, NOW_MS, [(b"k", b"v")] * count), options)
    partition.append((batch,), acks=-1, now_ms=NOW_MS, verified=NOT_VERIFIED)


def marker(
    *topics: tuple[str, list[int]],
    commit: bool = True,
    producer_id: int = PRODUCER,
    epoch: int = 0,
    coordinator_epoch: int = 3,
    version: int = 0,
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics
        ],
    )


async def end(
    broker: OneBroker,
    *markers: WritableTxnMarker,
    version: int = 2,
    connection: Connection | None = None,
    client_id: str = "client",
) -> list[ErrorCode]:
    """Error codes, partition by partition."""
    request = WriteTxnMarkersRequest(markers=markers)
    answer = await broker.ask(
        write_txn_markers, request, version, connection=connection, client_id=client_id
    )
    return [
        ErrorCode(partition.error_code)
        for each in answer.markers
        for topic in each.topics
        for partition in topic.partitions
    ]


async def stable_end(broker: OneBroker, topic: str) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=list_offsets.LATEST)
    request = ListOffsetsRequest(
        isolation_level=1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
    )
    answer = await broker.ask(list_offsets, request, 9)
    return answer.topics[0].partitions[0].offset


async def partition_of(broker: OneBroker, name: str = "orders") -> Partition:
    await broker.topic(name)
    partition = broker.partitions.get(name, 0)
    assert partition is not None
    return partition


@on_broker()
async def test_a_marker_ends_the_transaction_and_moves_the_last_stable_offset(
    broker: OneBroker,
) -> None:
    partition = await partition_of(broker)
    write(partition, 0, 3)
    assert await stable_end(broker, "orders") == 0
    assert await end(broker, marker(("orders", [0]))) == [ErrorCode.NONE]
    assert await stable_end(broker, "orders") == 4
    found = partition.read(0, 1 << 20, read_committed=True)
    assert isinstance(found, PartitionRead)
    *_, (_, header) = headers_in(found.records.copy())
    assert header.is_control
    assert header.is_transactional
    assert found.aborted == []


@on_broker()
async def test_an_abort_is_told_to_readers_of_committed_data(broker: OneBroker) -> None:
    partition = await partition_of(broker)
    write(partition, 0)
    assert await end(broker, marker(("orders", [0]), commit=False), version=1) == [ErrorCode.NONE]
    found = partition.read(0, 1 << 20, read_committed=True)
    assert isinstance(found, PartitionRead)
    assert found.aborted is not None
    assert [(each.producer_id, each.first_offset) for each in found.aborted] == [(PRODUCER, 0)]


@on_broker()
async def test_a_marker_may_be_repeated(broker: OneBroker) -> None:
    partition = await partition_of(broker)
    write(partition, 0)
    for version in (0, 2):
        again = marker(("orders", [0]), epoch=1, version=version)
        assert await end(broker, again, again) == [ErrorCode.NONE]
    assert await stable_end(broker, "orders") == partition.log.log_end_offset


@on_broker()
async def test_markers_are_fenced(broker: OneBroker) -> None:
    partition = await partition_of(broker)
    write(partition, 0, epoch=5)
    orders = ("orders", [0])
    assert await end(broker, marker(orders, epoch=4)) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    late = marker(orders, epoch=5, version=2)
    assert await end(broker, late) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert await end(broker, marker(orders, epoch=6, version=2)) == [ErrorCode.NONE]
    older = marker(orders, epoch=6, coordinator_epoch=2)
    assert await end(broker, older) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]


@on_broker()
async def test_each_partition_has_its_own_answer(broker: OneBroker) -> None:
    await partition_of(broker)
    asked = marker(("orders", [0, 7]), ("nowhere", [0]))
    assert await end(broker, asked) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert await end(broker) == []


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (5, -1), (-(2**63), -(2**15))])
def test_no_producer_has_such_an_id_or_epoch(producer_id: int, epoch: int) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        partition = await partition_of(broker)
        asked = marker(("orders", [0]), producer_id=producer_id, epoch=epoch)
        assert await end(broker, asked) == [ErrorCode.INVALID_REQUEST]
        assert partition.log.log_end_offset == 0

    story()


@on_broker()
async def test_a_marker_needs_as_many_replicas_as_records_with_acks_all(broker: OneBroker) -> None:
    partition = await partition_of(broker)
    assert partition.leader is not None
    partition.leader.has_min_isr = False
    assert await end(broker, marker(("orders", [0]))) == [ErrorCode.NOT_ENOUGH_REPLICAS]


@on_broker()
async def test_the_producer_is_described_with_its_open_transaction(broker: OneBroker) -> None:
    partition = await partition_of(broker)
    await end(broker, marker(("orders", [0]), coordinator_epoch=8))
    write(partition, 0, 2)
    request = DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0])])
    answer = await broker.ask(describe_producers, request, 0)
    (producer,) = answer.topics[0].partitions[0].active_producers
    assert producer.coordinator_epoch == 8
    assert producer.current_txn_start_offset == 1
    assert producer.last_sequence == 1


@on_broker()
async def test_a_replica_that_does_not_lead_describes_its_producers(broker: OneBroker) -> None:
    partition = await partition_of(broker)
    write(partition, 0, 2)
    partition.become_follower(BROKER_ID + 1, partition.leader_epoch + 1)
    assert not partition.is_leader
    request = DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0])])
    answer = (await broker.ask(describe_producers, request, 0)).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.NONE
    (producer,) = answer.active_producers
    assert producer.current_txn_start_offset == 0


@on_broker()
async def test_what_delete_records_took_holds_no_reader_back(broker: OneBroker) -> None:
    partition = await partition_of(broker)
    write(partition, 0, 2)
    write(partition, 2, 2)
    assert await stable_end(broker, "orders") == 0
    assert partition.delete_records(2) == 2
    assert await stable_end(broker, "orders") == 2


@on_broker()
async def test_a_partition_that_is_named_twice_gets_one_marker(broker: OneBroker) -> None:
    partition = await partition_of(broker)
    assert await end(broker, marker(("orders", [0, 0, 0]))) == [ErrorCode.NONE]
    assert partition.log.log_end_offset == 1


@on_broker()
async def test_a_copy_over_a_connection_that_was_given_up_does_not_end_the_next_transaction(
    broker: OneBroker,
) -> None:
    """Under transaction version 1, where the next one has the same epoch and the same coordinator."""
    partition = await partition_of(broker)
    listener = Listener("PLAINTEXT")
    given_up, newer = Connection(listener), Connection(listener)
    sender = marker_sender_client_id(BROKER_ID)
    abort = marker(("orders", [0]), commit=False)
    write(partition, 0)
    assert await end(broker, abort, connection=newer, client_id=sender) == [ErrorCode.NONE]
    write(partition, 1)
    late = await end(broker, abort, connection=given_up, client_id=sender)
    assert late == [ErrorCode.REQUEST_TIMED_OUT]
    assert partition.log.producers.has_open_txn(PRODUCER, 0)
    assert await end(broker, marker(("orders", [0])), connection=newer, client_id=sender) == [
        ErrorCode.NONE
    ]
    found = partition.read(0, 1 << 20, read_committed=True)
    assert isinstance(found, PartitionRead)
    assert found.aborted is not None
    assert [each.first_offset for each in found.aborted] == [0]
