"""Requests to transaction coordinators: which version, which broker, what is asked again, what is a refusal."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace.client.brokers import Brokers, parse_addresses
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.transaction_coordinator import OpenTransaction, TransactionCoordinator
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from headrace.wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from headrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headrace.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headrace.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from headrace.wire.refusal import Refusal
from tests.unit.client.scripted_cluster import ScriptedCluster


def transaction(version: int = 2) -> OpenTransaction:
    return OpenTransaction(transactional_id="t", producer_id=7, producer_epoch=3, version=version)


@pytest.fixture
def cluster() -> ScriptedCluster:
    made = ScriptedCluster()
    made.answers(FindCoordinatorRequest, coordinated_by(2))
    made.answers(ApiVersionsRequest, lambda _: features(2))
    return made


def coordinator_of(cluster: ScriptedCluster) -> TransactionCoordinator:
    addresses = parse_addresses(",".join(f"b{each}:9092" for each in cluster.broker_ids))
    brokers = Brokers(addresses, connect=cluster.connect, blocking_time=cluster.time)
    return TransactionCoordinator(ClusterMetadata(brokers, cluster.time), give_up_after_s=5)


def coordinated_by(broker_id: int) -> Callable[[Any], FindCoordinatorResponse]:
    return lambda asked: FindCoordinatorResponse(
        coordinators=[Coordinator(key=asked.key, node_id=broker_id, host="b", port=9092)]
    )


def features(level: int | None) -> ApiVersionsResponse:
    told = (
        []
        if level is None
        else [FinalizedFeatureKey(name="transaction.version", max_version_level=level)]
    )
    return ApiVersionsResponse(finalized_features=told)


def ended(error: ErrorCode) -> Callable[[Any], EndTxnResponse]:
    return lambda _: EndTxnResponse(error_code=error)


@pytest.mark.parametrize(("level", "version"), [(2, 2), (1, 1), (0, 0), (None, 1)])
def test_a_transaction_knows_the_protocol_of_its_cluster(level: int | None, version: int) -> None:
    cluster = ScriptedCluster()
    cluster.answers(FindCoordinatorRequest, coordinated_by(2))
    cluster.answers(ApiVersionsRequest, lambda _: features(level))
    cluster.answers(
        InitProducerIdRequest,
        lambda _: InitProducerIdResponse(producer_id=7, producer_epoch=3),
    )
    assert coordinator_of(cluster).begin("t", timeout_ms=60_000) == transaction(version)
    assert cluster.brokers_asked(InitProducerIdRequest) == [2]


def test_concurrent_transactions_is_waited_for_and_fencing_is_a_refusal(
    cluster: ScriptedCluster,
) -> None:
    cluster.answers(
        EndTxnRequest,
        ended(ErrorCode.CONCURRENT_TRANSACTIONS),
        ended(ErrorCode.NONE),
        ended(ErrorCode.PRODUCER_FENCED),
    )
    asked = coordinator_of(cluster)
    assert asked.end(transaction(), commit=True) is None
    assert cluster.time.passed_s == pytest.approx(0.02), "markers are written within milliseconds"
    assert asked.end(transaction(), commit=True) == Refusal(ErrorCode.PRODUCER_FENCED)
    assert cluster.brokers_asked(FindCoordinatorRequest) == [1], "found once"


def test_a_coordinator_that_moved_or_died_is_looked_for_again(cluster: ScriptedCluster) -> None:
    cluster.answers(FindCoordinatorRequest, coordinated_by(1))
    cluster.answers(EndTxnRequest, ended(ErrorCode.NOT_COORDINATOR), ended(ErrorCode.NONE))
    assert coordinator_of(cluster).end(transaction(), commit=False) is None
    assert cluster.brokers_asked(EndTxnRequest) == [2, 1]


def test_it_gives_up_after_its_time_with_the_last_reason(cluster: ScriptedCluster) -> None:
    cluster.answers(EndTxnRequest, ended(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    found = coordinator_of(cluster).end(transaction(), commit=True)
    assert found == Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert 4.8 < cluster.time.passed_s <= 5
    cluster.unreachable = {1, 2}
    found = coordinator_of(cluster).end(transaction(), commit=True)
    assert found is not None
    assert found.error_code is ErrorCode.NETWORK_EXCEPTION


def test_the_protocol_of_version_1_adds_partitions_and_groups_itself(
    cluster: ScriptedCluster,
) -> None:
    def added(asked: Any) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=each,
                            partition_error_code=ErrorCode.CONCURRENT_TRANSACTIONS if each else 0,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in asked.v3_and_below_topics
            ]
        )

    def committed(error: ErrorCode) -> Callable[[Any], TxnOffsetCommitResponse]:
        return lambda _: TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name="in", partitions=[TxnOffsetCommitResponsePartition(error_code=error)]
                )
            ]
        )

    cluster.answers(AddPartitionsToTxnRequest, added, lambda _: AddPartitionsToTxnResponse())
    cluster.answers(AddOffsetsToTxnRequest, lambda _: AddOffsetsToTxnResponse())
    cluster.answers(TxnOffsetCommitRequest, committed(ErrorCode.NONE))
    cluster.answers(EndTxnRequest, ended(ErrorCode.NONE))
    asked, old = coordinator_of(cluster), transaction(1)
    partitions = [TopicPartition("out", 1), TopicPartition("out", 0)]
    assert asked.add_partitions(old, partitions) is None
    assert asked.commit_offsets(old, "g", {TopicPartition("in", 0): 5}) is None
    assert asked.end(old, commit=True) is None
    versions = {type(request): version for _, request, version in cluster.asked}
    assert versions[AddPartitionsToTxnRequest] == 3
    assert versions[TxnOffsetCommitRequest] == 4
    assert versions[EndTxnRequest] == 4
    assert len(cluster.brokers_asked(AddPartitionsToTxnRequest)) == 2, "one was concurrent"

    assert asked.commit_offsets(transaction(2), "g", {TopicPartition("in", 0): 5}) is None
    assert asked.end(transaction(2), commit=True) is None
    assert len(cluster.brokers_asked(AddOffsetsToTxnRequest)) == 1, "version 2 needs it no more"
    assert cluster.asked[-1][2] == EndTxnRequest.VERSIONS[1]


@pytest.mark.parametrize(
    ("state", "epoch", "error", "is_open"),
    [
        ("Ongoing", 3, ErrorCode.NONE, True),
        ("Ongoing", 4, ErrorCode.NONE, False),
        ("CompleteAbort", 3, ErrorCode.NONE, False),
        ("", -1, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, False),
        (
            "",
            -1,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ),
    ],
)
def test_a_transaction_is_open_as_long_as_it_is_ongoing_and_its_own(
    cluster: ScriptedCluster, state: str, epoch: int, error: ErrorCode, is_open: object
) -> None:
    found = TransactionState(
        error_code=error,
        transactional_id="t",
        transaction_state=state,
        producer_id=7,
        producer_epoch=epoch,
    )
    cluster.answers(
        DescribeTransactionsRequest,
        lambda _: DescribeTransactionsResponse(transaction_states=[found]),
    )
    assert coordinator_of(cluster).is_open(transaction()) == is_open
