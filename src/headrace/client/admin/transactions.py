"""Transactions: which there are, the producers of partitions, hanging transactions and their end.

A transaction hangs if a partition waits for its marker and the coordinator will not write one. Coordinators are asked for
transactional ids, leaders for producers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from headrace.client.admin.admin import Admin
from headrace.client.admin.groups import TRANSACTION_KEY, ask_coordinator
from headrace.client.admin.topics import describe_topics, list_topics
from headrace.client.cluster_metadata import Node
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from headrace.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headrace.wire.refusal import Refusal, Refused, refusal_of, require

_PARTITIONS_AT_ONCE = 500
_SHORTEST_TIMEOUT_MS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """A transactional id at its coordinator."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """A transactional id, with the partitions of its transaction. `start_ms` is None where there is no transaction."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int | None
    partitions: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """What a partition knows of a transaction that is open there."""

    partition: TopicPartition
    producer: ProducerState


def list_transactions(
    admin: Admin, *, producer_ids: Iterable[int] = (), longer_than_ms: int = -1
) -> list[TransactionListing]:
    """Every transactional id of every broker, by id."""
    request = ListTransactionsRequest(
        producer_id_filters=list(producer_ids), duration_filter=longer_than_ms
    )
    found: list[TransactionListing] = []
    for broker_id in admin.cluster().nodes:

        def attempt(broker_id: int = broker_id) -> list[TransactionListing]:
            answer = admin.ask_once(broker_id, request)
            require(answer.error_code)
            return [
                TransactionListing(
                    transactional_id=each.transactional_id,
                    coordinator_id=broker_id,
                    producer_id=each.producer_id,
                    state=each.transaction_state,
                )
                for each in answer.transaction_states
            ]

        found += admin.settle(attempt)
    return sorted(found, key=lambda each: each.transactional_id)


def describe_transaction(admin: Admin, transactional_id: str) -> TransactionDescription:
    """A transactional id at its coordinator. Raises Refused."""

    def read(answer: DescribeTransactionsResponse, coordinator: Node) -> TransactionDescription:
        (found,) = answer.transaction_states
        require(found.error_code)
        start_ms = found.transaction_start_time_ms
        return TransactionDescription(
            transactional_id=transactional_id,
            coordinator_id=coordinator.broker_id,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            state=found.transaction_state,
            timeout_ms=found.transaction_timeout_ms,
            start_ms=None if start_ms < 0 else start_ms,
            partitions=[
                TopicPartition(topic.topic, index)
                for topic in found.topics
                for index in topic.partitions
            ],
        )

    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    return ask_coordinator(admin, transactional_id, request, read, key_type=TRANSACTION_KEY)


def terminate_transaction(admin: Admin, transactional_id: str) -> None:
    """Abort whatever is open under a transactional id and fence its producer, by taking its place. Raises Refused."""

    def read(answer: InitProducerIdResponse, _: Node) -> None:
        require(answer.error_code)

    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=_SHORTEST_TIMEOUT_MS
    )
    ask_coordinator(admin, transactional_id, request, read, key_type=TRANSACTION_KEY)


# -- partitions ----------------------------------------------------------------------------------


def describe_producers(
    admin: Admin, partitions: Iterable[TopicPartition], broker_id: int | None = None
) -> dict[TopicPartition, Sequence[ProducerState] | Refusal]:
    """The producers that each partition's leader knows, or this broker."""

    def ask(
        broker: int, wanted: list[TopicPartition]
    ) -> dict[TopicPartition, Sequence[ProducerState] | Refusal]:
        request = DescribeProducersRequest(topics=_topics(wanted))
        return _producers(admin.ask_once(broker, request))

    if broker_id is not None:
        wanted = list(partitions)
        return admin.settle(lambda: ask(broker_id, wanted))
    return admin.ask_leaders(partitions, ask)


def _topics(partitions: Iterable[TopicPartition]) -> list[TopicRequest]:
    return [
        TopicRequest(name=name, partition_indexes=[each.partition for each in some])
        for name, some in groupby(sorted(partitions), key=lambda each: each.topic)
    ]


def _producers(
    answer: DescribeProducersResponse,
) -> dict[TopicPartition, Sequence[ProducerState] | Refusal]:
    found: dict[TopicPartition, Sequence[ProducerState] | Refusal] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            refusal = refusal_of(each.error_code, each.error_message)
            found[TopicPartition(topic.name, each.partition_index)] = (
                each.active_producers if refusal is None else refusal
            )
    return found


def abort_transaction(
    admin: Admin,
    partition: TopicPartition,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
) -> None:
    """Write an abort marker to one partition, whatever the coordinator knows. Raises Refused."""
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        transaction_result=False,
        topics=[
            WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
        ],
    )

    def ask(leader: int, wanted: list[TopicPartition]) -> dict[TopicPartition, ErrorCode | Refusal]:
        answer = admin.ask_once(leader, WriteTxnMarkersRequest(markers=[marker]))
        (result,) = answer.markers
        (topic,) = result.topics
        (written,) = topic.partitions
        refusal = refusal_of(written.error_code)
        return {partition: ErrorCode.NONE if refusal is None else refusal}

    outcome = admin.ask_leaders([partition], ask)[partition]
    if isinstance(outcome, Refusal):
        raise Refused(outcome.error_code, outcome.text)


# -- hanging transactions ------------------------------------------------------------------------


def partitions_to_search(
    admin: Admin, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    """One partition, those of a topic, or all; only those with a replica on the broker if one is named. Raises Refused."""
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    names = [topic] if topic is not None else [each.name for each in list_topics(admin)]
    found: list[TopicPartition] = []
    for name, description in describe_topics(admin, names).items():
        if isinstance(description, Refusal):
            raise Refused(description.error_code, description.text)
        found += [
            TopicPartition(name, each.partition)
            for each in description.partitions
            if broker_id is None or broker_id in each.replicas
        ]
    return sorted(found)


def find_hanging(
    admin: Admin,
    partitions: Iterable[TopicPartition],
    *,
    broker_id: int | None,
    idle_ms: int,
    now_ms: int,
) -> list[OpenTransaction]:
    """Transactions that nobody has written to for `idle_ms`, and that no coordinator will end. Raises Refused."""
    candidates: list[OpenTransaction] = []
    for some in _in_parts(partitions):
        for partition, producers in describe_producers(admin, some, broker_id).items():
            if isinstance(producers, Refusal):
                raise Refused(producers.error_code, producers.text)
            candidates += [
                OpenTransaction(partition=partition, producer=each)
                for each in producers
                if each.current_txn_start_offset >= 0 and now_ms - each.last_timestamp > idle_ms
            ]
    if not candidates:
        return []
    producer_ids = sorted({each.producer.producer_id for each in candidates})
    listed = {
        each.producer_id: each.transactional_id
        for each in list_transactions(admin, producer_ids=producer_ids)
    }
    expected = {
        producer_id: _expected(admin, transactional_id)
        for producer_id, transactional_id in listed.items()
    }
    return hanging_among(candidates, expected)


def hanging_among(
    candidates: Iterable[OpenTransaction], expected: Mapping[int, Sequence[TopicPartition]]
) -> list[OpenTransaction]:
    """The candidates for which the coordinator will write no marker. `expected` is where it will, by producer id."""
    return [
        each
        for each in candidates
        if each.partition not in expected.get(each.producer.producer_id, ())
    ]


def _expected(admin: Admin, transactional_id: str) -> Sequence[TopicPartition]:
    try:
        return describe_transaction(admin, transactional_id).partitions
    except Refused as refused:
        if refused.error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return ()
        raise


def _in_parts(partitions: Iterable[TopicPartition]) -> Iterator[list[TopicPartition]]:
    rest = iter(partitions)
    while some := list(islice(rest, _PARTITIONS_AT_ONCE)):
        yield some
