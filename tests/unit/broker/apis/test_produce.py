"""Produce with acks=all while the ISR shrinks: what is answered, and when."""

import asyncio
from typing import NamedTuple
from uuid import UUID

from headrace.broker.apis import produce
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.telemetry.traffic import Traffic
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
from headrace.wire.codec import decode, encode
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.support.in_place import InPlace
from tests.support.scripted_verification import ScriptedVerification
from tests.unit.broker.apis.one_broker import CLUSTER_ID, NOW_MS, connection_to

ORDERS = TopicPartition("orders", 0)
VERSION = 9


class State(NamedTuple):
    isr: tuple[int, ...]
    partition_epoch: int
    needed_isr: int
    leader_epoch: int = 4
    replicas: tuple[int, ...] = (1, 2, 3)


def leading(*, min_insync_replicas: int) -> Partition:
    def on_disk_failed(_: Partition, error: DiskFailed) -> None:
        raise AssertionError(error)

    log = open_log(MemoryDisk(), f"/d/{ORDERS}", ORDERS, LogConfig(), now_ms=NOW_MS)
    partition = Partition(
        ORDERS,
        UUID(int=7),
        log,
        high_watermark=0,
        on_disk_failed=on_disk_failed,
    )
    partition.become_leader(1, State((1, 2, 3), 0, min_insync_replicas), now_ms=NOW_MS)
    return partition


def decide(partition: Partition, *isr: int, epoch: int) -> None:
    assert partition.leader is not None
    needed_isr = partition.leader.needed_isr
    partition.isr_decided(State(isr, epoch, needed_isr), now_ms=NOW_MS)


def fetch(partition: Partition, replica: int, offset: int) -> None:
    question = FollowerFetch(replica, 100, offset, -1, partition.leader_epoch)
    partition.read_as_leader(question, 1 << 20, now_ms=NOW_MS)


def send(partition: Partition, *, timeout_ms: int = 60_000) -> "asyncio.Future[ProduceResponse]":
    """Write one record with acks=all; the answer comes when it comes."""
    partitions = PartitionTable()
    partitions.add(partition)
    batch = build_batch([Record(0, NOW_MS, None, b"value")])
    data = PartitionProduceData(index=ORDERS.partition, records=bytes(batch))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=ORDERS.topic, partition_data=[data])],
    )
    received = decode(ProduceRequest, VERSION, bytearray(encode(request, VERSION)))
    answer = produce.handle(
        received,
        RequestContext(ProduceRequest.API_KEY, VERSION, "client", connection_to()),
        partitions=partitions,
        cluster=ClusterView(1, CLUSTER_ID, tells_dialled_address=False),
        traffic=Traffic(),
        clock=lambda: NOW_MS,
        long_work=LongWork(InPlace(), lambda: 0.0),
        txn_verification=ScriptedVerification(),
    )

    async def decoded() -> ProduceResponse:
        assert answer is not None
        pieces = answer if isinstance(answer, list) else await answer
        assert isinstance(pieces, list)
        return decode(ProduceResponse, VERSION, bytearray(b"".join(pieces)))

    return asyncio.ensure_future(decoded())


def error_of(answer: ProduceResponse) -> ErrorCode:
    return ErrorCode.of(answer.responses[0].partition_responses[0].error_code)


def test_too_few_in_sync_before_the_append_is_refused() -> None:
    async def scenario() -> None:
        partition = leading(min_insync_replicas=2)
        decide(partition, 1, epoch=1)
        assert error_of(await send(partition)) == ErrorCode.NOT_ENOUGH_REPLICAS
        assert partition.log.log_end_offset == 0

    asyncio.run(scenario())


def test_an_isr_that_shrinks_after_the_append_commits_nothing_until_it_grows_again() -> None:
    async def scenario() -> None:
        partition = leading(min_insync_replicas=2)
        answer = send(partition)
        decide(partition, 1, epoch=1)
        await asyncio.sleep(0)
        assert partition.high_watermark == 0
        assert not answer.done()
        fetch(partition, 2, 1)
        decide(partition, 1, 2, epoch=2)
        assert error_of(await answer) == ErrorCode.NONE

    asyncio.run(scenario())


def test_an_isr_that_stays_too_small_after_the_append_is_answered_by_the_time_out() -> None:
    async def scenario() -> None:
        partition = leading(min_insync_replicas=2)
        answer = send(partition, timeout_ms=1)
        decide(partition, 1, epoch=1)
        assert error_of(await answer) == ErrorCode.REQUEST_TIMED_OUT

    asyncio.run(scenario())


def test_what_is_committed_by_too_few_is_not_acknowledged() -> None:
    async def scenario() -> None:
        partition = leading(min_insync_replicas=1)
        answer = send(partition)
        leader = partition.leader
        assert leader is not None
        fetch(partition, 2, 1)
        # Two are needed from the moment when the third goes: neither has been told to the other yet.
        leader.decided(State((1,), 1, 2), now_ms=NOW_MS)
        partition.committed.release(1)
        response = await answer
        assert error_of(response) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert response.responses[0].partition_responses[0].base_offset == -1

    asyncio.run(scenario())
