"""Consumer groups: which there are, their members and state, deleting them. Each is asked at its coordinator."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headrace.client.admin.admin import Admin
from headrace.client.brokers import Address
from headrace.client.cluster_metadata import Node
from headrace.client.exchange import R, VersionNotOffered
from headrace.errors import MalformedMessage
from headrace.ids import TopicPartition
from headrace.wire.codec import decode
from headrace.wire.error_code import ErrorCode
from headrace.wire.message import Request
from headrace.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from headrace.wire.messages.consumer_group_describe import DescribedGroup as ConsumerGroup
from headrace.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from headrace.wire.messages.describe_groups import DescribedGroup as ClassicGroup
from headrace.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.refusal import Refusal, Refused, require

T = TypeVar("T")

GROUP_KEY = 0
TRANSACTION_KEY = 1
CONSUMER_PROTOCOL = "consumer"
CLASSIC = "Classic"
CONSUMER = "Consumer"
DEAD = "Dead"
_UPGRADED = {0: False, 1: True}  # member type: classic protocol, consumer protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group that exists."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """A member; what only the consumer protocol knows is None under the classic one."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: Sequence[TopicPartition]
    target_assignment: Sequence[TopicPartition] | None = None
    member_epoch: int | None = None
    upgraded: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group at its coordinator."""

    group_id: str
    group_type: str
    state: str
    coordinator: Node
    assignor: str
    members: Sequence[MemberDescription]
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None


def find_coordinator(admin: Admin, group_id: str) -> Node:
    """The broker that coordinates a group. Raises Refused."""
    return admin.settle(lambda: _find_coordinator_once(admin, group_id))


def _find_coordinator_once(admin: Admin, key: str, key_type: int = GROUP_KEY) -> Node:
    request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
    answer = admin.ask_any_once(request)
    found = answer.coordinators[0] if answer.coordinators else answer
    require(found.error_code, found.error_message)
    return Node(broker_id=found.node_id, address=Address(found.host, found.port), rack=None)


def ask_coordinator(
    admin: Admin,
    key: str,
    request: Request[R],
    read: Callable[[R, Node], T],
    *,
    at_most: int | None = None,
    key_type: int = GROUP_KEY,
) -> T:
    """Ask the coordinator of a group or a transactional id; `read` turns the answer into the result or raises Refused.

    Asked again if the coordinator moved.
    """

    def attempt() -> T:
        coordinator = _find_coordinator_once(admin, key, key_type)
        answer = admin.ask_once(coordinator.broker_id, request, at_most=at_most)
        return read(answer, coordinator)

    return admin.settle(attempt)


def list_groups(
    admin: Admin, *, states: Sequence[str] = (), types: Sequence[str] = ()
) -> list[GroupListing]:
    """Every group of every broker, by id."""
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    found: dict[str, GroupListing] = {}
    for broker_id in admin.cluster().nodes:

        def attempt(broker_id: int = broker_id) -> None:
            answer = admin.ask_once(broker_id, request)
            require(answer.error_code)
            for each in answer.groups:
                found[each.group_id] = GroupListing(
                    group_id=each.group_id,
                    protocol_type=each.protocol_type,
                    state=each.group_state,
                    group_type=each.group_type.capitalize(),
                )

        admin.settle(attempt)
    return sorted(found.values(), key=lambda group: group.group_id)


def list_consumer_groups(
    admin: Admin, *, states: Sequence[str] = (), types: Sequence[str] = ()
) -> list[GroupListing]:
    """The groups that consumers make: those of the consumer protocol, and classic ones of consumers or of nobody."""
    return [
        group
        for group in list_groups(admin, states=states, types=types)
        if group.group_type == CONSUMER
        or (group.group_type in (CLASSIC, "") and group.protocol_type in (CONSUMER_PROTOCOL, ""))
    ]


def describe_group(admin: Admin, group_id: str) -> GroupDescription:
    """A group, whichever protocol it speaks. Raises Refused where there is none."""
    try:
        return _describe_consumer(admin, group_id)
    except VersionNotOffered:
        pass
    except Refused as refused:
        # This is also what a coordinator answers for a group of the other protocol.
        if refused.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            raise
    return _describe_classic(admin, group_id)


def _describe_consumer(admin: Admin, group_id: str) -> GroupDescription:
    def read(answer: ConsumerGroupDescribeResponse, coordinator: Node) -> GroupDescription:
        [group] = answer.groups
        return _consumer_group(group, coordinator)

    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    return ask_coordinator(admin, group_id, request, read)


def _consumer_group(group: ConsumerGroup, coordinator: Node) -> GroupDescription:
    require(group.error_code, group.error_message)
    return GroupDescription(
        group_id=group.group_id,
        group_type=CONSUMER,
        state=group.group_state,
        coordinator=coordinator,
        assignor=group.assignor_name,
        members=[
            MemberDescription(
                member_id=each.member_id,
                instance_id=each.instance_id,
                client_id=each.client_id,
                host=each.client_host,
                assignment=_partitions_of(each.assignment),
                target_assignment=_partitions_of(each.target_assignment),
                member_epoch=each.member_epoch,
                upgraded=_UPGRADED.get(each.member_type),
            )
            for each in group.members
        ],
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.assignment_epoch,
    )


def _partitions_of(assignment: Assignment | None) -> list[TopicPartition]:
    if assignment is None:
        return []
    return [
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    ]


def _describe_classic(admin: Admin, group_id: str) -> GroupDescription:
    def read(answer: DescribeGroupsResponse, coordinator: Node) -> GroupDescription:
        [group] = answer.groups
        return _classic_group(group, coordinator)

    return ask_coordinator(admin, group_id, DescribeGroupsRequest(groups=[group_id]), read)


def _classic_group(group: ClassicGroup, coordinator: Node) -> GroupDescription:
    require(group.error_code, group.error_message)
    if group.group_state == DEAD:  # how brokers before 3.9 say that there is no such group
        require(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} not found.")
    is_consumer = group.protocol_type == CONSUMER_PROTOCOL
    return GroupDescription(
        group_id=group.group_id,
        group_type=CLASSIC,
        state=group.group_state,
        coordinator=coordinator,
        assignor=group.protocol_data,
        members=[
            MemberDescription(
                member_id=each.member_id,
                instance_id=each.group_instance_id,
                client_id=each.client_id,
                host=each.client_host,
                assignment=_decoded_assignment(each.member_assignment) if is_consumer else [],
            )
            for each in group.members
        ],
    )


def _decoded_assignment(blob: bytes) -> list[TopicPartition]:
    """What a classic consumer was assigned. Its leader wrote it, so it may be anything."""
    if len(blob) < 2:
        return []
    version = min(int.from_bytes(blob[:2], signed=True), ConsumerProtocolAssignment.VERSIONS[1])
    try:
        assignment = decode(ConsumerProtocolAssignment, max(version, 0), blob, 2)
    except MalformedMessage:
        return []
    return [
        TopicPartition(topic.topic, number)
        for topic in assignment.assigned_partitions
        for number in topic.partitions
    ]


def delete_groups(admin: Admin, group_ids: Iterable[str]) -> dict[str, Refusal | None]:
    """Delete groups; what was refused, by id."""
    results: dict[str, Refusal | None] = {}
    for group_id in group_ids:
        try:
            _delete_group(admin, group_id)
        except Refused as refused:
            results[group_id] = refused.refusal
        else:
            results[group_id] = None
    return results


def _delete_group(admin: Admin, group_id: str) -> None:
    def read(answer: DeleteGroupsResponse, _coordinator: Node) -> None:
        for each in answer.results:
            require(each.error_code)

    ask_coordinator(admin, group_id, DeleteGroupsRequest(groups_names=[group_id]), read)
