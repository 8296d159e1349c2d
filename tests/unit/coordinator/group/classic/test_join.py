"""JoinGroup: who is let in, who must wait, who is refused, and how a round ends."""

import pytest

from headrace.coordinator.group.events import SessionTimer
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.state import GroupState
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.group.group_story import (
    DELAY_MS,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    Story,
    subscription,
)

# -- first contact -------------------------------------------------------------------------------


def test_from_version_4_on_a_new_member_is_told_its_id_and_asked_to_come_again() -> None:
    story = Story()
    first = story.joined(story.send_join(version=4, client_id="app"))
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id == "app-uuid1"
    assert (first.generation_id, first.leader, list(first.members)) == (-1, "", [])
    second = story.send_join(first.member_id, version=4)
    story.sleep(DELAY_MS)
    assert story.joined(second).error_code == ErrorCode.NONE
    assert story.joined(second).member_id == first.member_id


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_a_new_member_is_let_in_directly(version: int) -> None:
    story = Story()
    token = story.send_join(version=version, client_id="app")
    assert token not in story.answers
    story.sleep(DELAY_MS)
    answer = story.joined(token)
    assert answer.error_code == ErrorCode.NONE
    assert answer.member_id == answer.leader == "app-uuid1"
    assert answer.generation_id == 1
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


def test_version_0_has_no_rebalance_timeout_and_uses_the_session_timeout() -> None:
    story = Story()
    story.send_join(version=0, session_ms=7_000, rebalance_ms=-1)
    (member,) = story.group().members.values()
    assert member.rebalance_timeout_ms == 7_000


def test_a_group_is_on_record_from_its_first_join_on() -> None:
    story = Story()
    story.send_join()
    (record,) = story.group_records
    assert record.metadata is not None
    assert (record.metadata.protocol_type, record.metadata.generation_id) == ("", 0)
    story.fail_over()
    assert story.group().state is GroupState.EMPTY


def test_a_member_id_in_a_group_that_does_not_exist_is_unknown() -> None:
    story = Story()
    answer = story.joined(story.send_join("ghost"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "ghost")
    assert not story.machine.state.groups


def test_an_unknown_member_id_in_a_known_group_is_unknown() -> None:
    story = Story()
    story.stable_group()
    answer = story.joined(story.send_join("ghost"))
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert answer.protocol_name is None


def test_an_empty_group_id_is_invalid() -> None:
    story = Story()
    assert story.joined(story.send_join(group_id="")).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("session_ms", [0, 5_999, 30 * 60_000 + 1])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    story = Story()
    answer = story.joined(story.send_join(session_ms=session_ms))
    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("session_ms", [6_000, 30 * 60_000])
def test_a_session_timeout_at_a_bound_is_fine(session_ms: int) -> None:
    story = Story()
    answer = story.joined(story.send_join(session_ms=session_ms))
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_member_without_protocols_or_type_is_inconsistent() -> None:
    story = Story()
    for token in (story.send_join(protocols=()), story.send_join(protocol_type="")):
        assert story.joined(token).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_another_protocol_type_or_no_common_protocol_is_inconsistent() -> None:
    story = Story()
    story.stable_group()
    other_type = story.send_join(protocol_type="connect")
    other_protocol = story.send_join(protocols=(("sticky", b""),))
    for token in (other_type, other_protocol):
        assert story.joined(token).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_emptied_group_may_change_its_protocol_type() -> None:
    story = Story()
    story.stable_group()
    story.sleep(SESSION_MS)
    assert story.group().state is GroupState.EMPTY
    token = story.send_join(version=3, protocol_type="connect", protocols=(("default", b""),))
    story.sleep(DELAY_MS)
    assert story.joined(token).protocol_type == "connect"


# -- ids given out and not used ------------------------------------------------------------------


def test_an_id_that_is_never_used_holds_up_a_round_until_its_session_timeout() -> None:
    story = Story()
    (leader,) = story.stable_group()
    story.new_member_id()
    token = story.send_join(leader)
    story.sleep(SESSION_MS - 1)
    story.heartbeat(leader, 1)
    assert token not in story.answers
    story.sleep(1)
    assert story.joined(token).generation_id == 2
    assert not story.group().pending_members


def test_asking_again_over_the_same_connection_gives_up_the_first_id() -> None:
    story = Story()
    story.stable_group()
    lost = story.joined(story.send_join(connection_id=7)).member_id
    kept = story.joined(story.send_join(connection_id=7)).member_id
    bystander = story.joined(story.send_join(connection_id=8)).member_id
    assert story.group().pending_members.keys() == {kept, bystander}
    assert SessionTimer("g", lost) not in story.timers
    answer = story.joined(story.send_join(lost, connection_id=7))
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_without_a_connection_id_every_id_stays_pending() -> None:
    story = Story()
    story.send_join()
    story.send_join()
    assert len(story.group().pending_members) == 2


def test_a_pending_id_with_an_instance_id_is_refused_without_harm() -> None:
    story = Story()
    pending = story.new_member_id()
    answer = story.joined(story.send_join(pending, instance_id="i"))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert pending in story.group().pending_members


# -- the first round -----------------------------------------------------------------------------


def test_the_first_round_waits_for_company_and_longer_if_company_comes() -> None:
    story = Story()
    first = story.send_join(version=3)
    story.sleep(DELAY_MS - 1)
    second = story.send_join(version=3)
    story.sleep(1)
    assert not story.answers  # extended by another delay, because someone came
    story.sleep(DELAY_MS - 1)
    assert not story.answers
    story.sleep(1)
    assert story.joined(first).generation_id == story.joined(second).generation_id == 1


def test_the_first_round_is_not_extended_beyond_the_rebalance_timeout() -> None:
    story = Story()
    first = story.send_join(version=3, rebalance_ms=8_000)
    for _ in range(7):
        story.sleep(1_000)
        story.send_join(version=3, rebalance_ms=8_000)
    assert first not in story.answers
    story.sleep(1_000)  # 3 + 3 + 2 s
    assert story.joined(first).generation_id == 1


def test_a_delay_of_zero_ends_the_first_round_at_once() -> None:
    story = Story(GroupSettings(initial_rebalance_delay_ms=0))
    token = story.send_join(version=3)
    story.sleep(0)
    assert story.joined(token).generation_id == 1


def test_only_the_leader_is_told_who_is_in_the_group() -> None:
    story = Story()
    first = story.send_join(version=3, protocols=(("range", b"one"),))
    second = story.send_join(version=3, protocols=(("range", b"two"),))
    story.sleep(2 * DELAY_MS)
    leader, follower = story.joined(first), story.joined(second)
    assert leader.leader == follower.leader == leader.member_id
    assert {m.member_id: m.metadata for m in leader.members} == {
        leader.member_id: b"one",
        follower.member_id: b"two",
    }
    assert list(follower.members) == []


# -- later rounds --------------------------------------------------------------------------------


def test_a_newcomer_starts_a_round_that_ends_as_soon_as_all_are_back() -> None:
    story = Story()
    one, two = story.stable_group(2)
    newcomer = story.send_join(story.new_member_id())
    assert story.group().state is GroupState.PREPARING_REBALANCE
    assert story.heartbeat(one, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    first = story.send_join(one)
    assert not {newcomer, first} & story.answers.keys()
    second = story.send_join(two)
    assert {story.joined(t).generation_id for t in (newcomer, first, second)} == {2}
    assert story.joined(newcomer).leader == one


def test_members_that_do_not_come_back_in_time_are_dropped_and_the_leader_is_replaced() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    newcomer = story.send_join(story.new_member_id())
    back = story.send_join(follower)
    for _ in range(REBALANCE_MS // 5_000):
        story.heartbeat(leader, 1)  # alive, but does not rejoin
        story.sleep(5_000)
    answer = story.joined(back)
    assert answer.generation_id == 2
    assert answer.leader in {follower, story.joined(newcomer).member_id}
    assert story.group().members.keys() == {follower, story.joined(newcomer).member_id}
    assert story.heartbeat(leader, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_largest_rebalance_timeout_counts() -> None:
    story = Story()
    (leader,) = story.stable_group()
    pending = story.new_member_id()
    token = story.send_join(pending, rebalance_ms=2 * REBALANCE_MS)
    for _ in range(2 * REBALANCE_MS // 5_000 - 1):
        story.sleep(5_000)
        story.heartbeat(leader, 1)
    assert token not in story.answers
    story.sleep(5_000)
    assert story.joined(token).generation_id == 2


def test_the_leader_of_a_stable_group_forces_a_round_by_rejoining() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    token = story.send_join(leader)
    assert token not in story.answers
    assert story.group().state is GroupState.PREPARING_REBALANCE
    story.send_join(follower)
    assert story.joined(token).generation_id == 2


def test_a_follower_with_nothing_new_is_told_the_current_generation() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    answer = story.joined(story.send_join(follower))
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert (answer.leader, list(answer.members)) == (leader, [])
    assert story.group().state is GroupState.STABLE


def test_a_follower_with_new_metadata_starts_a_round() -> None:
    story = Story()
    _, follower = story.stable_group(2)
    story.send_join(follower, protocols=(("range", subscription("payments")),))
    assert story.group().state is GroupState.PREPARING_REBALANCE


def test_a_join_repeated_while_the_leader_assigns_is_answered_with_the_generation() -> None:
    story = Story()
    first, second = (story.send_join(version=3) for _ in range(2))
    story.sleep(2 * DELAY_MS)
    leader, follower = story.joined(first).member_id, story.joined(second).member_id
    again = story.joined(story.send_join(leader))
    assert again.generation_id == 1
    assert {member.member_id for member in again.members} == {leader, follower}
    again = story.joined(story.send_join(follower))
    assert (again.generation_id, list(again.members)) == (1, [])
    assert story.group().state is GroupState.COMPLETING_REBALANCE


def test_new_metadata_while_the_leader_assigns_starts_over_and_frees_who_waits_for_a_share() -> (
    None
):
    story = Story()
    first, second = (story.send_join(version=3) for _ in range(2))
    story.sleep(2 * DELAY_MS)
    leader, follower = story.joined(first).member_id, story.joined(second).member_id
    waiting = story.send_sync(follower, 1)
    story.send_join(leader, protocols=(("range", b"new"),))
    assert story.synced(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    story.send_join(follower)
    assert story.group().generation_id == 2


def test_a_join_that_is_sent_again_replaces_the_parked_one() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    outdated = story.send_join(leader)
    current = story.send_join(leader)
    assert story.joined(outdated).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    story.send_join(follower)
    assert story.joined(current).generation_id == 2


def test_a_new_member_whose_join_is_parked_for_five_minutes_is_dropped() -> None:
    story = Story()
    (leader,) = story.stable_group()
    newcomer = story.send_join(story.new_member_id(), rebalance_ms=600_000)
    for _ in range(300 // 5):
        story.sleep(5_000)
        story.heartbeat(leader, 1)
    assert story.joined(newcomer).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert story.joined(newcomer).member_id == ""


# -- choosing the protocol -----------------------------------------------------------------------


def test_members_vote_among_the_protocols_that_all_support() -> None:
    story = Story()
    for preference in (("a", "b", "c"), ("b", "c"), ("c", "b")):
        token = story.send_join(version=3, protocols=[(name, b"") for name in preference])
    story.sleep(3 * DELAY_MS)
    # "a" is not common; "b" has two votes (for the first member it is the best of the common ones).
    assert story.joined(token).protocol_name == "b"


def test_a_protocol_named_twice_counts_once() -> None:
    story = Story()
    token = story.send_join(version=3, protocols=(("range", b"x"), ("range", b"y")))
    story.send_join(version=3, protocols=RANGE)
    story.sleep(2 * DELAY_MS)
    assert story.joined(token).protocol_name == "range"
    assert story.joined(token).members[0].metadata == b"x"


# -- size ----------------------------------------------------------------------------------------


def test_a_full_group_takes_no_one_in() -> None:
    story = Story(GroupSettings(max_size=2, initial_rebalance_delay_ms=DELAY_MS))
    one, two = story.stable_group(2)
    answer = story.joined(story.send_join())
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert story.heartbeat(one, 1) == story.heartbeat(two, 1) == ErrorCode.NONE


def test_the_first_round_of_a_group_respects_its_size_too() -> None:
    story = Story(GroupSettings(max_size=2, initial_rebalance_delay_ms=DELAY_MS))
    tokens = [story.send_join(version=3) for _ in range(3)]
    assert story.joined(tokens[2]).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    story.sleep(3 * DELAY_MS)
    assert story.joined(tokens[0]).generation_id == story.joined(tokens[1]).generation_id == 1


def test_when_the_limit_was_lowered_the_last_to_rejoin_must_go() -> None:
    story = Story()
    one, two, three = story.stable_group(3)
    story.settings = GroupSettings(max_size=2, initial_rebalance_delay_ms=DELAY_MS)
    story.fail_over()
    assert story.group().state is GroupState.PREPARING_REBALANCE
    tokens = [story.send_join(member_id) for member_id in (one, two)]
    answer = story.joined(story.send_join(three))
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert {story.joined(token).generation_id for token in tokens} == {2}
