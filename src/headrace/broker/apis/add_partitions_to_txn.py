"""AddPartitionsToTxn (24), versions 0-5: partitions take part in a transaction.

v2 PRODUCER_FENCED · v3 flexible · v4 several transactions, and questions whether partitions take part (KIP-890), both from partition
leaders only; v5 newer error codes. From v4 on partitions are added under transaction version 2.
Errors, the same for all partitions of a transaction: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED (before v2
INVALID_PRODUCER_EPOCH), CONCURRENT_TRANSACTIONS, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE. Per partition:
UNKNOWN_TOPIC_OR_PARTITION and, for clients, TOPIC_AUTHORIZATION_FAILED for internal topics, with OPERATION_NOT_ATTEMPTED for the others;
TRANSACTION_ABORTABLE if it was asked for and does not take part.
"""

import asyncio
from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.long_work import LongWork, Slices
from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.transaction.state import ProducerIdentity
from headrace.coordinator.transaction.transactions import Transactions
from headrace.ids import ProducerId, TopicPartition
from headrace.internal_topics import INTERNAL_TOPICS
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

_FIRST_WITH_FENCED: Final = 2
_FIRST_FROM_BROKERS: Final = 4
_CLIENT_VERSION_OF_BROKERS: Final = 2
_TRANSACTIONS_AT_ONCE: Final = 1_000

Errors = dict[TopicPartition, ErrorCode]


async def handle(
    request: AddPartitionsToTxnRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    transactions: Transactions,
    long_work: LongWork,
) -> AddPartitionsToTxnResponse:
    slices = long_work.slices()
    if context.version < _FIRST_FROM_BROKERS:
        asked = _from_client(request)
        errors = await _add(asked, context.version, cluster, transactions, slices)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=await _topics(errors, slices)
        )
    answers: list[Errors] = []
    for first in range(0, len(request.transactions), _TRANSACTIONS_AT_ONCE):
        some = request.transactions[first : first + _TRANSACTIONS_AT_ONCE]
        answers += await asyncio.gather(
            *(_add(asked, context.version, cluster, transactions, slices) for asked in some)
        )
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=asked.transactional_id, topic_results=await _topics(errors, slices)
            )
            for asked, errors in zip(request.transactions, answers, strict=True)
        ]
    )


def _from_client(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


async def _add(
    asked: AddPartitionsToTxnTransaction,
    version: int,
    cluster: ClusterView,
    transactions: Transactions,
    slices: Slices,
) -> Errors:
    found: set[TopicPartition] = set()
    for topic in asked.topics:
        for index in topic.partitions:
            await slices.pause()
            found.add(TopicPartition(topic.name, index))
    partitions = frozenset(found)
    is_client = version < _FIRST_FROM_BROKERS
    errors = await _impossible(partitions, cluster, slices, is_client=is_client)
    if errors:
        left = dict.fromkeys(partitions - errors.keys(), ErrorCode.OPERATION_NOT_ATTEMPTED)
        return errors | left
    producer = ProducerIdentity(ProducerId(asked.producer_id), asked.producer_epoch)
    if asked.verify_only:
        return await transactions.verify_partitions(asked.transactional_id, producer, partitions)
    error = await transactions.add_partitions(
        asked.transactional_id,
        producer,
        partitions,
        0 if is_client else _CLIENT_VERSION_OF_BROKERS,
    )
    if error is ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return dict.fromkeys(partitions, error)


async def _impossible(
    partitions: frozenset[TopicPartition],
    cluster: ClusterView,
    slices: Slices,
    *,
    is_client: bool,
) -> Errors:
    errors: Errors = {}
    for partition in partitions:
        await slices.pause()
        if is_client and partition.topic in INTERNAL_TOPICS:
            errors[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif cluster.state.partition(partition.topic, partition.partition) is None:
            errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return errors


async def _topics(errors: Errors, slices: Slices) -> list[AddPartitionsToTxnTopicResult]:
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for partition in sorted(errors):
        await slices.pause()
        by_topic.setdefault(partition.topic, []).append(
            AddPartitionsToTxnPartitionResult(
                partition_index=partition.partition, partition_error_code=errors[partition]
            )
        )
    return [
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=results)
        for name, results in by_topic.items()
    ]
