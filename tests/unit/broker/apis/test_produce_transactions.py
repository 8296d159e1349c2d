"""Produce of transactional batches: what is verified with the coordinator, and what is answered."""

import asyncio
from dataclasses import dataclass, field

import pytest

from headrace.broker.apis import produce, write_txn_markers
from headrace.broker.net.connection import Connection
from headrace.broker.requests.txn_verification import TxnProducer, TxnSupport
from headrace.ids import TopicPartition
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.unit.broker.apis.one_broker import NOW_MS, OneBroker, connection_to, on_broker
from tests.unit.broker.apis.test_write_txn_markers import marker

ORDERS = TopicPartition("orders", 0)
PRODUCER = 4711


@dataclass
class Sender:
    """A transactional producer on one connection."""

    broker: OneBroker
    version: int = 11
    transactional_id: str | None = "payments"
    connection: Connection = field(default_factory=connection_to)

    async def send(
        self,
        sequence: int,
        *,
        epoch: int = 0,
        transactional: bool = True,
        control: bool = False,
        producers: tuple[int, ...] = (PRODUCER,),
    ) -> list[ErrorCode]:
        """One record for each partition; the producer of each batch is given."""
        parts = []
        for index, producer_id in enumerate(producers):
            options = BatchOptions(
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=transactional,
                control=control,
            )
            batch = build_batch(records_at(0, NOW_MS, [(b"k", b"v")]), options)
            parts.append(PartitionProduceData(index=index, records=bytes(batch)))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name="orders", partition_data=parts)],
        )
        version = self.version
        answer = await self.broker.ask(produce, request, version, connection=self.connection)
        return [ErrorCode(each.error_code) for each in answer.responses[0].partition_responses]


def end_offset(broker: OneBroker) -> int:
    partition = broker.partitions.get("orders", 0)
    assert partition is not None
    return partition.log.log_end_offset


@on_broker()
async def test_the_first_batch_of_a_transaction_is_verified(broker: OneBroker) -> None:
    await broker.topic("orders")
    sender = Sender(broker)
    assert await sender.send(0) == [ErrorCode.NONE]
    assert await sender.send(1) == [ErrorCode.NONE]
    producer = TxnProducer("payments", PRODUCER, 0)
    assert broker.txn_verification.asked == [(producer, (ORDERS,), TxnSupport.ABORTABLE)]
    await broker.ask(
        write_txn_markers, WriteTxnMarkersRequest(markers=[marker(("orders", [0]))]), 1
    )
    assert await sender.send(2) == [ErrorCode.NONE]
    assert len(broker.txn_verification.asked) == 2


@on_broker()
async def test_from_version_12_on_the_partition_is_added(broker: OneBroker) -> None:
    await broker.topic("orders")
    broker.txn_verification.is_on = False
    assert await Sender(broker, version=12).send(0) == [ErrorCode.NONE]
    assert [support for _, _, support in broker.txn_verification.asked] == [TxnSupport.IMPLICIT]


@on_broker()
async def test_verification_can_be_switched_off(broker: OneBroker) -> None:
    await broker.topic("orders")
    broker.txn_verification.is_on = False
    assert await Sender(broker).send(0) == [ErrorCode.NONE]
    assert broker.txn_verification.asked == []


@pytest.mark.parametrize(
    ("said", "version", "answered"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 12, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NETWORK_EXCEPTION, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 9, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 12, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_a_refusal_is_told_in_words_that_the_client_knows(
    said: ErrorCode, version: int, answered: ErrorCode
) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("orders")
        broker.txn_verification.errors = {ORDERS: said}
        sender = Sender(broker, version=version)
        assert await sender.send(0) == [answered]
        assert end_offset(broker) == 0
        broker.txn_verification.errors = {}
        assert await sender.send(0) == [ErrorCode.NONE]

    story()


@on_broker()
async def test_a_marker_that_comes_before_the_coordinators_answer_wins(broker: OneBroker) -> None:
    """The transaction was verified and ended meanwhile: what is written now would belong to no transaction."""
    await broker.topic("orders")
    broker.txn_verification.answers.clear()
    sending = asyncio.ensure_future(Sender(broker).send(0))
    await broker.txn_verification.was_asked.wait()
    await broker.ask(
        write_txn_markers,
        WriteTxnMarkersRequest(markers=[marker(("orders", [0]), commit=False)]),
        1,
    )
    broker.txn_verification.answers.set()
    assert await sending == [ErrorCode.INVALID_TXN_STATE]
    assert end_offset(broker) == 1


@on_broker()
async def test_only_the_partitions_that_are_not_open_are_verified(broker: OneBroker) -> None:
    await broker.topic("orders", 2)
    sender = Sender(broker)
    assert await sender.send(0) == [ErrorCode.NONE]
    second = TopicPartition("orders", 1)
    broker.txn_verification.errors = {second: ErrorCode.TRANSACTION_ABORTABLE}
    answers = await sender.send(1, producers=(PRODUCER, PRODUCER))
    assert answers == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
    assert broker.txn_verification.asked[1][1] == (second,)


@on_broker()
async def test_batches_behind_one_that_could_not_be_verified_are_refused_with_it(
    broker: OneBroker,
) -> None:
    await broker.topic("orders")
    broker.txn_verification.errors = {ORDERS: ErrorCode.CONCURRENT_TRANSACTIONS}
    sender = Sender(broker, version=12)
    assert await sender.send(0) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    broker.txn_verification.errors = {}
    assert await sender.send(1) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert await sender.send(0) == [ErrorCode.NONE]
    assert await sender.send(1) == [ErrorCode.NONE]


@on_broker()
async def test_what_no_producer_of_a_transaction_sends_is_refused(broker: OneBroker) -> None:
    await broker.topic("orders", 2)
    nameless = Sender(broker, transactional_id=None)
    assert await nameless.send(0) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    sender = Sender(broker)
    assert await sender.send(0, control=True) == [ErrorCode.INVALID_RECORD]
    assert await sender.send(-1, producers=(-1,)) == [ErrorCode.INVALID_RECORD]
    assert broker.txn_verification.asked == []
    answers = await sender.send(0, producers=(PRODUCER, 1))
    assert answers == [ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert await sender.send(1, transactional=False) == [ErrorCode.INVALID_TXN_STATE]


@on_broker()
async def test_a_marker_that_was_waited_for_does_not_void_what_is_begun_after_it(
    broker: OneBroker,
) -> None:
    """A Java producer writes as soon as its last transaction is about to end: the coordinator is asked again."""
    await broker.topic("orders")
    broker.txn_verification.answers.clear()
    sending = asyncio.ensure_future(Sender(broker, version=12).send(0, epoch=1))
    await broker.txn_verification.was_asked.wait()
    ending = WriteTxnMarkersRequest(markers=[marker(("orders", [0]), epoch=1, version=2)])
    await broker.ask(write_txn_markers, ending, 2)
    broker.txn_verification.begin()  # the coordinator said CONCURRENT_TRANSACTIONS
    broker.txn_verification.answers.set()
    assert await sending == [ErrorCode.NONE]
