"""SyncGroup: shares go out when the leader has spoken and the log has it."""

import pytest

from headrace.coordinator.group.state import GroupState
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.group.group_story import DELAY_MS, REBALANCE_MS, Story


def joined_group(story: Story, size: int = 2) -> list[str]:
    """A group in CompletingRebalance, generation 1; the first member leads."""
    tokens = [story.send_join(version=3) for _ in range(size)]
    story.sleep((size + 1) * DELAY_MS)
    return [story.joined(token).member_id for token in tokens]


def test_followers_wait_for_the_leader_and_everyone_gets_its_share() -> None:
    story = Story()
    leader, follower = joined_group(story)
    waiting = story.send_sync(follower, 1)
    assert waiting not in story.answers
    token = story.send_sync(leader, 1, assignments={leader: b"L", follower: b"F"})
    assert story.synced(token).assignment == b"L"
    answer = story.synced(waiting)
    assert (answer.assignment, answer.protocol_type, answer.protocol_name) == (
        b"F",
        "consumer",
        "range",
    )
    assert story.group().state is GroupState.STABLE


def test_who_comes_after_the_leader_is_answered_at_once() -> None:
    story = Story()
    leader, follower = joined_group(story)
    story.send_sync(leader, 1, assignments={follower: b"F"})
    assert story.synced(story.send_sync(follower, 1)).assignment == b"F"


def test_a_member_that_the_leader_forgot_gets_an_empty_share() -> None:
    story = Story()
    leader, follower = joined_group(story)
    story.send_sync(leader, 1, assignments={leader: b"L"})
    assert story.synced(story.send_sync(follower, 1)).assignment == b""


def test_the_generation_is_on_record_with_its_shares() -> None:
    story = Story()
    leader, follower = joined_group(story)
    story.send_sync(leader, 1, assignments={leader: b"L", follower: b"F"})
    (record,) = story.group_records
    assert record.metadata is not None
    assert (record.metadata.generation_id, record.metadata.leader_id) == (1, leader)
    assert {m.member_id: m.assignment for m in record.metadata.members} == {
        leader: b"L",
        follower: b"F",
    }
    story.fail_over()
    assert story.synced(story.send_sync(follower, 1)).assignment == b"F"


def test_an_assignment_that_the_log_refuses_is_nobodys() -> None:
    story = Story()
    leader, follower = joined_group(story)
    waiting = story.send_sync(follower, 1)
    story.refuse_appends = True
    token = story.send_sync(leader, 1, assignments={leader: b"L", follower: b"F"})
    for each in (token, waiting):
        assert story.synced(each).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert story.synced(each).assignment == b""
    assert story.group().state is GroupState.COMPLETING_REBALANCE
    story.refuse_appends = False
    token = story.send_sync(leader, 1, assignments={leader: b"L", follower: b"F"})
    assert story.synced(token).assignment == b"L"


@pytest.mark.parametrize(
    ("member_id", "generation_id", "error"),
    [
        ("ghost", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 0, ErrorCode.ILLEGAL_GENERATION),
        (None, 2, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_refusals(member_id: str | None, generation_id: int, error: ErrorCode) -> None:
    story = Story()
    leader, _ = joined_group(story)
    token = story.send_sync(member_id or leader, generation_id)
    assert story.synced(token).error_code == error


def test_a_group_that_does_not_exist_or_has_no_id() -> None:
    story = Story()
    unknown = story.synced(story.send_sync("m", 1))
    assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    nameless = story.synced(story.send_sync("m", 1, group_id=""))
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def test_version_5_must_name_the_protocol_and_rightly() -> None:
    story = Story()
    leader, _ = joined_group(story)
    wrong = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    for protocol_type, protocol_name in (
        (None, "range"),
        ("consumer", None),
        ("connect", "range"),
        ("consumer", "sticky"),
    ):
        token = story.send_sync(leader, 1, protocol_type=protocol_type, protocol_name=protocol_name)
        assert story.synced(token).error_code == wrong


def test_before_version_5_the_protocol_is_not_named() -> None:
    story = Story()
    leader, _ = joined_group(story)
    token = story.send_sync(leader, 1, version=4, protocol_type=None, protocol_name=None)
    assert story.synced(token).error_code == ErrorCode.NONE


def test_while_a_round_is_being_prepared_members_are_sent_to_join() -> None:
    story = Story()
    leader, follower = story.stable_group(2)
    story.send_join(leader)
    token = story.send_sync(follower, 1)
    assert story.synced(token).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_that_is_sent_again_replaces_the_parked_one() -> None:
    story = Story()
    leader, follower = joined_group(story)
    outdated, current = story.send_sync(follower, 1), story.send_sync(follower, 1)
    assert story.synced(outdated).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    story.send_sync(leader, 1, assignments={follower: b"F"})
    assert story.synced(current).assignment == b"F"


def test_members_that_never_ask_for_their_share_are_dropped() -> None:
    story = Story()
    leader, silent = joined_group(story)
    story.send_sync(leader, 1)
    assert story.group().state is GroupState.STABLE
    for _ in range(REBALANCE_MS // 5_000):
        story.heartbeat(leader, 1)
        story.heartbeat(silent, 1)
        story.sleep(5_000)
    assert story.group().state is GroupState.PREPARING_REBALANCE
    assert story.group().members.keys() == {leader}


def test_a_leader_that_never_assigns_is_dropped_and_the_others_start_over() -> None:
    story = Story()
    leader, follower = joined_group(story)
    waiting = story.send_sync(follower, 1)
    for _ in range(REBALANCE_MS // 5_000):
        story.heartbeat(leader, 1)
        story.sleep(5_000)
    assert story.synced(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    answer = story.joined(story.send_join(follower))
    assert (answer.generation_id, answer.leader) == (2, follower)


def test_a_member_that_waits_for_its_share_outlives_its_session_timeout() -> None:
    story = Story()
    leader, follower = joined_group(story)
    waiting = story.send_sync(follower, 1)
    for _ in range(4):
        story.sleep(5_000)
        story.heartbeat(leader, 1)
    story.send_sync(leader, 1, assignments={follower: b"F"})
    assert story.synced(waiting).assignment == b"F"
    story.sleep(9_999)
    story.heartbeat(leader, 1)
    assert follower in story.group().members  # its session began anew with the share
    story.sleep(1)
    assert follower not in story.group().members
