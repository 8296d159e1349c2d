"""Heartbeats, leaving, sessions that run out."""

import re
from pathlib import Path

import pytest

from headrace.coordinator.group.state import LEGAL_PREDECESSORS, GroupState, IllegalTransition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.leave_group import MemberIdentity
from tests.unit.coordinator.group.group_story import DELAY_MS, SESSION_MS, Story

# -- heartbeats ----------------------------------------------------------------------------------


def test_heartbeats_keep_a_member_alive_and_silence_ends_it() -> None:
    story = Story()
    (member,) = story.stable_group()
    for _ in range(10):
        story.sleep(SESSION_MS - 1)
        assert story.heartbeat(member, 1) == ErrorCode.NONE
    story.sleep(SESSION_MS)
    assert story.heartbeat(member, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert story.group().state is GroupState.EMPTY


def test_heartbeat_refusals() -> None:
    story = Story()
    (member,) = story.stable_group()
    assert story.heartbeat(member, 0) == ErrorCode.ILLEGAL_GENERATION
    assert story.heartbeat("ghost", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert story.heartbeat(member, 1, group_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert story.heartbeat(member, 1, group_id="") == ErrorCode.INVALID_GROUP_ID


def test_a_heartbeat_while_the_leader_assigns_is_fine() -> None:
    story = Story()
    token = story.send_join(version=3)
    story.sleep(DELAY_MS)
    assert story.heartbeat(story.joined(token).member_id, 1) == ErrorCode.NONE


def test_a_follower_that_falls_silent_costs_a_round() -> None:
    story = Story()
    leader, _silent = story.stable_group(2)
    story.sleep(5_000)
    story.heartbeat(leader, 1)
    story.sleep(5_000)
    assert story.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = story.joined(story.send_join(leader))
    assert [member.member_id for member in answer.members] == [leader]


def test_a_leader_that_falls_silent_is_replaced() -> None:
    story = Story()
    _silent, follower = story.stable_group(2)
    story.sleep(5_000)
    story.heartbeat(follower, 1)
    story.sleep(5_000)
    assert story.joined(story.send_join(follower)).leader == follower


def test_a_member_that_waits_for_a_round_outlives_its_session_timeout() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    parked = story.send_join(leader)
    for _ in range(4):
        story.sleep(5_000)
        story.heartbeat(follower, 1)
    assert parked not in story.answers
    story.send_join(follower)
    assert story.joined(parked).generation_id == 2


def test_once_a_round_has_ended_even_a_new_member_has_only_its_session() -> None:
    story = Story()
    token = story.send_join(version=3)
    story.sleep(DELAY_MS)
    assert story.joined(token).generation_id == 1
    story.sleep(SESSION_MS - 1)
    assert story.group().members
    story.sleep(1)
    assert story.group().state is GroupState.EMPTY


def test_a_member_that_was_parked_beyond_its_session_is_watched_again_after_the_round() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    parked = story.send_join(leader)
    for _ in range(4):
        story.sleep(5_000)
        story.heartbeat(follower, 1)
    story.send_join(follower)
    assert story.joined(parked).generation_id == 2
    story.sleep(SESSION_MS)
    assert story.group().state is GroupState.EMPTY


def test_the_emptied_generation_is_on_record() -> None:
    story = Story()
    story.stable_group()
    story.sleep(SESSION_MS)
    (record,) = story.group_records
    assert record.metadata is not None
    assert (record.metadata.generation_id, record.metadata.members) == (2, ())
    assert (record.metadata.protocol_type, record.metadata.protocol_name) == ("consumer", None)
    assert record.metadata.leader_id is None
    story.fail_over()
    assert story.group().state is GroupState.EMPTY
    assert story.group().generation_id == 2


# -- leaving -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
def test_before_version_3_one_member_leaves_and_the_error_is_at_the_top(version: int) -> None:
    story = Story()
    (member,) = story.stable_group()
    ghost = story.leave(MemberIdentity(member_id="ghost"), version=version)
    assert (ghost.error_code, list(ghost.members)) == (ErrorCode.UNKNOWN_MEMBER_ID, [])
    left = story.leave(MemberIdentity(member_id=member), version=version)
    assert (left.error_code, list(left.members)) == (ErrorCode.NONE, [])
    assert story.group().state is GroupState.EMPTY


def test_from_version_3_on_many_leave_and_each_has_its_own_result() -> None:
    story = Story()
    one, two, _static = story.stable_group(3, instance_ids=[None, None, "i3"])
    answer = story.leave(
        MemberIdentity(member_id=one),
        MemberIdentity(member_id="ghost"),
        MemberIdentity(group_instance_id="i3"),
        MemberIdentity(group_instance_id="i9"),
        MemberIdentity(),
    )
    assert answer.error_code == ErrorCode.NONE
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert [result.error_code for result in answer.members] == [0, unknown, 0, unknown, unknown]
    assert answer.members[2].group_instance_id == "i3"
    assert story.group().members.keys() == {two}
    assert story.group().state is GroupState.PREPARING_REBALANCE


def test_leaving_a_group_that_does_not_exist() -> None:
    story = Story()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert story.leave(MemberIdentity(member_id="m")).members[0].error_code == unknown
    assert story.leave(MemberIdentity(member_id="m"), version=0).error_code == unknown
    nameless = story.leave(MemberIdentity(member_id="m"), group_id="")
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def test_an_id_that_was_never_used_can_leave_and_no_longer_holds_up_the_round() -> None:
    story = Story()
    (leader,) = story.stable_group()
    pending = story.new_member_id()
    parked = story.send_join(leader)
    assert parked not in story.answers
    story.leave(MemberIdentity(member_id=pending))
    assert story.joined(parked).generation_id == 2


def test_who_leaves_while_its_requests_are_parked_gets_them_answered() -> None:
    story = Story()
    leader, follower, third = story.stable_group(3)
    joining = story.send_join(leader)
    story.leave(MemberIdentity(member_id=leader))
    assert story.joined(joining).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    tokens = [story.send_join(follower), story.send_join(third)]
    assert {story.joined(token).generation_id for token in tokens} == {2}
    syncing = story.send_sync(third, 2)
    story.leave(MemberIdentity(member_id=third))
    assert story.synced(syncing).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_one_to_be_waited_for_leaves_and_the_round_ends() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    parked = story.send_join(leader)
    story.leave(MemberIdentity(member_id=follower))
    assert story.joined(parked).generation_id == 2


def test_all_leave_before_the_first_round_has_ended() -> None:
    story = Story()
    token = story.send_join(version=3)
    (member,) = story.group().members
    story.leave(MemberIdentity(member_id=member))
    assert story.joined(token).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    story.sleep(DELAY_MS)
    assert story.group().state is GroupState.EMPTY


# -- loading -------------------------------------------------------------------------------------


def test_after_a_failover_members_have_a_full_session_to_be_heard_of() -> None:
    story = Story()
    (member,) = story.stable_group()
    story.sleep(SESSION_MS - 1)
    story.fail_over()
    assert story.group().state is GroupState.STABLE
    story.sleep(SESSION_MS - 1)
    assert story.heartbeat(member, 1) == ErrorCode.NONE
    story.sleep(SESSION_MS)
    assert story.group().state is GroupState.EMPTY


def test_after_a_failover_the_leader_still_leads() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    story.fail_over()
    assert story.joined(story.send_join(follower)).generation_id == 1
    story.send_join(leader)
    assert story.group().state is GroupState.PREPARING_REBALANCE


def test_a_round_cut_short_by_a_failover_starts_from_the_last_generation() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    story.send_join(leader)
    story.send_join(follower)
    assert story.group().generation_id == 2
    story.fail_over()
    assert story.group().generation_id == 1
    assert story.heartbeat(leader, 2) == ErrorCode.ILLEGAL_GENERATION


def test_an_illegal_transition_tells_its_story() -> None:
    story = Story()
    story.stable_group()
    with pytest.raises(IllegalTransition, match="'g': Stable to Empty in generation 1"):
        story.group().transition_to(GroupState.EMPTY, 0)


def test_the_diagram_in_the_docs_is_the_table() -> None:
    page = (Path(__file__).parents[5] / "docs" / "machines" / "group.md").read_text()
    drawn = set(re.findall(r"^    (\w+) --> (\w+)$", page, re.MULTILINE))
    legal = {
        (before.value, after.value)
        for after, predecessors in LEGAL_PREDECESSORS.items()
        for before in predecessors
    }
    assert drawn == legal
