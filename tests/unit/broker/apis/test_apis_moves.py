"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments: through a real controller."""

from collections.abc import Sequence

from headrace.broker.apis import (
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.unit.broker.apis.one_broker import BROKER_ID, OneBroker, on_broker

PREFERRED, UNCLEAN = 0, 1
Move = tuple[Sequence[int], Sequence[int], Sequence[int]]  # replicas, adding, removing
Outcome = dict[str, list[tuple[int, int]]]


def outcome(response: ElectLeadersResponse) -> Outcome:
    return {
        result.topic: [(one.partition_id, one.error_code) for one in result.partition_result]
        for result in response.replica_election_results
    }


async def elect(
    broker: OneBroker,
    *topics: tuple[str, Sequence[int]],
    version: int = 2,
    election_type: int = PREFERRED,
    timeout_ms: int = 1000,
) -> ElectLeadersResponse:
    asked = [TopicPartitions(topic=name, partitions=partitions) for name, partitions in topics]
    request = ElectLeadersRequest(
        election_type=election_type, topic_partitions=asked or None, timeout_ms=timeout_ms
    )
    return await broker.ask(elect_leaders, request, version)


@on_broker()
async def test_elections_that_are_not_needed_or_not_possible(broker: OneBroker) -> None:
    await broker.topic("a", 2)
    for version in range(3):
        for election_type in (PREFERRED, UNCLEAN) if version else (PREFERRED,):
            response = await elect(
                broker, ("a", (0, 7)), ("b", (0,)), version=version, election_type=election_type
            )
            assert response.error_code == 0
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert outcome(response) == {
                "a": [(0, ErrorCode.ELECTION_NOT_NEEDED), (7, unknown)],
                "b": [(0, unknown)],
            }
            texts = [
                one.error_message
                for result in response.replica_election_results
                for one in result.partition_result
            ]
            assert all(texts)


@on_broker()
async def test_an_election_of_all_mentions_topics_but_not_what_is_well(broker: OneBroker) -> None:
    await broker.topic("a", 2)
    await broker.topic("b")
    assert outcome(await elect(broker)) == {"a": [], "b": []}


@on_broker()
async def test_a_preferred_leader_out_of_sync_is_not_elected(broker: OneBroker) -> None:
    await broker.topic("a")
    await broker.join(2)
    moved = await alter(broker, ("a", [(0, [2, BROKER_ID])]))
    assert moved.error_code == 0
    # The preferred leader is 2 by now, and not in sync, because it never fetches.
    assert outcome(await elect(broker, ("a", (0,)))) == {
        "a": [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    }
    assert outcome(await elect(broker)) == {"a": [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]}


@on_broker()
async def test_unknown_types_and_no_time_fail_as_a_whole(broker: OneBroker) -> None:
    await broker.topic("a")
    unknown = await elect(broker, ("a", (0,)), election_type=7)
    assert unknown.error_code == ErrorCode.INVALID_REQUEST
    assert outcome(unknown) == {"a": [(0, ErrorCode.INVALID_REQUEST)]}
    late = await elect(broker, ("a", (0,)), timeout_ms=0)
    assert late.error_code == ErrorCode.REQUEST_TIMED_OUT


async def alter(
    broker: OneBroker,
    *topics: tuple[str, list[tuple[int, list[int] | None]]],
    version: int = 1,
    timeout_ms: int = 1000,
    allow_factor_change: bool = True,
) -> AlterPartitionReassignmentsResponse:
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=allow_factor_change,
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in partitions
                ],
            )
            for name, partitions in topics
        ],
    )
    return await broker.ask(alter_partition_reassignments, request, version)


def errors(response: AlterPartitionReassignmentsResponse) -> Outcome:
    return {
        topic.name: [(one.partition_index, one.error_code) for one in topic.partitions]
        for topic in response.responses
    }


async def moving(
    broker: OneBroker, *topics: tuple[str, Sequence[int]]
) -> dict[tuple[str, int], Move]:
    asked = [
        ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
        for name, indexes in topics
    ]
    request = ListPartitionReassignmentsRequest(topics=asked or None, timeout_ms=1000)
    response = await broker.ask(list_partition_reassignments, request, 0)
    assert (response.error_code, response.error_message) == (0, None)
    return {
        (topic.name, one.partition_index): (
            one.replicas,
            one.adding_replicas,
            one.removing_replicas,
        )
        for topic in response.topics
        for one in topic.partitions
    }


@on_broker()
async def test_a_move_begins_is_seen_and_is_taken_back(broker: OneBroker) -> None:
    await broker.topic("a", 2)
    await broker.join(2)
    assert errors(await alter(broker, ("a", [(0, [2]), (1, [BROKER_ID, 2])]))) == {
        "a": [(0, 0), (1, 0)]
    }
    first = [2, BROKER_ID], [2], [BROKER_ID]
    second: Move = [BROKER_ID, 2], [2], []
    assert await moving(broker) == {("a", 0): first, ("a", 1): second}
    assert await moving(broker, ("a", (1, 9)), ("b", (0,))) == {("a", 1): second}
    assert errors(await alter(broker, ("a", [(0, None), (1, None)]))) == {"a": [(0, 0), (1, 0)]}
    assert await moving(broker) == {}
    assert errors(await alter(broker, ("a", [(0, None)]))) == {
        "a": [(0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)]
    }


@on_broker()
async def test_moves_that_cannot_be(broker: OneBroker) -> None:
    await broker.topic("a")
    await broker.join(2)
    response = await alter(
        broker, ("a", [(0, [9]), (5, [1])]), ("b", [(0, [1])]), allow_factor_change=False
    )
    assert response.error_code == 0
    assert response.allow_replication_factor_change is False
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(response) == {
        "a": [(0, ErrorCode.INVALID_REPLICA_ASSIGNMENT), (5, unknown)],
        "b": [(0, unknown)],
    }
    grown = await alter(broker, ("a", [(0, [1, 2])]), allow_factor_change=False)
    assert errors(grown) == {"a": [(0, ErrorCode.INVALID_REPLICATION_FACTOR)]}
    assert await moving(broker) == {}


@on_broker()
async def test_a_move_without_time_fails_as_a_whole(broker: OneBroker) -> None:
    await broker.topic("a")
    response = await alter(broker, ("a", [(0, [1])]), timeout_ms=0)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert errors(response) == {"a": [(0, ErrorCode.REQUEST_TIMED_OUT)]}


@on_broker()
async def test_looking_at_moves_needs_no_time_out(broker: OneBroker) -> None:
    """kafka-go sends 0."""
    for timeout_ms in (0, -5):
        request = ListPartitionReassignmentsRequest(topics=None, timeout_ms=timeout_ms)
        listed = await broker.ask(list_partition_reassignments, request, 0)
        assert listed.error_code == ErrorCode.NONE
