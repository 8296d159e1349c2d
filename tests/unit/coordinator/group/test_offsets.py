"""Committed offsets: commit, fetch, delete, expire."""

from uuid import UUID

import pytest

from headrace.coordinator.group.events import DeletedTopic
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.state import GroupState
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.leave_group import MemberIdentity
from headrace.wire.messages.offset_fetch import OffsetFetchRequestTopics
from tests.unit.coordinator.group.group_story import DELAY_MS, RANGE, Story

RETENTION_MS = 7 * 24 * 3_600_000
CHECK_MS = 600_000
ID_ONE, ID_TWO = UUID(int=1), UUID(int=2)

# -- commit --------------------------------------------------------------------------------------


def test_a_member_commits_and_reads_back_all_it_said() -> None:
    story = Story()
    (member,) = story.stable_group()
    error = story.commit(
        42, member_id=member, generation_id=1, metadata="here", leader_epoch=5, partition=3
    )
    assert error == ErrorCode.NONE
    found = story.position(3)
    assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (42, 5, "here")
    story.fail_over()
    assert story.position(3).committed_offset == 42


def test_without_members_anyone_may_commit_and_a_simple_group_comes_to_be() -> None:
    story = Story()
    assert story.commit(7) == ErrorCode.NONE
    assert story.group().state is GroupState.EMPTY
    assert story.group().protocol_type is None
    story.fail_over()
    assert story.position().committed_offset == 7


def test_a_null_metadata_is_an_empty_one() -> None:
    story = Story()
    story.commit(metadata=None)
    assert story.position().metadata == ""


def test_an_empty_group_id_may_commit() -> None:
    story = Story()
    assert story.commit(3, group_id="") == ErrorCode.NONE
    assert story.position(group_id="").committed_offset == 3


def test_commit_refusals() -> None:
    story = Story()
    (member,) = story.stable_group()
    assert story.commit() == ErrorCode.UNKNOWN_MEMBER_ID
    assert story.commit(member_id="ghost", generation_id=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert story.commit(member_id=member, generation_id=2) == ErrorCode.ILLEGAL_GENERATION
    assert story.commit(member_id=member, generation_id=-1) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("version", "error"),
    [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_generation_in_a_group_that_does_not_exist(version: int, error: ErrorCode) -> None:
    story = Story()
    assert story.commit(member_id="m", generation_id=1, version=version) == error


def test_no_commit_while_the_leader_assigns_but_well_while_a_round_is_prepared() -> None:
    story = Story()
    token = story.send_join(version=3)
    story.sleep(DELAY_MS)
    member = story.joined(token).member_id
    in_progress = ErrorCode.REBALANCE_IN_PROGRESS
    assert story.commit(member_id=member, generation_id=1) == in_progress
    story.send_sync(member, 1)
    story.send_join(story.new_member_id())
    assert story.group().state is GroupState.PREPARING_REBALANCE
    assert story.commit(member_id=member, generation_id=1) == ErrorCode.NONE


def test_metadata_that_is_too_long_is_refused_per_partition() -> None:
    story = Story()
    assert story.commit(metadata="x" * 4_096) == ErrorCode.NONE
    assert story.commit(2, metadata="x" * 4_097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert story.position().committed_offset == 1


def test_commits_keep_a_session_alive() -> None:
    story = Story()
    (member,) = story.stable_group()
    for _ in range(5):
        story.sleep(9_000)
        assert story.commit(member_id=member, generation_id=1) == ErrorCode.NONE


def test_a_commit_that_the_log_refuses_did_not_happen() -> None:
    story = Story()
    story.commit(1)
    story.refuse_appends = True
    assert story.commit(2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert story.position().committed_offset == 1


# -- fetch ---------------------------------------------------------------------------------------


def test_what_was_never_committed_is_minus_one_without_error() -> None:
    story = Story()
    for found in (story.position(), story.position(group_id="nobody")):
        assert (found.committed_offset, found.error_code) == (-1, ErrorCode.NONE)
        assert (found.committed_leader_epoch, found.metadata) == (-1, "")


def test_null_topics_ask_for_everything() -> None:
    story = Story()
    story.commit(1, topic="orders", partition=0)
    story.commit(2, topic="orders", partition=1)
    story.commit(3, topic="payments")
    story.commit(4, group_id="other")
    found = {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in story.fetch(None).topics
        for partition in topic.partitions
    }
    assert found == {("orders", 0): 1, ("orders", 1): 2, ("payments", 0): 3}
    assert list(story.fetch([]).topics) == []
    assert list(story.fetch(None, group_id="nobody").topics) == []


def test_an_offset_of_an_older_topic_of_the_same_name_is_not_shown() -> None:
    story = Story()
    story.commit(9, topic_id=ID_ONE)
    for topic_id, offset in ((ID_ONE, 9), (ID_TWO, -1), (UUID(int=0), 9)):
        asked = OffsetFetchRequestTopics(name="orders", topic_id=topic_id, partition_indexes=[0])
        (topic,) = story.fetch([asked], version=10).topics
        assert topic.partitions[0].committed_offset == offset
        assert topic.topic_id == topic_id


# -- delete --------------------------------------------------------------------------------------


def test_offsets_of_a_topic_that_is_not_subscribed_can_be_deleted() -> None:
    story = Story()
    (member,) = story.stable_group()  # subscribes to orders
    story.commit(1, member_id=member, generation_id=1)
    story.commit(2, topic="payments", member_id=member, generation_id=1)
    subscribed = story.delete_offsets("orders", 0)
    assert subscribed.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    deleted = story.delete_offsets("payments", 0, 5)
    assert [p.error_code for p in deleted.topics[0].partitions] == [0, 0]
    assert len(story.new_records) == 1
    assert story.position(topic="payments").committed_offset == -1
    assert story.position().committed_offset == 1


def test_offset_delete_refusals() -> None:
    story = Story()
    assert story.delete_offsets("orders", 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert story.delete_offsets("orders", 0, group_id="").error_code == ErrorCode.INVALID_GROUP_ID
    story.send_join(version=3, protocol_type="connect")
    assert story.delete_offsets("orders", 0).error_code == ErrorCode.NON_EMPTY_GROUP


def test_when_subscriptions_cannot_be_read_any_topic_may_be_subscribed() -> None:
    story = Story()
    (member,) = story.stable_group(protocols=(("range", b"garbage"),))
    story.commit(member_id=member, generation_id=1)
    answer = story.delete_offsets("orders", 0)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_deleting_a_topic_deletes_its_offsets_and_spares_its_successors() -> None:
    story = Story()
    story.commit(1, topic_id=ID_ONE, partition=0)
    story.commit(2, topic_id=ID_TWO, partition=1)
    story.commit(3, partition=2)  # committed by a client that did not name the id
    story.commit(4, topic="payments", topic_id=ID_ONE)
    story.delete_topics(DeletedTopic("orders", ID_ONE))
    found = [story.position(partition).committed_offset for partition in range(3)]
    assert found == [-1, 2, -1]
    assert story.position(topic="payments").committed_offset == 4


# -- expiry --------------------------------------------------------------------------------------


def test_offsets_of_a_simple_group_expire_after_their_commit() -> None:
    story = Story()
    story.commit(1, partition=0)
    story.sleep(RETENTION_MS // 2)
    story.commit(2, partition=1)
    story.sleep(RETENTION_MS // 2 + CHECK_MS)
    assert story.position(0).committed_offset == -1
    assert story.position(1).committed_offset == 2


def test_an_expired_group_is_gone_without_a_trace() -> None:
    story = Story()
    story.commit()
    story.sleep(RETENTION_MS + CHECK_MS)
    assert not story.machine.state.groups
    assert not story.machine.state.hard.groups
    assert not story.machine.state.hard.offsets
    story.fail_over()
    assert not story.machine.state.groups


def test_members_keep_the_offsets_of_their_topics_and_the_clock_starts_when_they_have_left() -> (
    None
):
    story = Story(
        GroupSettings(
            initial_rebalance_delay_ms=0,
            offsets_retention_ms=60_000,
            offsets_retention_check_interval_ms=1_000,
        )
    )
    (member,) = story.stable_group()
    story.commit(1, member_id=member, generation_id=1)
    for _ in range(20):
        story.sleep(9_000)
        story.heartbeat(member, 1)
    assert story.position().committed_offset == 1
    story.leave(MemberIdentity(member_id=member))
    story.sleep(59_999)
    assert story.position().committed_offset == 1
    story.sleep(1_001)
    assert "g" not in story.machine.state.groups


def test_a_stable_group_loses_offsets_of_topics_that_it_no_longer_subscribes_to() -> None:
    story = Story(
        GroupSettings(
            initial_rebalance_delay_ms=0,
            offsets_retention_ms=60_000,
            offsets_retention_check_interval_ms=1_000,
        )
    )
    (member,) = story.stable_group(protocols=RANGE)
    story.commit(1, member_id=member, generation_id=1)
    story.commit(2, topic="left-behind", member_id=member, generation_id=1)
    for _ in range(7):
        story.sleep(9_000)
        story.heartbeat(member, 1)
    assert story.position().committed_offset == 1
    assert story.position(topic="left-behind").committed_offset == -1
    assert story.group().state is GroupState.STABLE


def test_nothing_expires_in_a_group_whose_members_speak_another_protocol() -> None:
    story = Story(
        GroupSettings(
            initial_rebalance_delay_ms=0,
            offsets_retention_ms=60_000,
            offsets_retention_check_interval_ms=1_000,
        )
    )
    story.commit()
    token = story.send_join(version=3, protocol_type="connect", session_ms=600_000)
    story.sleep(0)
    story.send_sync(story.joined(token).member_id, 1, protocol_type="connect")
    story.sleep(120_000)
    assert story.group().state is GroupState.STABLE
    assert story.position().committed_offset == 1


def test_an_old_client_may_bring_its_own_retention() -> None:
    story = Story()
    story.commit(retention_ms=CHECK_MS // 2, version=4, leader_epoch=3, topic_id=ID_ONE)
    story.fail_over()
    assert story.position().committed_offset == 1
    story.sleep(CHECK_MS)
    assert story.position().committed_offset == -1


def test_a_group_that_was_joined_and_never_used_goes_at_the_next_look() -> None:
    story = Story()
    story.send_join()
    story.sleep(CHECK_MS)
    assert not story.machine.state.groups


def test_an_empty_group_with_someone_about_to_join_stays() -> None:
    story = Story()
    story.send_join(session_ms=2 * CHECK_MS)
    story.sleep(CHECK_MS)
    assert "g" in story.machine.state.groups


def test_a_member_that_is_gone_does_not_come_back_by_a_late_timer() -> None:
    story = Story()
    (member,) = story.stable_group()
    story.leave(MemberIdentity(member_id=member))
    story.delete_group()
    story.sleep(CHECK_MS)
    assert not story.machine.state.groups
