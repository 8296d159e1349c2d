"""Bodies written by Apache Kafka itself are read as meant and written back the same."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace.wire.codec import decode, encode
from headrace.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from headrace.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from headrace.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

TOPIC_ID = UUID("01234567-89ab-cdef-1122-334455667788")

MEANT: dict[str, Any] = {
    "names": ApiVersionsRequest(
        client_software_name="apache-kafka-java", client_software_version="4.3.0"
    ),
    "features": ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)],
        throttle_time_ms=7,
        supported_features=[
            SupportedFeatureKey(name="transaction.version", min_version=0, max_version=2)
        ],
        finalized_features_epoch=12,
        finalized_features=[
            FinalizedFeatureKey(
                name="transaction.version", min_version_level=2, max_version_level=2
            )
        ],
    ),
    "all-topics": MetadataRequest(topics=None, allow_auto_topic_creation=False),
    "by-id": MetadataRequest(topics=[MetadataRequestTopic(topic_id=TOPIC_ID, name=None)]),
    "follower": FetchRequest(
        cluster_id="c1",
        replica_state=ReplicaState(replica_id=3, replica_epoch=77),
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1_000_000,
        topics=[
            FetchTopic(
                topic_id=TOPIC_ID,
                partitions=[
                    FetchPartition(
                        partition=5,
                        current_leader_epoch=9,
                        fetch_offset=100,
                        last_fetched_epoch=8,
                        log_start_offset=2,
                        partition_max_bytes=65536,
                        replica_directory_id=TOPIC_ID,
                        high_watermark=99,
                    )
                ],
            )
        ],
    ),
    "session": FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1_000_000,
        isolation_level=1,
        session_id=4,
        session_epoch=2,
        forgotten_topics_data=[ForgottenTopic(topic="old", partitions=[0, 1])],
        rack_id="r1",
    ),
    "moved": FetchResponse(
        throttle_time_ms=1,
        session_id=5,
        responses=[
            FetchableTopicResponse(
                topic_id=TOPIC_ID,
                partitions=[
                    PartitionData(
                        error_code=6,
                        high_watermark=10,
                        last_stable_offset=9,
                        log_start_offset=1,
                        diverging_epoch=EpochEndOffset(epoch=3, end_offset=5),
                        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=8),
                        aborted_transactions=[AbortedTransaction(producer_id=42, first_offset=4)],
                    )
                ],
            )
        ],
        node_endpoints=[NodeEndpoint(node_id=2, host="h2", port=9093, rack="r2")],
    ),
    "record-errors": ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="orders",
                partition_responses=[
                    PartitionProduceResponse(
                        index=1,
                        error_code=87,
                        base_offset=-1,
                        record_errors=[
                            BatchIndexAndErrorMessage(
                                batch_index=2, batch_index_error_message="no key"
                            )
                        ],
                        error_message="bad",
                    )
                ],
            )
        ]
    ),
    "classic-member": JoinGroupRequest(
        group_id="g",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id="m-1",
        group_instance_id="i",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\3")],
    ),
    "assignment": ConsumerGroupHeartbeatResponse(
        member_id="m",
        member_epoch=4,
        heartbeat_interval_ms=5000,
        assignment=Assignment(
            topic_partitions=[
                ConsumerGroupHeartbeatResponseTopicPartitions(
                    topic_id=TOPIC_ID, partitions=[0, 1, 2]
                )
            ]
        ),
    ),
    "no-assignment": ConsumerGroupHeartbeatResponse(error_code=25, error_message="who"),
    "subscription": ConsumerProtocolSubscription(topics=["a", "b"], generation_id=3, rack_id="r"),
    "long-string": HeartbeatRequest(group_id="g" * 200, generation_id=1),
}

LINES = [
    line.split()
    for line in (Path(__file__).parent / "bodies.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("name", "kind", "version", "raw"), LINES, ids=[line[0] for line in LINES])
def test_kafkas_own_bytes(name: str, kind: str, version: str, raw: str) -> None:
    meant = MEANT[name]
    number = int(version.removeprefix("v"))
    assert type(meant).__name__ == kind
    assert decode(type(meant), number, bytes.fromhex(raw)) == meant
    assert encode(meant, number).hex() == raw


def test_every_case_has_a_line() -> None:
    assert sorted(MEANT) == sorted(line[0] for line in LINES)
