"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and what is told of groups."""

from concurrent.futures import Future
from dataclasses import dataclass

from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.differential.plain import Plain
from tests.differential.requests import versions
from tests.differential.script import Script

MEMBER_ID_REQUIRED = 79


def _join(
    group: str,
    member_id: str = "",
    *,
    instance: str | None = None,
    protocols: tuple[str, ...] = ("range",),
    protocol_type: str = "consumer",
    session_ms: int = 10_000,
    metadata: bytes = b"meta",
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols],
    )


def _sync(
    group: str,
    generation: int,
    member_id: str,
    *members: str,
    instance: str | None = None,
    protocol: str | None = "range",
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=member, assignment=b"to " + b"%d" % number)
            for number, member in enumerate(members)
        ],
    )


def _beat(
    group: str, generation: int, member_id: str, instance: str | None = None
) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    member_id: str
    generation: int


def _alone(script: Script, group: str, version: int = 5) -> _Member:
    """A group with one member that has its assignment."""
    answer = script.ask(_join(group), version)
    if answer.error_code == MEMBER_ID_REQUIRED:
        answer = script.ask(_join(group, answer.member_id), version)
    member = _Member(member_id=answer.member_id, generation=answer.generation_id)
    sync_version = min(version, 5)
    script.ask(_sync(group, member.generation, member.member_id, member.member_id), sync_version)
    return member


def one_member_lives_in_every_version(script: Script) -> None:
    for version in versions(JoinGroupRequest):
        group = script.group(f"v{version}")
        member = _alone(script, group, version)
        script.ask(_beat(group, member.generation, member.member_id), min(version, 4))
        leave_version = min(version, 5)
        leave = LeaveGroupRequest(
            group_id=group,
            member_id=member.member_id,
            members=[MemberIdentity(member_id=member.member_id)],
        )
        script.ask(leave, leave_version)
        script.ask(_beat(group, member.generation, member.member_id), min(version, 4))


def bad_joins_are_refused(script: Script) -> None:
    group = script.group("g")
    for version in (0, 4, 5, 7, 9):
        script.ask(_join(group, "never-seen"), version)
        script.ask(_join(group, session_ms=1), version)
        script.ask(_join(group, session_ms=2**31 - 1), version)
        script.ask(_join("", session_ms=10_000), version)
        script.ask(_join(group, protocols=()), version)
        script.ask(_join(group, protocol_type=""), version)


def a_member_must_share_a_protocol(script: Script) -> None:
    group = script.group("g")
    _alone(script, group)
    for version in (3, 5, 7):
        script.ask(_join(group, protocols=("other",)), version, on="second")
        script.ask(_join(group, protocol_type="connect"), version, on="second")


def bad_syncs_and_heartbeats_are_refused(script: Script) -> None:
    group = script.group("g")
    member = _alone(script, group)
    generation, member_id = member.generation, member.member_id
    for version in versions(SyncGroupRequest):
        script.ask(_sync(group, generation + 1, member_id), version)
        script.ask(_sync(group, generation, "never-seen"), version)
        script.ask(_sync(script.name("no-group"), generation, member_id), version)
        script.ask(_sync(group, generation, member_id), version)
    script.ask(_sync(group, generation, member_id, protocol="other"), 5)
    script.ask(_sync(group, generation, member_id, protocol=None), 5)
    for version in versions(HeartbeatRequest):
        script.ask(_beat(group, generation, member_id), version)
        script.ask(_beat(group, generation + 1, member_id), version)
        script.ask(_beat(group, generation - 1, member_id), version)
        script.ask(_beat(group, generation, "never-seen"), version)
        script.ask(_beat(script.name("no-group"), generation, member_id), version)
        script.ask(_beat("", generation, member_id), version)


def leaving_is_answered_per_member(script: Script) -> None:
    group = script.group("g")
    member = _alone(script, group)
    for version in versions(LeaveGroupRequest):
        for group_id in (group, script.name("no-group")):
            stranger = MemberIdentity(member_id="never-seen")
            request = LeaveGroupRequest(
                group_id=group_id, member_id="never-seen", members=[stranger]
            )
            script.ask(request, version)
    both = [MemberIdentity(member_id=member.member_id), MemberIdentity(member_id="never-seen")]
    script.ask(LeaveGroupRequest(group_id=group, members=both), 4)
    script.ask(LeaveGroupRequest(group_id=group, members=()), 4)


def _begin_join(script: Script, group: str, member_id: str, on: str) -> Future[JoinGroupResponse]:
    return script.begin(_join(group, member_id), 5, on=on)


def _second_member(script: Script, group: str, first: _Member) -> tuple[_Member, _Member]:
    """Bring a second member into a group of one; both have joined the next generation."""
    required = script.ask(_join(group), 5, on="second")
    joining = _begin_join(script, group, required.member_id, "second")
    script.wait_for(
        _beat(group, first.generation, first.member_id), 4, lambda a: a.error_code == 27
    )
    script.ask(_beat(group, first.generation, first.member_id), 4)
    leader = script.ask(_join(group, first.member_id), 5)
    follower = script.end(_join(group), 5, joining)
    return (
        _Member(member_id=leader.member_id, generation=leader.generation_id),
        _Member(member_id=follower.member_id, generation=follower.generation_id),
    )


def a_second_member_makes_a_new_generation(script: Script) -> None:
    group = script.group("g")
    leader, follower = _second_member(script, group, _alone(script, group))
    waiting_sync = _sync(group, follower.generation, follower.member_id)
    waiting: Future[SyncGroupResponse] = script.begin(waiting_sync, 5, on="second")
    members = sorted((leader.member_id, follower.member_id))
    ordered = (leader.member_id, follower.member_id)
    assert sorted(ordered) == members
    script.ask(_sync(group, leader.generation, leader.member_id, *ordered), 5)
    script.end(waiting_sync, 5, waiting)
    script.ask(_beat(group, leader.generation, leader.member_id), 4)
    script.ask(_beat(group, follower.generation, follower.member_id), 4, on="second")
    # A follower that joins again with the same metadata changes nothing; the leader starts a new round.
    script.ask(_join(group, follower.member_id), 5, on="second")
    script.ask(_beat(group, leader.generation, leader.member_id), 4)


def a_member_that_leaves_starts_a_rebalance(script: Script) -> None:
    group = script.group("g")
    leader, follower = _second_member(script, group, _alone(script, group))
    waiting_sync = _sync(group, follower.generation, follower.member_id)
    waiting: Future[SyncGroupResponse] = script.begin(waiting_sync, 5, on="second")
    script.ask(
        _sync(group, leader.generation, leader.member_id, leader.member_id, follower.member_id), 5
    )
    script.end(waiting_sync, 5, waiting)
    gone = [MemberIdentity(member_id=follower.member_id)]
    script.ask(LeaveGroupRequest(group_id=group, members=gone), 5, on="second")
    script.ask(_beat(group, leader.generation, leader.member_id), 4)
    script.ask(_join(group, leader.member_id), 5)


def static_members_come_back(script: Script) -> None:
    for version in (5, 7, 9):
        group = script.group(f"v{version}")
        first = script.ask(_join(group, instance="one"), version)
        generation, member_id = first.generation_id, first.member_id
        sync_version = min(version, 5)
        script.ask(_sync(group, generation, member_id, member_id, instance="one"), sync_version)
        back = script.ask(_join(group, instance="one"), version, on="second")
        script.ask(_beat(group, generation, member_id, "one"), 4)
        script.ask(_beat(group, back.generation_id, back.member_id, "one"), 4, on="second")
        script.ask(_sync(group, back.generation_id, back.member_id, instance="one"), 5, on="second")
        script.ask(_join(group, "never-seen", instance="two"), version)
        leaving = [MemberIdentity(member_id="", group_instance_id="one")]
        script.ask(LeaveGroupRequest(group_id=group, members=leaving), 4)


def groups_are_described_in_every_state(script: Script) -> None:
    group, missing = script.group("g"), script.name("missing")

    def describe() -> None:
        for version in versions(DescribeGroupsRequest):
            request = DescribeGroupsRequest(groups=[group, missing])
            script.ask(request, version)

    describe()
    member = _alone(script, group)
    describe()
    script.ask(DescribeGroupsRequest(groups=[group], include_authorized_operations=True), 5)
    gone = [MemberIdentity(member_id=member.member_id)]
    script.ask(LeaveGroupRequest(group_id=group, members=gone), 4)
    describe()


def groups_are_listed(script: Script) -> None:
    group = script.group("listed")

    def mine(answer: Plain) -> list[Plain]:
        return [found for found in answer["groups"] if found["group_id"] == "listed"]

    _alone(script, group)
    for version in versions(ListGroupsRequest):
        script.ask(ListGroupsRequest(), version, pick=mine)
    for states in (["Stable"], ["Empty"], ["stable"], ["Nonsense"]):
        for version in (4, 5):
            script.ask(ListGroupsRequest(states_filter=states), version, pick=mine)
    for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"]):
        script.ask(ListGroupsRequest(types_filter=types), 5, pick=mine)


def groups_are_deleted_when_empty(script: Script) -> None:
    for version in versions(DeleteGroupsRequest):
        group = script.group(f"v{version}")
        member = _alone(script, group)
        request = DeleteGroupsRequest(groups_names=[group, script.name("missing")])
        script.ask(request, version)
        gone = [MemberIdentity(member_id=member.member_id)]
        script.ask(LeaveGroupRequest(group_id=group, members=gone), 4)
        script.ask(request, version)
        script.ask(request, version)
