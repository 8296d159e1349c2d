"""Static membership: an instance that returns keeps its place."""

import pytest

from headrace.coordinator.group.state import GroupState
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.leave_group import MemberIdentity
from tests.unit.coordinator.group.group_story import DELAY_MS, REBALANCE_MS, SESSION_MS, Story


def static_group(story: Story, *instance_ids: str | None) -> list[str]:
    return story.stable_group(len(instance_ids), instance_ids=instance_ids)


def test_a_static_member_needs_no_second_join() -> None:
    story = Story()
    token = story.send_join(instance_id="i1", client_id="c")
    story.sleep(DELAY_MS)
    assert story.joined(token).member_id == "i1-uuid1"
    assert story.joined(token).members[0].group_instance_id == "i1"


def test_a_returning_follower_gets_a_new_id_and_the_same_generation_without_a_round() -> None:
    story = Story()
    leader, old = static_group(story, "i1", "i2")
    answer = story.joined(story.send_join(instance_id="i2"))
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert (answer.leader, answer.skip_assignment, list(answer.members)) == (leader, False, [])
    assert answer.member_id not in {leader, old}
    assert story.group().state is GroupState.STABLE
    share = story.synced(story.send_sync(answer.member_id, 1, instance_id="i2"))
    assert share.assignment == f"share of {old}".encode()


def test_the_new_id_is_on_record() -> None:
    story = Story()
    static_group(story, "i1", "i2")
    answer = story.joined(story.send_join(instance_id="i2"))
    (record,) = story.group_records
    assert record.metadata is not None
    assert record.metadata.members[-1].member_id == answer.member_id
    story.fail_over()
    assert story.heartbeat(answer.member_id, 1, instance_id="i2") == ErrorCode.NONE


def test_a_returning_leader_from_version_9_on_leads_but_does_not_assign() -> None:
    story = Story()
    static_group(story, "i1", "i2")
    answer = story.joined(story.send_join(instance_id="i1", version=9))
    assert answer.leader == answer.member_id
    assert answer.skip_assignment
    assert len(answer.members) == 2


@pytest.mark.parametrize("version", [5, 8])
def test_a_returning_leader_before_version_9_is_told_that_its_old_id_leads(version: int) -> None:
    story = Story()
    old, _ = static_group(story, "i1", "i2")
    answer = story.joined(story.send_join(instance_id="i1", version=version))
    assert (answer.leader, list(answer.members)) == (old, [])
    assert not answer.skip_assignment
    # It leads all the same, from the next round on.
    assert story.group().leader_id == answer.member_id


def test_the_old_id_is_fenced_everywhere() -> None:
    story = Story()
    _, old = static_group(story, "i1", "i2")
    story.send_join(instance_id="i2")
    assert story.heartbeat(old, 1, instance_id="i2") == ErrorCode.FENCED_INSTANCE_ID
    sync = story.synced(story.send_sync(old, 1, instance_id="i2"))
    assert sync.error_code == ErrorCode.FENCED_INSTANCE_ID
    join = story.joined(story.send_join(old, instance_id="i2"))
    assert (join.error_code, join.protocol_name) == (ErrorCode.FENCED_INSTANCE_ID, None)
    commit = story.commit(member_id=old, instance_id="i2", generation_id=1)
    assert commit == ErrorCode.FENCED_INSTANCE_ID
    left = story.leave(MemberIdentity(member_id=old, group_instance_id="i2"))
    assert left.members[0].error_code == ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_id_that_the_group_does_not_know_is_an_unknown_member() -> None:
    story = Story()
    (member,) = static_group(story, "i1")
    assert story.heartbeat(member, 1, instance_id="i9") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_double_whose_join_is_parked_is_fenced_at_once() -> None:
    story = Story()
    parked = story.send_join(instance_id="i1")
    replacement = story.send_join(instance_id="i1")
    answer = story.joined(parked)
    assert answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert answer.member_id == "i1-uuid1"
    story.sleep(2 * DELAY_MS)
    assert story.joined(replacement).error_code == ErrorCode.NONE


def test_returning_while_the_leader_assigns_forces_a_new_round() -> None:
    story = Story()
    first, second = story.send_join(instance_id="i1"), story.send_join(instance_id="i2")
    story.sleep(2 * DELAY_MS)
    leader, follower = story.joined(first).member_id, story.joined(second).member_id
    waiting = story.send_sync(follower, 1, instance_id="i2")
    back = story.send_join(instance_id="i2")
    assert story.synced(waiting).error_code == ErrorCode.FENCED_INSTANCE_ID
    assert back not in story.answers
    assert story.group().state is GroupState.PREPARING_REBALANCE
    story.send_join(leader, instance_id="i1")
    assert story.joined(back).generation_id == 2


def test_returning_with_another_choice_of_protocol_forces_a_new_round() -> None:
    story = Story()
    both = (("range", b""), ("sticky", b""))
    story.stable_group(1, protocols=both, instance_ids=["i1"])
    back = story.send_join(instance_id="i1", protocols=tuple(reversed(both)))
    # Alone in the group, its vote decides, and nobody else needs to be waited for.
    answer = story.joined(back)
    assert (answer.generation_id, answer.protocol_name) == (2, "sticky")


def test_a_return_whose_record_is_refused_can_be_tried_again() -> None:
    story = Story()
    static_group(story, "i1", "i2")
    story.refuse_appends = True
    failed = story.joined(story.send_join(instance_id="i2"))
    assert failed.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    story.refuse_appends = False
    again = story.joined(story.send_join(instance_id="i2"))
    assert (again.error_code, again.generation_id) == (ErrorCode.NONE, 1)


def test_static_members_keep_their_place_when_they_miss_a_round() -> None:
    story = Story()
    leader, absent = story.stable_group(2, instance_ids=[None, "i2"])
    newcomer = story.send_join(story.new_member_id())
    back = story.send_join(leader)
    for _ in range(REBALANCE_MS // 5_000):
        story.heartbeat(absent, 1, instance_id="i2")
        story.sleep(5_000)
    assert story.joined(back).generation_id == story.joined(newcomer).generation_id == 2
    assert absent in story.group().members


def test_a_round_to_which_no_static_member_came_goes_on_waiting() -> None:
    story = Story()
    _one, two = static_group(story, "i1", "i2")
    story.leave(MemberIdentity(member_id="", group_instance_id="i1"))
    for _ in range(2 * REBALANCE_MS // 5_000):
        assert story.heartbeat(two, 1) == ErrorCode.REBALANCE_IN_PROGRESS
        story.sleep(5_000)
    assert story.group().state is GroupState.PREPARING_REBALANCE
    assert story.joined(story.send_join(two, instance_id="i2")).generation_id == 2


def test_a_session_that_ends_removes_a_static_member_too() -> None:
    story = Story()
    static_group(story, "i1")
    story.sleep(SESSION_MS)
    assert story.group().state is GroupState.EMPTY
    assert not story.group().static_members


def test_a_static_member_that_returned_before_its_sync_is_still_expected_to_sync() -> None:
    story = Story()
    first, second = story.send_join(instance_id="i1"), story.send_join(instance_id="i2")
    story.sleep(2 * DELAY_MS)
    story.send_sync(story.joined(first).member_id, 1)
    back = story.joined(story.send_join(instance_id="i2")).member_id
    assert story.group().pending_sync == {back}
    assert story.joined(second).member_id not in story.group().members
