"""Markers on their way: leaders that move or are away, answers of every kind, and brokers that do not answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from headrace.broker.coordinators.marker_sending import NO_LEADER, MarkerSending
from headrace.client.async_connection import AsyncConnection
from headrace.client.exchange import Disconnected
from headrace.coordinator.coordinator_type import ShardId
from headrace.coordinator.transaction.markers import WriteMarkers
from headrace.ids import ProducerId, TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.unit.coordinator.memory_shard_log import on_loop

SHARD = ShardId("__transaction_state", 4, 9)
P0, P1, P2 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
Verdict = Callable[[TopicPartition], ErrorCode]


def markers(*partitions: TopicPartition, producer_id: int = 7) -> WriteMarkers:
    return WriteMarkers(f"t{producer_id}", ProducerId(producer_id), 3, True, 2, partitions)


class Targets:
    """A cluster of brokers that answer as the test says."""

    def __init__(self) -> None:
        self.leaders: dict[TopicPartition, int] = {P0: 1, P1: 2, P2: 2}
        self.requests: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.verdict: Verdict = lambda _: ErrorCode.NONE
        self.before_answer: Callable[[int], Awaitable[None]] | None = None
        self.connection_count = 0

    def leader_of(self, partition: TopicPartition) -> int | None:
        return self.leaders.get(partition)

    async def connect_to(self, broker_id: int) -> AsyncConnection:
        self.connection_count += 1
        return cast(AsyncConnection, Peer(self, broker_id))


class Peer:
    """A connection."""

    def __init__(self, targets: Targets, broker_id: int) -> None:
        self.is_open = True
        self._targets = targets
        self._broker_id = broker_id

    async def send(self, request: WriteTxnMarkersRequest, version: int) -> WriteTxnMarkersResponse:
        assert version == 2
        self._targets.requests.append((self._broker_id, request))
        if self._targets.before_answer is not None:
            await self._targets.before_answer(self._broker_id)
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=self._targets.verdict(
                                        TopicPartition(topic.name, index)
                                    ),
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    def abort(self) -> None:
        self.is_open = False


def sending(targets: Targets) -> MarkerSending:
    spawn = asyncio.get_running_loop().create_task
    return MarkerSending(targets, spawn, timeout_s=30)


@on_loop
async def test_each_leader_gets_its_partitions_with_all_that_fences() -> None:
    targets = Targets()
    await sending(targets).write(SHARD, markers(P0, P1, P2))
    by_broker = {broker: request.markers[0] for broker, request in targets.requests}
    assert {
        broker: [(each.name, list(each.partition_indexes)) for each in marker.topics]
        for broker, marker in by_broker.items()
    } == {1: [("a", [0])], 2: [("a", [1]), ("b", [0])]}
    marker = by_broker[1]
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (7, 3, True)
    assert (marker.coordinator_epoch, marker.transaction_version) == (9, 2)


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_is_refused_is_sent_again_and_only_that(error: ErrorCode) -> None:
    @on_loop
    async def test() -> None:
        targets = Targets()
        answers = iter([error, error])
        targets.verdict = lambda each: (
            next(answers, ErrorCode.NONE) if each == P1 else ErrorCode.NONE
        )
        await sending(targets).write(SHARD, markers(P1, P2))
        sent = [
            [(each.name, list(each.partition_indexes)) for each in request.markers[0].topics]
            for _, request in targets.requests
        ]
        assert sent == [[("a", [1]), ("b", [0])], [("a", [1])], [("a", [1])]]

    test()


@pytest.mark.parametrize(
    "error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT]
)
def test_what_needs_no_marker_any_more_is_done(error: ErrorCode) -> None:
    @on_loop
    async def test() -> None:
        targets = Targets()
        targets.verdict = lambda _: error
        await sending(targets).write(SHARD, markers(P0))
        assert len(targets.requests) == 1

    test()


@on_loop
async def test_a_partition_without_leader_is_waited_for() -> None:
    targets = Targets()
    targets.leaders[P0] = NO_LEADER
    sender = sending(targets)
    writing = asyncio.ensure_future(sender.write(SHARD, markers(P0, P1)))
    await asyncio.sleep(60)
    assert not writing.done()
    assert sender.without_leader == 1
    assert [broker for broker, _ in targets.requests] == [2]
    targets.leaders[P0] = 3
    await writing
    assert sender.without_leader == 0
    assert [broker for broker, _ in targets.requests] == [2, 3]


@on_loop
async def test_a_deleted_topic_needs_no_marker() -> None:
    targets = Targets()
    del targets.leaders[P0]
    await sending(targets).write(SHARD, markers(P0))
    assert targets.requests == []


@on_loop
async def test_a_topic_that_is_deleted_while_its_leader_is_away() -> None:
    targets = Targets()
    targets.leaders[P0] = NO_LEADER
    writing = asyncio.ensure_future(sending(targets).write(SHARD, markers(P0)))
    await asyncio.sleep(5)
    del targets.leaders[P0]
    await writing


@on_loop
async def test_a_lost_connection_is_replaced_and_the_leader_looked_for_anew() -> None:
    targets = Targets()

    async def lose(_: int) -> None:
        targets.before_answer = None
        targets.leaders[P0] = 2
        raise Disconnected("killed")

    targets.before_answer = lose
    await sending(targets).write(SHARD, markers(P0))
    assert [broker for broker, _ in targets.requests] == [1, 2]


@on_loop
async def test_a_broker_that_does_not_answer_is_given_up_after_the_time_out() -> None:
    targets = Targets()

    async def hang(_: int) -> None:
        targets.before_answer = None
        await asyncio.Event().wait()

    targets.before_answer = hang
    began_s = asyncio.get_running_loop().time()
    await sending(targets).write(SHARD, markers(P0))
    assert asyncio.get_running_loop().time() - began_s >= 30
    assert targets.connection_count == 2


@on_loop
async def test_markers_that_wait_for_one_broker_share_a_request() -> None:
    targets = Targets()
    may_answer = asyncio.Event()

    async def wait(_: int) -> None:
        await may_answer.wait()

    targets.before_answer = wait
    sender = sending(targets)
    writing = [
        asyncio.ensure_future(sender.write(SHARD, markers(P0, producer_id=number)))
        for number in range(5)
    ]
    twice = asyncio.ensure_future(
        sender.write(SHARD, markers(P0, producer_id=4)._replace(producer_epoch=4))
    )
    await asyncio.sleep(1)
    may_answer.set()
    await asyncio.gather(*writing, twice)
    sent = [[each.producer_id for each in request.markers] for _, request in targets.requests]
    # All that came in one go share the first; the answer names a marker by its producer id, so the same id waits.
    assert sent == [[0, 1, 2, 3, 4], [4]]
    assert targets.connection_count == 1


@on_loop
async def test_what_is_cancelled_is_not_sent() -> None:
    targets = Targets()
    may_answer = asyncio.Event()

    async def wait(_: int) -> None:
        await may_answer.wait()

    targets.before_answer = wait
    sender = sending(targets)
    first = asyncio.ensure_future(sender.write(SHARD, markers(P0, producer_id=1)))
    await asyncio.sleep(1)
    second = asyncio.ensure_future(sender.write(SHARD, markers(P0, producer_id=2)))
    await asyncio.sleep(1)
    second.cancel()
    may_answer.set()
    await first
    await asyncio.sleep(1)
    assert len(targets.requests) == 1


@on_loop
async def test_a_stopped_sender_abandons_what_is_under_way() -> None:
    targets = Targets()

    async def hang(_: int) -> None:
        await asyncio.Event().wait()

    targets.before_answer = hang
    sender = sending(targets)
    writing = asyncio.ensure_future(sender.write(SHARD, markers(P0)))
    await asyncio.sleep(1)
    writing.cancel()
    sender.stop()
    await asyncio.sleep(1)
    assert asyncio.all_tasks() == {asyncio.current_task()}
