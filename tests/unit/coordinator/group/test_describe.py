"""ListGroups, DescribeGroups, DeleteGroups."""

from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.leave_group import MemberIdentity
from tests.unit.coordinator.group.group_story import RANGE, Story


def test_groups_are_listed_with_state_and_type() -> None:
    story = Story()
    story.stable_group(group_id="busy")
    story.commit(group_id="simple")
    listed = {
        group.group_id: (group.protocol_type, group.group_state, group.group_type)
        for group in story.listed()
    }
    assert listed == {
        "busy": ("consumer", "Stable", "classic"),
        "simple": ("", "Empty", "classic"),
    }


def test_lists_are_filtered_by_state_and_type_without_regard_to_case() -> None:
    story = Story()
    story.stable_group(group_id="busy")
    story.commit(group_id="simple")

    def ids(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[str]:
        return [group.group_id for group in story.listed(states=states, types=types)]

    assert ids(states=("stable",)) == ["busy"]
    assert ids(states=("Empty ", "Dead")) == ["simple"]
    assert ids(states=("nonsense",)) == []
    assert sorted(ids(types=("classic", "consumer"))) == ["busy", "simple"]
    assert ids(types=("Consumer",)) == []


def test_a_stable_group_is_described_with_subscriptions_and_shares() -> None:
    story = Story()
    leader, static = story.stable_group(2, instance_ids=[None, "i2"])
    group = story.described()
    assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    one, two = group.members
    assert (one.member_id, one.group_instance_id) == (leader, None)
    assert (one.client_id, one.client_host) == ("c", "/127.0.0.1")
    assert one.member_metadata == RANGE[0][1]
    assert one.member_assignment == f"share of {leader}".encode()
    assert (two.member_id, two.group_instance_id) == (static, "i2")


def test_during_a_round_there_is_no_protocol_and_no_subscription_to_show() -> None:
    story = Story()
    leader, _ = story.stable_group(2)
    story.send_join(leader)
    group = story.described()
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in group.members] == [b"", b""]


def test_a_group_that_does_not_exist_is_dead_and_from_version_6_on_not_found() -> None:
    story = Story()
    old, new = story.described("ghost", version=5), story.described("ghost", version=6)
    assert (old.group_id, old.group_state, old.error_code) == ("ghost", "Dead", ErrorCode.NONE)
    assert (new.group_state, new.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert new.error_message == "Group ghost not found."


def test_only_an_empty_group_can_be_deleted_and_then_all_of_it() -> None:
    story = Story()
    assert story.delete_group("ghost") == ErrorCode.GROUP_ID_NOT_FOUND
    (member,) = story.stable_group()
    story.commit(member_id=member, generation_id=1)
    assert story.delete_group() == ErrorCode.NON_EMPTY_GROUP
    story.leave(MemberIdentity(member_id=member))
    assert story.delete_group() == ErrorCode.NONE
    assert story.described().group_state == "Dead"
    assert story.position().committed_offset == -1
    story.fail_over()
    assert not story.machine.state.groups


def test_counts() -> None:
    story = Story()
    story.stable_group(group_id="busy")
    story.commit(group_id="simple", partition=0)
    story.commit(group_id="simple", partition=1)
    assert story.machine.groups_by_state == {"Stable": 1, "Empty": 1}
    assert story.machine.offset_count == 2
