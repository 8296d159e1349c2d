"""The right broker is asked, and asked again only where that can help."""

from typing import Any

import pytest

from headrace.client.admin.admin import Admin
from headrace.client.admin.configs import ResourceType, alter_configs, describe_configs
from headrace.client.admin.group_offsets import alter_offsets, committed_offsets
from headrace.client.admin.groups import (
    delete_groups,
    describe_group,
    list_consumer_groups,
)
from headrace.client.admin.partitions import FoundOffset, delete_records, list_offsets
from headrace.client.admin.reassignments import list_reassignments
from headrace.client.admin.topics import create_topic, describe_topics
from headrace.client.exchange import Disconnected
from headrace.ids import TopicPartition
from headrace.wire.api_keys import ApiKey
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages import consumer_group_describe, describe_groups
from headrace.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from headrace.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from headrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from headrace.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headrace.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headrace.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from headrace.wire.refusal import Refusal, Refused
from tests.unit.client.scripted_cluster import ScriptedCluster

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def cluster() -> ScriptedCluster:
    return ScriptedCluster((1, 2))


@pytest.fixture
def admin(cluster: ScriptedCluster) -> Admin:
    return cluster.admin()


def created(error_code: int = 0) -> Any:
    return lambda _: CreateTopicsResponse(
        topics=[CreatableTopicResult(name="t", error_code=error_code, error_message="no room")]
    )


def test_topics_are_created_by_the_controller(cluster: ScriptedCluster, admin: Admin) -> None:
    cluster.controller_id = 2
    cluster.answers(CreateTopicsRequest, created())
    create_topic(admin, "t")
    assert cluster.brokers_asked(CreateTopicsRequest) == [2]


def test_the_new_controller_is_asked_when_it_moved(cluster: ScriptedCluster, admin: Admin) -> None:
    def moved(request: Any) -> Any:
        cluster.controller_id = 2
        return created(ErrorCode.NOT_CONTROLLER)(request)

    cluster.answers(CreateTopicsRequest, moved, created())
    create_topic(admin, "t")
    assert cluster.brokers_asked(CreateTopicsRequest) == [1, 2]


def test_a_refusal_is_not_repeated(cluster: ScriptedCluster, admin: Admin) -> None:
    cluster.answers(CreateTopicsRequest, created(ErrorCode.TOPIC_ALREADY_EXISTS))
    with pytest.raises(Refused, match="no room") as refused:
        create_topic(admin, "t")
    assert refused.value.error_code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert len(cluster.brokers_asked(CreateTopicsRequest)) == 1


def test_another_broker_is_asked_when_one_dies(cluster: ScriptedCluster, admin: Admin) -> None:
    assert set(admin.cluster().nodes) == {1, 2}
    cluster.down = {1}
    admin.metadata([])
    assert set(admin.cluster().nodes) == {2}


def test_a_broker_that_stays_away_is_told_in_the_end(cluster: ScriptedCluster) -> None:
    admin = cluster.admin(timeout_s=0.01)
    admin.cluster()
    cluster.down = {2}
    with pytest.raises(Disconnected):
        describe_configs(admin, ResourceType.BROKER, ["2"])


def offsets(error_code: int = 0) -> Any:
    return lambda request: ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, offset=7, error_code=error_code
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_each_leader_is_asked_for_its_partitions(cluster: ScriptedCluster, admin: Admin) -> None:
    cluster.leaders = {"orders": [1, 2]}
    cluster.answers(ListOffsetsRequest, offsets())
    found = list_offsets(admin, [ORDERS_0, ORDERS_1, TopicPartition("none", 0)], -1)
    assert found[ORDERS_0] == FoundOffset(offset=7, timestamp=-1, leader_epoch=-1)
    assert isinstance(found[TopicPartition("none", 0)], Refusal)
    assert sorted(cluster.brokers_asked(ListOffsetsRequest)) == [1, 2]


def test_a_leader_that_moved_is_followed(cluster: ScriptedCluster, admin: Admin) -> None:
    cluster.leaders = {"orders": [1]}

    def moved(request: Any) -> Any:
        cluster.leaders = {"orders": [2]}
        return offsets(ErrorCode.NOT_LEADER_OR_FOLLOWER)(request)

    cluster.answers(ListOffsetsRequest, moved, offsets())
    assert isinstance(list_offsets(admin, [ORDERS_0], -1)[ORDERS_0], FoundOffset)
    assert cluster.brokers_asked(ListOffsetsRequest) == [1, 2]


def test_the_new_leader_is_asked_when_the_old_one_is_gone(
    cluster: ScriptedCluster, admin: Admin
) -> None:
    cluster.leaders = {"orders": [2]}
    cluster.answers(ListOffsetsRequest, offsets())
    list_offsets(admin, [ORDERS_0], -1)
    cluster.down = {2}

    def elect() -> None:
        if cluster.time.passed_s > 2:
            cluster.leaders = {"orders": [1]}

    cluster.time.on_sleep = elect
    assert isinstance(list_offsets(admin, [ORDERS_0], -1)[ORDERS_0], FoundOffset)
    assert cluster.brokers_asked(ListOffsetsRequest) == [2, 1]
    assert cluster.time.passed_s < 3


def test_a_leader_that_stays_away_is_told_in_the_end(
    cluster: ScriptedCluster, admin: Admin
) -> None:
    cluster.leaders = {"orders": [1, 2]}
    cluster.answers(ListOffsetsRequest, offsets())
    admin.cluster()
    cluster.unreachable = {2}
    with pytest.raises(Disconnected):
        list_offsets(admin, [ORDERS_0, ORDERS_1], -1)
    assert 4 < cluster.time.passed_s < 6


def test_a_leader_that_does_not_know_its_topic_yet_is_asked_again(
    cluster: ScriptedCluster, admin: Admin
) -> None:
    cluster.leaders = {"orders": [1]}
    unknown = offsets(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    cluster.answers(ListOffsetsRequest, unknown, offsets())
    assert isinstance(list_offsets(admin, [ORDERS_0], -1)[ORDERS_0], FoundOffset)


def test_leaders_that_are_known_are_asked_without_looking_for_them(
    cluster: ScriptedCluster, admin: Admin
) -> None:
    cluster.leaders = {"orders": [1, 2]}
    cluster.answers(ListOffsetsRequest, offsets())
    for _ in range(3):
        list_offsets(admin, [ORDERS_0, ORDERS_1], -1)
    assert len(cluster.brokers_asked(MetadataRequest)) == 1


def test_a_partition_without_a_leader_is_told_in_the_end(cluster: ScriptedCluster) -> None:
    cluster.leaders = {"orders": [-1]}
    found = list_offsets(cluster.admin(timeout_s=0.01), [ORDERS_0], -1)[ORDERS_0]
    assert isinstance(found, Refusal)
    assert found.error_code is ErrorCode.LEADER_NOT_AVAILABLE


def test_errors_of_single_partitions_leave_the_others_alone(
    cluster: ScriptedCluster, admin: Admin
) -> None:
    cluster.leaders = {"orders": [1, 1]}
    cluster.answers(
        DeleteRecordsRequest,
        lambda _: DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name="orders",
                    partitions=[
                        DeleteRecordsPartitionResult(partition_index=0, low_watermark=5),
                        DeleteRecordsPartitionResult(partition_index=1, error_code=1),
                    ],
                )
            ]
        ),
    )
    results = delete_records(admin, {ORDERS_0: 5, ORDERS_1: 500})
    assert results[ORDERS_0] == 5
    assert isinstance(results[ORDERS_1], Refusal)


def coordinated(broker_id: int, error_code: int = 0) -> Any:
    return lambda _: FindCoordinatorResponse(
        coordinators=[
            Coordinator(
                key="g", node_id=broker_id, host=f"b{broker_id}", port=9092, error_code=error_code
            )
        ]
    )


def classic(state: str = "Stable", error_code: int = 0) -> Any:
    return lambda _: DescribeGroupsResponse(
        groups=[
            describe_groups.DescribedGroup(
                group_id="g",
                group_state=state,
                error_code=error_code,
                protocol_type="consumer",
                protocol_data="range",
                members=[
                    describe_groups.DescribedGroupMember(
                        member_id="m",
                        # version 0, one topic "t" with partitions 3 and 4, no user data
                        member_assignment=bytes.fromhex(
                            "0000 00000001 0001 74 00000002 00000003 00000004 ffffffff"
                        ),
                    )
                ],
            )
        ]
    )


def unknown_to_the_newer_protocol(_: Any) -> ConsumerGroupDescribeResponse:
    group = consumer_group_describe.DescribedGroup(group_id="g", error_code=69)
    return ConsumerGroupDescribeResponse(groups=[group])


def test_a_classic_group_is_described_by_its_coordinator(
    cluster: ScriptedCluster, admin: Admin
) -> None:
    cluster.answers(FindCoordinatorRequest, coordinated(2))
    cluster.answers(ConsumerGroupDescribeRequest, unknown_to_the_newer_protocol)
    cluster.answers(DescribeGroupsRequest, classic())
    group = describe_group(admin, "g")
    assert (group.group_type, group.state, group.coordinator.broker_id) == ("Classic", "Stable", 2)
    assert group.members[0].assignment == [TopicPartition("t", 3), TopicPartition("t", 4)]
    assert cluster.brokers_asked(DescribeGroupsRequest) == [2]


def test_a_loading_coordinator_is_waited_for(cluster: ScriptedCluster, admin: Admin) -> None:
    cluster.answers(
        FindCoordinatorRequest,
        coordinated(-1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        coordinated(1),
        coordinated(2),
    )
    del cluster.offered[ApiKey.CONSUMER_GROUP_DESCRIBE]
    cluster.answers(
        DescribeGroupsRequest,
        classic(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        classic(error_code=ErrorCode.NOT_COORDINATOR),
        classic(),
    )
    assert describe_group(admin, "g").coordinator.broker_id == 2


def test_the_new_coordinator_is_asked_when_the_old_one_is_gone(
    cluster: ScriptedCluster, admin: Admin
) -> None:
    admin.cluster()
    cluster.unreachable = {2}
    cluster.answers(FindCoordinatorRequest, coordinated(2), coordinated(2), coordinated(1))
    del cluster.offered[ApiKey.CONSUMER_GROUP_DESCRIBE]
    cluster.answers(DescribeGroupsRequest, classic())
    assert describe_group(admin, "g").coordinator.broker_id == 1
    assert cluster.time.passed_s < 1


def test_a_dead_group_does_not_exist(cluster: ScriptedCluster, admin: Admin) -> None:
    cluster.answers(FindCoordinatorRequest, coordinated(1))
    cluster.answers(ConsumerGroupDescribeRequest, unknown_to_the_newer_protocol)
    cluster.answers(DescribeGroupsRequest, classic(state="Dead"))
    with pytest.raises(Refused, match=r"Group g not found\."):
        describe_group(admin, "g")


def test_groups_of_all_brokers_are_listed(cluster: ScriptedCluster, admin: Admin) -> None:
    def listed(*groups: tuple[str, str, str]) -> Any:
        return lambda _: ListGroupsResponse(
            groups=[
                ListedGroup(group_id=group_id, protocol_type=protocol, group_type=kind)
                for group_id, protocol, kind in groups
            ]
        )

    cluster.answers(
        ListGroupsRequest,
        listed(("b", "consumer", "classic"), ("connect", "connect", "classic")),
        listed(("a", "consumer", "consumer"), ("c", "", "classic"), ("s", "share", "share")),
    )
    assert [group.group_id for group in list_consumer_groups(admin)] == ["a", "b", "c"]
    assert cluster.brokers_asked(ListGroupsRequest) == [1, 2]


def test_each_group_is_deleted_for_itself(cluster: ScriptedCluster, admin: Admin) -> None:
    cluster.answers(FindCoordinatorRequest, coordinated(1))
    cluster.answers(
        DeleteGroupsRequest,
        lambda request: DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=each, error_code=68 if each == "busy" else 0)
                for each in request.groups_names
            ]
        ),
    )
    results = delete_groups(admin, ["idle", "busy"])
    assert results["idle"] is None
    assert results["busy"] is not None
    assert results["busy"].error_code is ErrorCode.NON_EMPTY_GROUP


def test_offsets_travel_by_the_names_of_topics(cluster: ScriptedCluster, admin: Admin) -> None:
    cluster.answers(FindCoordinatorRequest, coordinated(1))
    cluster.answers(
        OffsetFetchRequest,
        lambda _: OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id="g",
                    topics=[
                        OffsetFetchResponseTopics(
                            name="orders",
                            partitions=[
                                OffsetFetchResponsePartitions(
                                    partition_index=0, committed_offset=3
                                ),
                                OffsetFetchResponsePartitions(
                                    partition_index=1, committed_offset=-1
                                ),
                            ],
                        )
                    ],
                )
            ]
        ),
    )
    cluster.answers(OffsetCommitRequest, lambda _: OffsetCommitResponse())
    assert {each: found.offset for each, found in committed_offsets(admin, "g").items()} == {
        ORDERS_0: 3
    }
    alter_offsets(admin, "g", {ORDERS_1: 9, ORDERS_0: 8})
    versions = {type(asked): version for _, asked, version in cluster.asked}
    assert versions[OffsetFetchRequest] == versions[OffsetCommitRequest] == 9
    [commit] = [asked for _, asked, _ in cluster.asked if isinstance(asked, OffsetCommitRequest)]
    assert [each.committed_offset for each in commit.topics[0].partitions] == [8, 9]


def test_long_topics_come_in_pages(cluster: ScriptedCluster, admin: Admin) -> None:
    def page(first: int, next_partition: int | None) -> Any:
        partitions = [
            DescribeTopicPartitionsResponsePartition(partition_index=first + n, leader_id=1)
            for n in range(2)
        ]
        cursor = None
        if next_partition is not None:
            cursor = DescribeTopicPartitionsResponseCursor(
                topic_name="t", partition_index=next_partition
            )
        topic = DescribeTopicPartitionsResponseTopic(name="t", partitions=partitions)
        return lambda _: DescribeTopicPartitionsResponse(topics=[topic], next_cursor=cursor)

    cluster.answers(DescribeTopicPartitionsRequest, page(0, 2), page(2, None))
    topic = describe_topics(admin, ["a", "t"])["t"]
    assert not isinstance(topic, Refusal)
    assert [each.partition for each in topic.partitions] == [0, 1, 2, 3]
    _, second = (
        asked for _, asked, _ in cluster.asked if isinstance(asked, DescribeTopicPartitionsRequest)
    )
    assert [each.name for each in second.topics] == ["t"]
    assert second.cursor is not None
    assert second.cursor.partition_index == 2


def test_old_brokers_describe_topics_by_metadata(cluster: ScriptedCluster, admin: Admin) -> None:
    del cluster.offered[ApiKey.DESCRIBE_TOPIC_PARTITIONS]
    del cluster.offered[ApiKey.LIST_PARTITION_REASSIGNMENTS]
    cluster.leaders = {"orders": [2, -1]}
    found = describe_topics(admin, ["orders", "none"])
    orders = found["orders"]
    assert isinstance(found["none"], Refusal)
    assert not isinstance(orders, Refusal)
    assert [each.leader_id for each in orders.partitions] == [2, None]
    assert orders.partitions[0].elr is None
    assert list_reassignments(admin) == {}
    assert not cluster.brokers_asked(ListPartitionReassignmentsRequest)


def test_a_brokers_configs_are_its_own_affair(cluster: ScriptedCluster, admin: Admin) -> None:
    cluster.answers(
        DescribeConfigsRequest,
        lambda request: DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(resource_type=4, resource_name=each.resource_name)
                for each in request.resources
            ]
        ),
    )
    cluster.answers(
        IncrementalAlterConfigsRequest,
        lambda request: IncrementalAlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(resource_name=request.resources[0].resource_name)
            ]
        ),
    )
    assert set(describe_configs(admin, ResourceType.BROKER, ["1", "2", ""])) == {"1", "2", ""}
    asked = [
        (broker, [each.resource_name for each in request.resources])
        for broker, request, _ in cluster.asked
        if isinstance(request, DescribeConfigsRequest)
    ]
    assert (1, ["1"]) in asked
    assert (2, ["2"]) in asked
    alter_configs(admin, ResourceType.BROKER, "2", add={"a": "1"}, delete=["b"])
    assert cluster.brokers_asked(IncrementalAlterConfigsRequest) == [2]
    [change] = [
        request
        for _, request, _ in cluster.asked
        if isinstance(request, IncrementalAlterConfigsRequest)
    ]
    assert [(each.name, each.config_operation) for each in change.resources[0].configs] == [
        ("b", 1),
        ("a", 0),
    ]
