"""The questions that a partition's leader asks transaction coordinators: what is sent, and what becomes of lost answers."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import cast
from uuid import UUID

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.txn_verification import (
    Errors,
    TxnProducer,
    TxnSupport,
    TxnVerification,
    offset_commit_error,
)
from headrace.client.async_connection import AsyncConnection
from headrace.client.exchange import Disconnected
from headrace.controller.changes import BrokerRegistered, ChangeBatch, TopicCreated
from headrace.controller.values import Broker, Endpoint, PartitionState
from headrace.ids import TopicPartition
from headrace.internal_topics import TRANSACTION_STATE
from headrace.wire.api_keys import ApiKey
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from tests.support.scripted_verification import default_settings

ORDERS = TopicPartition("orders", 0)
LOST = None
"""Instead of an answer: the connection breaks."""


class Coordinator:
    """A broker that answers as the test says; every connection to it."""

    def __init__(self, last_version: int = 5) -> None:
        self.last_version = last_version
        self.requests: list[AddPartitionsToTxnRequest] = []
        self.codes: list[ErrorCode | None] = []  # of the next answers; NONE behind them
        self.top_error = ErrorCode.NONE
        self.connections = 0
        self.was_asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()
        self.is_open = True

    async def connect(self, host: str, port: int, *, client_id: str) -> AsyncConnection:
        self.connections += 1
        self.is_open = True
        return cast(AsyncConnection, self)

    async def negotiate(self) -> dict[int, tuple[int, int]]:
        return {ApiKey.ADD_PARTITIONS_TO_TXN: (0, self.last_version)}

    async def send(
        self, request: AddPartitionsToTxnRequest, version: int
    ) -> AddPartitionsToTxnResponse:
        assert version == min(5, self.last_version)
        self.requests.append(request)
        self.was_asked.set()
        await self.answers.wait()
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        if code is LOST:
            self.is_open = False
            raise Disconnected("lost")
        results = [
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=index, partition_error_code=code
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in request.transactions
        ]
        return AddPartitionsToTxnResponse(error_code=self.top_error, results_by_transaction=results)

    def abort(self) -> None:
        self.is_open = False


class World:
    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.coordinator = Coordinator()
        self.time_s = 0.0
        self.beginnings = 0
        self.cluster = ClusterView(2, "a-cluster", tells_dialled_address=False)
        broker = Broker(1, 1, (Endpoint("PLAINTEXT", "host", 9092),))
        topic = TopicCreated(
            TRANSACTION_STATE, UUID(int=9), (PartitionState((1,), (1,), leader=1, leader_epoch=0),)
        )
        self.cluster.apply(ChangeBatch(0, 0, (BrokerRegistered(broker), topic)))
        self.verification = TxnVerification(
            self.cluster,
            default_settings(),
            self.coordinator.connect,
            lambda: self.time_s,
            tasks.create_task,
        )

    async def verify(
        self, name: str = "payments", support: TxnSupport = TxnSupport.BASIC
    ) -> Errors:
        return await self.verification.verify(
            TxnProducer(name, 7, 3), (ORDERS,), support, self._count_beginning
        )

    def _count_beginning(self) -> None:
        self.beginnings += 1


Story = Callable[[World], Coroutine[object, object, None]]


def in_world(story: Story) -> Callable[[], None]:
    @wraps(story)
    def test() -> None:
        async def run() -> None:
            async with asyncio.TaskGroup() as tasks:
                await story(World(tasks))

        asyncio.run(run())

    del test.__wrapped__  # pytest would look for its parameters
    return test


@in_world
async def test_a_verification_says_who_writes_where(world: World) -> None:
    assert await world.verify() == {}
    assert await world.verify(support=TxnSupport.IMPLICIT) == {}
    (verified,), (added,) = (each.transactions for each in world.coordinator.requests)
    assert (verified.transactional_id, verified.producer_id, verified.producer_epoch) == (
        "payments",
        7,
        3,
    )
    assert [(topic.name, list(topic.partitions)) for topic in verified.topics] == [("orders", [0])]
    assert verified.verify_only
    assert not added.verify_only
    assert world.coordinator.connections == 1


@in_world
async def test_what_comes_while_a_request_is_under_way_goes_together(world: World) -> None:
    world.coordinator.answers.clear()
    names = ("a", "b", "c", "b")
    waiting = [asyncio.ensure_future(world.verify(name)) for name in names]
    await world.coordinator.was_asked.wait()
    world.coordinator.answers.set()
    assert await asyncio.gather(*waiting) == [{}] * 4
    sent = [[t.transactional_id for t in r.transactions] for r in world.coordinator.requests]
    assert sent == [["a", "b", "c"], ["b"]]


@in_world
async def test_a_lost_answer_is_told_and_the_next_question_connects_again(world: World) -> None:
    world.coordinator.codes = [LOST]
    assert await world.verify() == {ORDERS: ErrorCode.NETWORK_EXCEPTION}
    assert await world.verify() == {}
    assert world.coordinator.connections == 2
    assert world.verification.counts.failures == 1


@in_world
async def test_a_transaction_that_is_still_ending_is_waited_for(world: World) -> None:
    busy = ErrorCode.CONCURRENT_TRANSACTIONS
    world.coordinator.codes = [busy, busy]
    assert await world.verify(support=TxnSupport.IMPLICIT) == {}
    assert world.beginnings == 3, "the marker that was waited for voids what was begun before it"
    world.coordinator.codes = [busy]
    assert await world.verify() == {ORDERS: busy}, "an older client asks again by itself"


@in_world
async def test_it_is_not_waited_for_longer_than_a_moment(world: World) -> None:
    class Clock(list[float]):
        def __call__(self) -> float:
            return self.pop(0)

    world.coordinator.codes = [ErrorCode.CONCURRENT_TRANSACTIONS] * 9
    world.verification._monotonic = Clock([0, 0.05, 0.1, 0.1])
    errors = await world.verify(support=TxnSupport.IMPLICIT)
    assert errors == {ORDERS: ErrorCode.CONCURRENT_TRANSACTIONS}
    assert len(world.coordinator.requests) == 2


@in_world
async def test_an_error_of_the_whole_request_is_one_of_each_partition(world: World) -> None:
    world.coordinator.top_error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert await world.verify() == {ORDERS: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


@in_world
async def test_a_broker_that_coordinates_no_transactions_verifies_none(world: World) -> None:
    world.coordinator.last_version = 3
    assert await world.verify() == {ORDERS: ErrorCode.COORDINATOR_NOT_AVAILABLE}


@in_world
async def test_an_answer_that_says_nothing_of_a_partition_is_no_yes(world: World) -> None:
    async def forget(
        request: AddPartitionsToTxnRequest, version: int
    ) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[AddPartitionsToTxnResult(transactional_id="payments")]
        )

    world.coordinator.send = forget  # type: ignore[method-assign]
    assert await world.verify() == {ORDERS: ErrorCode.UNKNOWN_SERVER_ERROR}


@in_world
async def test_without_the_transaction_topic_nobody_is_asked(world: World) -> None:
    world.verification._cluster = ClusterView(2, "a-cluster", tells_dialled_address=False)
    assert await world.verify() == {ORDERS: ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_the_sender_of_offsets_asks_the_same_group_coordinator_again() -> None:
    basic, implicit = TxnSupport.BASIC, TxnSupport.IMPLICIT
    busy, loading = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert offset_commit_error(busy, basic) is loading
    assert offset_commit_error(busy, implicit) is busy
    assert offset_commit_error(ErrorCode.NETWORK_EXCEPTION, implicit) is loading
    available = offset_commit_error(ErrorCode.NOT_COORDINATOR, basic)
    assert available is ErrorCode.COORDINATOR_NOT_AVAILABLE
