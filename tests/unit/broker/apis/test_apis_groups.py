"""FindCoordinator and the group APIs: what they add to the coordinator, which has its own tests."""

import asyncio
from uuid import UUID

import pytest

from headrace.broker.apis import (
    delete_groups,
    delete_topics,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from headrace.broker.requests import array_answer
from headrace.controller.changes import ChangeBatch, PartitionChanged
from headrace.controller.values import ConfigKind, PartitionState
from headrace.coordinator.partitioning import coordinator_partition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.delete_topics import DeleteTopicsRequest
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.unit.broker.apis.one_broker import BROKER_ID, OneBroker, connection_to, on_broker

OFFSETS = "__consumer_offsets"


async def with_coordinator(broker: OneBroker) -> None:
    """The first look for a coordinator makes one; its shards load by themselves."""
    request = FindCoordinatorRequest(key="g")
    assert (await broker.ask(find_coordinator, request, 3)).error_code == 0
    for _ in range(100):
        if broker.group_runtime.loading_partitions:
            await asyncio.sleep(0)
    assert not broker.group_runtime.loading_partitions


# ---- FindCoordinator


@on_broker()
async def test_the_first_look_brings_the_offsets_topic_into_being(broker: OneBroker) -> None:
    answer = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 3)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 1, "dialled", 9092)
    topic = broker.cluster.state.topics[OFFSETS]
    assert len(topic.partitions) == 3
    # The default of three replicas is not insisted on.
    assert topic.partitions[0].replicas == (BROKER_ID,)
    assert broker.cluster.state.config(ConfigKind.TOPIC, OFFSETS) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


@on_broker(offsets_topic_replication_factor="3")
async def test_a_replication_factor_that_was_asked_for_is_insisted_on(broker: OneBroker) -> None:
    answer = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 3)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (15, -1, "", -1)
    assert answer.error_message
    asked = FindCoordinatorRequest(coordinator_keys=["g"])
    (one,) = (await broker.ask(find_coordinator, asked, 4)).coordinators
    assert (one.key, one.error_code, one.node_id, one.host, one.port) == ("g", 15, -1, "", -1)


@on_broker()
async def test_one_key_or_several_according_to_the_version(broker: OneBroker) -> None:
    request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "h", "g"])
    for version in range(7):
        answer = await broker.ask(find_coordinator, request, version)
        if version < 4:
            assert (answer.error_code, answer.node_id) == (0, BROKER_ID)
            assert answer.error_message == ("NONE" if version >= 1 else "")
        else:
            assert [(one.key, one.error_code, one.node_id) for one in answer.coordinators] == [
                (key, 0, BROKER_ID) for key in ("g", "h", "g")
            ]


@on_broker()
async def test_a_coordinator_without_a_leader_is_not_available(broker: OneBroker) -> None:
    await with_coordinator(broker)
    index = coordinator_partition("g", len(broker.cluster.state.topics[OFFSETS].partitions))
    leaderless = PartitionState((BROKER_ID,), (BROKER_ID,), -1, 1, partition_epoch=1)
    broker.cluster.apply(ChangeBatch(1, 0, (PartitionChanged(OFFSETS, index, leaderless),)))
    answer = await broker.ask(find_coordinator, FindCoordinatorRequest(key="g"), 3)
    assert (answer.error_code, answer.node_id) == (15, -1)


@on_broker()
async def test_coordinators_of_another_listener_are_not_told(broker: OneBroker) -> None:
    await with_coordinator(broker)
    broker.cluster.state.brokers.pop(BROKER_ID)
    request = FindCoordinatorRequest(key="g")
    answer = await broker.ask(find_coordinator, request, 3, connection=connection_to("OTHER"))
    assert answer.error_code == 15


@on_broker()
async def test_what_is_not_offered_is_said_clearly(broker: OneBroker) -> None:
    for key_type, word in ((2, "Share groups"), (9, "9")):
        request = FindCoordinatorRequest(key="t", key_type=key_type, coordinator_keys=["t"])
        old = await broker.ask(find_coordinator, request, 2)
        (new,) = (await broker.ask(find_coordinator, request, 6)).coordinators
        assert old.error_code == new.error_code == 42
        assert word in (old.error_message or "")
        assert word in (new.error_message or "")
    assert OFFSETS not in broker.cluster.state.topics


@on_broker()
async def test_a_transactional_id_has_its_coordinator(broker: OneBroker) -> None:
    request = FindCoordinatorRequest(key="t", key_type=1, coordinator_keys=["t"])
    for version in (2, 6):
        answer = await broker.ask(find_coordinator, request, version)
        (found,) = answer.coordinators or (answer,)
        assert (found.error_code, found.node_id) == (0, 1)
    assert len(broker.cluster.state.topics["__transaction_state"].partitions) == 3


# ---- members


async def joined(broker: OneBroker, group: str = "g") -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )
    return await broker.ask(join_group, request, 3)


@on_broker()
async def test_a_member_comes_works_and_goes(broker: OneBroker) -> None:
    await with_coordinator(broker)
    member = await joined(broker)
    assert (member.error_code, member.generation_id, member.protocol_name) == (0, 1, "range")
    assert member.member_id.startswith("client-")
    share = SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"all")
    sync = SyncGroupRequest(
        group_id="g", generation_id=1, member_id=member.member_id, assignments=[share]
    )
    synced = await broker.ask(sync_group, sync, 3)
    assert (synced.error_code, synced.assignment) == (0, b"all")
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member.member_id)
    assert (await broker.ask(heartbeat, beat, 4)).error_code == 0
    asked = DescribeGroupsRequest(groups=["g", "none"], include_authorized_operations=True)
    stable, dead = (await broker.ask(describe_groups, asked, 5)).groups
    assert (stable.group_state, stable.authorized_operations) == ("Stable", 3400)
    assert stable.members[0].client_host == "/10.0.0.9"
    assert stable.members[0].client_id == "client"
    assert (dead.group_state, dead.error_code) == ("Dead", 0)
    plain = DescribeGroupsRequest(groups=["g"])
    assert (await broker.ask(describe_groups, plain, 5)).groups[0].authorized_operations == -(2**31)
    leave = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member.member_id)])
    assert (await broker.ask(leave_group, leave, 5)).error_code == 0
    gone = (await broker.ask(delete_groups, DeleteGroupsRequest(groups_names=["g"]), 2)).results
    assert [(result.group_id, result.error_code) for result in gone] == [("g", 0)]


@on_broker()
async def test_who_is_not_the_coordinator_says_so(broker: OneBroker) -> None:
    assert (await joined(broker)).error_code == 16
    asked = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    (refused,) = (await broker.ask(describe_groups, asked, 6)).groups
    assert (refused.error_code, refused.authorized_operations) == (16, -(2**31))
    assert (await broker.ask(list_groups, ListGroupsRequest(), 5)).groups == []


# ---- offsets


def commit(*topics: tuple[str | UUID, list[int]], group: str = "g") -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, UUID) else UUID(int=0),
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=5)
                    for index in indexes
                ],
            )
            for topic, indexes in topics
        ],
    )


def errors(response: OffsetCommitResponse) -> dict[object, dict[int, int]]:
    assert len({(topic.name, topic.topic_id) for topic in response.topics}) == len(response.topics)
    return {
        topic.name or topic.topic_id: {
            partition.partition_index: partition.error_code for partition in topic.partitions
        }
        for topic in response.topics
    }


@on_broker()
async def test_offsets_are_committed_for_partitions_that_exist(broker: OneBroker) -> None:
    await with_coordinator(broker)
    await broker.topic("a", 2)
    for version in range(2, 10):
        response = await broker.ask(
            offset_commit, commit(("a", [0, 99, -1]), ("zz", [0]), ("a", [1])), version
        )
        assert errors(response) == {"a": {0: 0, 1: 0, 99: 3, -1: 3}, "zz": {0: 3}}


@on_broker()
async def test_offsets_are_committed_by_topic_id(broker: OneBroker) -> None:
    await with_coordinator(broker)
    topic_id, unknown = await broker.topic("a"), UUID(int=9)
    response = await broker.ask(offset_commit, commit((topic_id, [0, 99]), (unknown, [0])), 10)
    assert errors(response) == {topic_id: {0: 0, 99: 3}, unknown: {0: 100}}


@on_broker()
async def test_a_commit_of_nothing_that_exists_needs_no_coordinator(broker: OneBroker) -> None:
    response = await broker.ask(offset_commit, commit(("zz", [0])), 9)
    assert errors(response) == {"zz": {0: 3}}
    assert (await broker.ask(offset_commit, commit(), 9)).topics == []
    await broker.topic("a")
    response = await broker.ask(offset_commit, commit(("a", [0, 7])), 9)
    assert errors(response) == {"a": {0: 16, 7: 3}}


@on_broker()
async def test_offsets_are_fetched_by_name(broker: OneBroker) -> None:
    await with_coordinator(broker)
    await broker.topic("a", 2)
    await broker.ask(offset_commit, commit(("a", [0])), 9)
    asked = OffsetFetchRequest(
        group_id="g", topics=[OffsetFetchRequestTopic(name="a", partition_indexes=[0, 1])]
    )
    for version in range(1, 8):
        (topic,) = (await broker.ask(offset_fetch, asked, version)).topics
        assert [(p.committed_offset, p.error_code) for p in topic.partitions] == [(5, 0), (-1, 0)]
    grouped = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    for version in (8, 9):
        (group,) = (await broker.ask(offset_fetch, grouped, version)).groups
        assert [topic.name for topic in group.topics] == ["a"]


@on_broker()
async def test_offsets_of_a_partition_that_is_named_twice_are_told_once(broker: OneBroker) -> None:
    await with_coordinator(broker)
    await broker.topic("a", 2)
    await broker.ask(offset_commit, commit(("a", [0])), 9)
    old = OffsetFetchRequestTopic(name="a", partition_indexes=[0, 1, 0])
    asked = OffsetFetchRequest(group_id="g", topics=[old, old])
    (topic,) = (await broker.ask(offset_fetch, asked, 7)).topics
    assert [each.partition_index for each in topic.partitions] == [0, 1]
    new = OffsetFetchRequestTopics(name="a", partition_indexes=[0, 1, 0])
    group = OffsetFetchRequestGroup(group_id="g", topics=[new, new])
    (answer,) = (await broker.ask(offset_fetch, OffsetFetchRequest(groups=[group]), 9)).groups
    (found,) = answer.topics
    assert [each.partition_index for each in found.partitions] == [0, 1]


def test_what_makes_an_answer_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_answer, "MAX_ITEM_BYTES", 150)

    @on_broker()
    async def story(broker: OneBroker) -> None:
        await with_coordinator(broker)
        described = await broker.ask(describe_groups, DescribeGroupsRequest(groups=["g"] * 9), 6)
        codes = [group.error_code for group in described.groups]
        assert codes == sorted(codes, reverse=True)
        assert codes[0] == ErrorCode.GROUP_ID_NOT_FOUND
        assert codes[-1] == ErrorCode.INVALID_REQUEST
        assert "Ask for less" in (described.groups[-1].error_message or "")
        group = OffsetFetchRequestGroup(group_id="g", topics=None)
        found = await broker.ask(offset_fetch, OffsetFetchRequest(groups=[group] * 50), 9)
        codes = [group.error_code for group in found.groups]
        assert codes == sorted(codes)
        assert (codes[0], codes[-1]) == (ErrorCode.NONE, ErrorCode.INVALID_REQUEST)

    story()


@on_broker()
async def test_offsets_are_fetched_by_topic_id(broker: OneBroker) -> None:
    await with_coordinator(broker)
    topic_id, unknown = await broker.topic("a"), UUID(int=9)
    await broker.ask(offset_commit, commit(("a", [0])), 9)
    asked = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id="g",
                topics=[
                    OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]),
                    OffsetFetchRequestTopics(topic_id=unknown, partition_indexes=[0, 3]),
                ],
            ),
            OffsetFetchRequestGroup(group_id="g", topics=None),
        ]
    )
    some, everything = (await broker.ask(offset_fetch, asked, 10)).groups
    assert [
        (topic.topic_id, [(p.committed_offset, p.error_code) for p in topic.partitions])
        for topic in some.topics
    ] == [(topic_id, [(5, 0)]), (unknown, [(-1, 100), (-1, 100)])]
    assert [topic.topic_id for topic in everything.topics] == [topic_id]


@on_broker()
async def test_a_group_that_is_not_here_has_an_error_and_no_topics(broker: OneBroker) -> None:
    topics = [OffsetFetchRequestTopics(topic_id=UUID(int=9), partition_indexes=[0])]
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    (group,) = (await broker.ask(offset_fetch, asked, 10)).groups
    assert (group.error_code, group.topics) == (16, [])


def forget(*topics: tuple[str, list[int]], group: str = "g") -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
            )
            for name, indexes in topics
        ],
    )


@on_broker()
async def test_offsets_are_deleted_for_partitions_that_exist(broker: OneBroker) -> None:
    await with_coordinator(broker)
    await broker.topic("a", 2)
    await broker.ask(offset_commit, commit(("a", [0, 1])), 9)
    response = await broker.ask(offset_delete, forget(("a", [1, 99]), ("zz", [0])), 0)
    assert response.error_code == 0
    assert {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    } == {("a", 1): 0, ("a", 99): 3, ("zz", 0): 3}
    asked = OffsetFetchRequest(group_id="g", topics=None)
    (topic,) = (await broker.ask(offset_fetch, asked, 7)).topics
    assert [partition.partition_index for partition in topic.partitions] == [0]


@on_broker()
async def test_a_topic_has_no_positions_of_a_deleted_one_with_its_name(broker: OneBroker) -> None:
    """The offsets of a deleted topic are dropped later than its name is free again; here: never."""
    await with_coordinator(broker)
    await broker.topic("a")
    await broker.ask(offset_commit, commit(("a", [0])), 9)
    deletion = DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000)
    assert (await broker.ask(delete_topics, deletion, 5)).responses[0].error_code == 0
    await broker.topic("a")
    named = [OffsetFetchRequestTopic(name="a", partition_indexes=[0])]
    for version in range(1, 8):
        asked = OffsetFetchRequest(group_id="g", topics=named)
        (topic,) = (await broker.ask(offset_fetch, asked, version)).topics
        assert topic.partitions[0].committed_offset == -1
    groups = [
        OffsetFetchRequestGroup(
            group_id="g", topics=[OffsetFetchRequestTopics(name="a", partition_indexes=[0])]
        ),
        OffsetFetchRequestGroup(group_id="g", topics=None),
    ]
    for version in (8, 9):
        response = await broker.ask(offset_fetch, OffsetFetchRequest(groups=groups), version)
        by_name, everything = response.groups
        assert by_name.topics[0].partitions[0].committed_offset == -1
        assert everything.topics == []
    await broker.ask(offset_commit, commit(("a", [0])), 9)
    asked = OffsetFetchRequest(group_id="g", topics=None)
    (topic,) = (await broker.ask(offset_fetch, asked, 7)).topics
    assert topic.partitions[0].committed_offset == 5


@on_broker()
async def test_a_missing_group_is_said_before_missing_topics(broker: OneBroker) -> None:
    await with_coordinator(broker)
    for group, error in (("none", 69), ("", 24)):
        response = await broker.ask(offset_delete, forget(("zz", [0]), group=group), 0)
        assert (response.error_code, response.topics) == (error, [])
