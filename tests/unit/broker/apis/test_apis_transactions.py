"""The APIs of the transaction coordinator on one broker, in the versions that differ."""

import pytest

from headrace.broker.apis import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    list_transactions,
)
from headrace.controller.values import ConfigKind
from headrace.coordinator.transaction.markers import WriteMarkers
from headrace.coordinator.transaction.state import ProducerIdentity
from headrace.ids import ProducerId, TopicPartition
from headrace.internal_topics import TRANSACTION_STATE
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from headrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from headrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from tests.unit.broker.apis.one_broker import NOW_MS, OneBroker, on_broker
from tests.unit.coordinator.transfer_coordinator import settle

Errors = dict[TopicPartition, ErrorCode]
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


async def initialized(broker: OneBroker, transactional_id: str = "t") -> ProducerIdentity:
    """The transaction topic, and a producer's id and epoch."""
    await broker.topic_creation.create([TRANSACTION_STATE])
    await broker.transaction_runtime.loaded()
    answer = await broker.transactions.initialize_producer(transactional_id, 60_000, None)
    assert answer.error is ErrorCode.NONE
    return answer.producer


def topics_of(*partitions: TopicPartition) -> list[AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnTopic(name=each.topic, partitions=[each.partition]) for each in partitions
    ]


def errors_in(results: "list[AddPartitionsToTxnTopicResult]") -> Errors:
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode.of(each.partition_error_code)
        for topic in results
        for each in topic.results_by_partition
    }


async def add(
    broker: OneBroker, producer: ProducerIdentity, *partitions: TopicPartition, version: int = 3
) -> Errors:
    """As a client asks."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=topics_of(*partitions),
    )
    answer = await broker.ask(add_partitions_to_txn, request, version)
    return errors_in(list(answer.results_by_topic_v3_and_below))


async def end(
    broker: OneBroker, producer: ProducerIdentity, *, commit: bool = True, version: int = 5
) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id="t",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    return await broker.ask(end_txn, request, version)


@on_broker()
async def test_a_client_adds_all_partitions_or_none(broker: OneBroker) -> None:
    await broker.topic("orders", 2)
    producer = await initialized(broker)
    assert await add(broker, producer, P0, TopicPartition("orders", 2)) == {
        P0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        TopicPartition("orders", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    internal = TopicPartition(TRANSACTION_STATE, 0)
    assert await add(broker, producer, P0, internal) == {
        P0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        internal: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert await add(broker, producer, P0, P1) == {P0: ErrorCode.NONE, P1: ErrorCode.NONE}


@on_broker()
async def test_old_clients_do_not_know_that_a_producer_is_fenced(broker: OneBroker) -> None:
    await broker.topic("orders", 1)
    zombie = await initialized(broker)
    await initialized(broker)
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    assert await add(broker, zombie, P0, version=1) == {P0: old}
    assert await add(broker, zombie, P0, version=2) == {P0: new}
    assert (await end(broker, zombie, version=1)).error_code == old
    assert (await end(broker, zombie, version=2)).error_code == new
    for version, error in ((1, old), (2, new)):
        request = AddOffsetsToTxnRequest(
            transactional_id="t",
            producer_id=zombie.producer_id,
            producer_epoch=zombie.epoch,
            group_id="g",
        )
        answer = await broker.ask(add_offsets_to_txn, request, version)
        assert answer.error_code == error


@on_broker()
async def test_brokers_ask_for_more_transactions_than_are_handled_at_once(
    broker: OneBroker,
) -> None:
    await broker.topic("orders", 1)
    producer = await initialized(broker)
    await add(broker, producer, P0)
    unknown = [
        AddPartitionsToTxnTransaction(
            transactional_id=f"u{n}", producer_id=1, topics=topics_of(P0), verify_only=True
        )
        for n in range(1_000)
    ]
    known = AddPartitionsToTxnTransaction(
        transactional_id="t",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=topics_of(P0),
        verify_only=True,
    )
    request = AddPartitionsToTxnRequest(transactions=[*unknown, known])
    answer = await broker.ask(add_partitions_to_txn, request, 5)
    assert [each.transactional_id for each in answer.results_by_transaction] == [
        *(each.transactional_id for each in unknown),
        "t",
    ]
    last = answer.results_by_transaction[-1]
    assert errors_in(list(last.topic_results)) == {P0: ErrorCode.NONE}


@pytest.mark.parametrize("verify_only", [True, False])
def test_brokers_ask_for_several_transactions(verify_only: bool) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.topic("orders", 2)
        producer = await initialized(broker)
        other = await initialized(broker, "other")
        await add(broker, producer, P0)
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=given.producer_id,
                    producer_epoch=given.epoch,
                    verify_only=verify_only,
                    topics=topics_of(P0, P1),
                )
                for transactional_id, given in (("t", producer), ("other", other))
            ]
        )
        answer = await broker.ask(add_partitions_to_txn, request, 5)
        errors = {
            each.transactional_id: errors_in(list(each.topic_results))
            for each in answer.results_by_transaction
        }
        none, abortable = ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE
        missing = abortable if verify_only else none
        assert errors == {"t": {P0: none, P1: missing}, "other": {P0: missing, P1: missing}}

    on_broker()(scenario)()


@on_broker()
async def test_offsets_take_part_by_the_partition_of_their_group(broker: OneBroker) -> None:
    producer = await initialized(broker)
    request = AddOffsetsToTxnRequest(
        transactional_id="t",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id="g",
    )
    assert (await broker.ask(add_offsets_to_txn, request, 4)).error_code == 0
    described = await broker.transactions.describe("t")
    expected = [broker.group_runtime.partition_for("g")]
    assert [(each.topic, each.partitions) for each in described.topics] == [
        ("__consumer_offsets", expected)
    ]


@on_broker()
async def test_the_end_is_answered_before_the_markers_are_written(broker: OneBroker) -> None:
    await broker.topic("orders", 1)
    producer = await initialized(broker)
    await add(broker, producer, P0)
    broker.may_write_markers.clear()
    answer = await end(broker, producer)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
        0,
        producer.producer_id,
        1,
    )
    raised = producer._replace(epoch=1)
    assert await add(broker, raised, P0) == {P0: ErrorCode.CONCURRENT_TRANSACTIONS}
    broker.may_write_markers.set()
    await settle()
    assert await add(broker, raised, P0) == {P0: ErrorCode.NONE}
    assert broker.markers_written == [WriteMarkers("t", producer.producer_id, 1, True, 2, (P0,))]


@on_broker()
async def test_below_version_5_the_epoch_stays(broker: OneBroker) -> None:
    await broker.topic("orders", 1)
    producer = await initialized(broker)
    await add(broker, producer, P0)
    assert (await end(broker, producer, version=4)).error_code == 0
    assert (await broker.transactions.describe("t")).producer_epoch == 0
    assert (await end(broker, producer, version=4, commit=False)).error_code in (
        ErrorCode.INVALID_TXN_STATE,
    )


@on_broker()
async def test_nobody_coordinates_before_the_topic_exists(broker: OneBroker) -> None:
    producer = ProducerIdentity(ProducerId(1), 0)
    assert (await end(broker, producer)).error_code == ErrorCode.NOT_COORDINATOR
    answer = await broker.transactions.initialize_producer("t", 60_000, None)
    assert answer.error is ErrorCode.NOT_COORDINATOR


@on_broker()
async def test_a_refused_end_has_no_producer(broker: OneBroker) -> None:
    await initialized(broker)
    answer = await end(broker, ProducerIdentity(ProducerId(77), 0))
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@on_broker()
async def test_describe(broker: OneBroker) -> None:
    await broker.topic("orders", 2)
    producer = await initialized(broker)
    await add(broker, producer, P1, P0)
    request = DescribeTransactionsRequest(transactional_ids=["t", "nobody", ""])
    answer = await broker.ask(describe_transactions, request, 0)
    found, missing, empty = answer.transaction_states
    assert (found.error_code, found.transaction_state) == (0, "Ongoing")
    assert found.transaction_start_time_ms == NOW_MS
    assert [(each.topic, list(each.partitions)) for each in found.topics] == [("orders", [0, 1])]
    assert missing.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST


@on_broker()
async def test_list(broker: OneBroker) -> None:
    await broker.topic("orders", 1)
    producer = await initialized(broker)
    other = await initialized(broker, "other")
    await add(broker, producer, P0)

    async def listed(version: int = 1, **filters: object) -> list[str]:
        request = ListTransactionsRequest(**filters)  # type: ignore[arg-type]
        answer = await broker.ask(list_transactions, request, version)
        assert answer.error_code == 0
        return sorted(each.transactional_id for each in answer.transaction_states)

    assert await listed() == ["other", "t"]
    assert await listed(0, state_filters=["Ongoing"]) == ["t"]
    assert await listed(producer_id_filters=[other.producer_id]) == ["other"]
    request = ListTransactionsRequest(state_filters=["Ongoing", "Bogus", "Dead"])
    answer = await broker.ask(list_transactions, request, 1)
    assert list(answer.unknown_state_filters) == ["Bogus"]


@on_broker()
async def test_the_topic_is_made_with_its_own_configs(broker: OneBroker) -> None:
    await broker.topic_creation.create([TRANSACTION_STATE])
    topic = broker.cluster.state.topics[TRANSACTION_STATE]
    assert len(topic.partitions) == 3
    assert broker.cluster.state.configs[ConfigKind.TOPIC, TRANSACTION_STATE] == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        # One broker has one replica: the default of 2 would refuse every transaction.
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


@on_broker(transaction_state_log_min_isr="2", transaction_state_log_segment_bytes="1048576")
async def test_what_is_set_is_kept(broker: OneBroker) -> None:
    await broker.topic_creation.create([TRANSACTION_STATE])
    configs = broker.cluster.state.configs[ConfigKind.TOPIC, TRANSACTION_STATE]
    assert (configs["min.insync.replicas"], configs["segment.bytes"]) == ("2", "1048576")
