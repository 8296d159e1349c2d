"""DeleteRecords is answered when every live replica has deleted, durably."""

import asyncio
from uuid import UUID

from headrace.broker.apis import delete_records
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.replicas.log_start_sync import LogStartSync
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.changes import BrokerRegistered, BrokerUnregistered, ChangeBatch
from headrace.controller.values import Broker, PartitionState
from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.recovery import open_log
from headrace.records.batch_builder import build_batch
from headrace.records.batch_reader import Record
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch
from headrace.replication.partition_table import PartitionTable
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.unit.broker.apis.one_broker import CLUSTER_ID, NOW_MS, connection_to

ORDERS = TopicPartition("orders", 0)
VERSION = 2
Answer = tuple[ErrorCode, int]


class Leader:
    """Broker 1 leads a partition with five committed records; 2 and 3 follow it."""

    def __init__(self) -> None:
        def on_disk_failed(_: Partition, error: DiskFailed) -> None:
            raise AssertionError(error)

        log = open_log(MemoryDisk(), f"/d/{ORDERS}", ORDERS, LogConfig(), now_ms=NOW_MS)
        self.partition = Partition(
            ORDERS, UUID(int=7), log, high_watermark=0, on_disk_failed=on_disk_failed
        )
        self.state = PartitionState((1, 2, 3), (1, 2, 3), 1, 4, 0, min_isr=1)
        self.partition.become_leader(1, self.state, now_ms=NOW_MS)
        self.cluster = ClusterView(1, CLUSTER_ID, tells_dialled_address=False)
        brokers = tuple(BrokerRegistered(Broker(broker_id, 10)) for broker_id in (1, 2, 3))
        self.cluster.apply(ChangeBatch(1, 3, brokers))
        for _ in range(5):
            batch = build_batch([Record(0, NOW_MS, None, b"value")])
            self.partition.append([memoryview(batch)], acks=1, now_ms=NOW_MS)
        self.checkpoints_may_be_written = asyncio.Event()
        self.checkpoints_may_be_written.set()
        self.follow(2, 0)
        self.follow(3, 0)
        assert self.partition.high_watermark == 5

    def follow(self, replica: int, log_start_offset: int) -> None:
        """A fetch of a follower that has everything from this offset on."""
        question = FollowerFetch(replica, 10, 5, -1, 4, log_start_offset)
        self.partition.read_as_leader(question, 1 << 20, now_ms=NOW_MS)

    def lose(self, *brokers: int) -> None:
        """Brokers die, and the controller takes them out of the ISR in the same batch of changes."""
        gone = tuple(BrokerUnregistered(broker_id) for broker_id in brokers)
        self.cluster.apply(ChangeBatch(1, 9, gone))
        isr = tuple(replica for replica in (1, 2, 3) if replica not in brokers)
        state = PartitionState((1, 2, 3), isr, 1, 4, 1, min_isr=1)
        self.partition.isr_decided(state, now_ms=NOW_MS)

    async def write_checkpoints(self) -> None:
        start = self.partition.log.log_start_offset
        await self.checkpoints_may_be_written.wait()
        self.partition.log.checkpointed_start = start

    async def delete(self, offset: int, *, timeout_ms: int = 60_000) -> Answer:
        partitions = PartitionTable()
        partitions.add(self.partition)
        ask = DeleteRecordsPartition(partition_index=0, offset=offset)
        sync = LogStartSync(self.write_checkpoints)
        writing = asyncio.create_task(sync.run())
        answer = await delete_records.handle(
            DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name="orders", partitions=[ask])], timeout_ms=timeout_ms
            ),
            RequestContext(DeleteRecordsRequest.API_KEY, VERSION, "client", connection_to()),
            partitions=partitions,
            cluster=self.cluster,
            log_start_sync=sync,
        )
        writing.cancel()
        assert not len(sync.written)
        (result,) = answer.topics[0].partitions
        return ErrorCode.of(result.error_code), result.low_watermark


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_it_waits_for_every_live_replica() -> None:
    async def scenario() -> None:
        leader = Leader()
        answer = asyncio.create_task(leader.delete(3))
        await settle()
        assert leader.partition.log.log_start_offset == 3
        leader.follow(2, 3)
        await settle()
        assert not answer.done()
        leader.follow(3, 4)
        assert await answer == (ErrorCode.NONE, 3)
        assert not leader.partition.log_starts

    asyncio.run(scenario())


def test_all_that_is_committed() -> None:
    async def scenario() -> None:
        leader = Leader()
        answer = asyncio.create_task(leader.delete(-1))
        await settle()
        leader.follow(2, 5)
        leader.follow(3, 5)
        assert await answer == (ErrorCode.NONE, 5)
        assert await leader.delete(2) == (ErrorCode.NONE, 5), "deleted already, everywhere"

    asyncio.run(scenario())


def test_a_replica_that_does_not_delete_in_time_is_told() -> None:
    async def scenario() -> None:
        leader = Leader()
        leader.follow(2, 3)
        assert await leader.delete(3, timeout_ms=1) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert not leader.partition.log_starts

    asyncio.run(scenario())


def test_one_that_is_not_alive_is_not_waited_for() -> None:
    async def scenario() -> None:
        leader = Leader()
        answer = asyncio.create_task(leader.delete(3))
        await settle()
        leader.follow(2, 3)
        await settle()
        leader.lose(3)
        assert await answer == (ErrorCode.NONE, 3)

    asyncio.run(scenario())


def test_a_leader_that_resigns_says_so() -> None:
    async def scenario() -> None:
        leader = Leader()
        answer = asyncio.create_task(leader.delete(3))
        await settle()
        leader.partition.become_follower(2, 5)
        assert await answer == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    asyncio.run(scenario())


def test_it_waits_for_the_checkpoint_of_the_leader() -> None:
    """Else a kill of all brokers brings the records back."""

    async def scenario() -> None:
        leader = Leader()
        leader.checkpoints_may_be_written.clear()
        answer = asyncio.create_task(leader.delete(3))
        await settle()
        leader.follow(2, 3)
        leader.follow(3, 3)
        await settle()
        assert not answer.done()
        leader.checkpoints_may_be_written.set()
        assert await answer == (ErrorCode.NONE, 3)

    asyncio.run(scenario())
