"""The follower's side of a fetch session: what is told, what is not told again, and when everything is."""

from uuid import UUID

import pytest

from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.recovery import open_log
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.replication.fetch_session import Asked, FollowerSession
from headrace.replication.partition import Partition
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import FetchResponse

IDS = {"a": UUID(int=1), "b": UUID(int=2)}
LEADER = 2
SESSION = 77


def followed(topic: str, index: int, disk: MemoryDisk | None = None) -> Partition:
    def on_disk_failed(_: Partition, error: DiskFailed) -> None:
        raise AssertionError(error)

    where = TopicPartition(topic, index)
    log = open_log(
        disk or MemoryDisk(), f"/d/{where}", where, LogConfig(), now_ms=0, topic_id=IDS[topic]
    )
    partition = Partition(
        where,
        IDS[topic],
        log,
        high_watermark=0,
        on_disk_failed=on_disk_failed,
    )
    partition.become_follower(LEADER, 5)
    return partition


def grow(partition: Partition) -> None:
    end_offset = partition.log.log_end_offset
    batch = build_batch(records_at(end_offset, 1, [(None, b"v")]), BatchOptions(leader_epoch=5))
    partition.append_as_follower(bytes(batch), high_watermark=0, log_start_offset=0, now_ms=1)


def named(asked: Asked) -> list[tuple[str, int, int]]:
    return [
        (topic.topic, ask.partition, ask.fetch_offset)
        for topic in asked.topics
        for ask in topic.partitions
    ]


def forgotten(asked: Asked) -> list[tuple[UUID, list[int]]]:
    return [(topic.topic_id, list(topic.partitions)) for topic in asked.forgotten]


def wanting(*partitions: Partition) -> FollowerSession:
    session = FollowerSession(1_000)
    for partition in partitions:
        session.want(partition)
    return session


def begun(*partitions: Partition) -> FollowerSession:
    session = wanting(*partitions)
    session.ask()
    assert session.answered(FetchResponse(session_id=SESSION))
    return session


def test_the_first_request_names_everything() -> None:
    session = wanting(followed("a", 0), followed("b", 3), followed("a", 1))
    assert len(session) == 3
    asked = session.ask()
    assert (asked.session_id, asked.session_epoch) == (0, 0)
    assert named(asked) == [("a", 0, 0), ("a", 1, 0), ("b", 3, 0)]
    assert forgotten(asked) == []


def test_only_what_has_changed_is_told_again() -> None:
    partitions = [followed("a", 0), followed("a", 1), followed("b", 0)]
    session = begun(*partitions)
    grow(partitions[1])
    for partition in partitions:
        session.mark_changed(partition)
    asked = session.ask()
    assert (asked.session_id, asked.session_epoch) == (SESSION, 1)
    assert named(asked) == [("a", 1, 1)]
    assert session.answered(FetchResponse(session_id=SESSION))
    partitions[2].become_follower(LEADER, 6)
    session.want(partitions[2])
    asked = session.ask()
    assert asked.session_epoch == 2
    assert [ask.current_leader_epoch for topic in asked.topics for ask in topic.partitions] == [6]


def test_what_is_deleted_without_a_word_is_told_when_all_are_looked_at() -> None:
    session = begun(partition := followed("a", 0), followed("a", 1))
    grow(partition)
    session.mark_changed(partition)
    session.ask()
    session.answered(FetchResponse(session_id=SESSION))
    partition.log.advance_log_start(1)
    session.mark_all_changed()
    assert named(session.ask()) == [], "after a kill the record would be back"
    session.answered(FetchResponse(session_id=SESSION))
    partition.log.checkpointed_start = 1
    assert named(session.ask()) == []
    session.answered(FetchResponse(session_id=SESSION))
    session.mark_all_changed()
    assert named(session.ask()) == [("a", 0, 1)]


def test_who_leaves_and_comes_back_between_two_requests_was_never_away() -> None:
    session = begun(partition := followed("a", 0))
    session.leave(partition)
    session.want(partition)
    asked = session.ask()
    assert (named(asked), forgotten(asked)) == ([], [])


def test_who_is_left_out_is_forgotten_and_may_come_back() -> None:
    stays, pauses = followed("a", 0), followed("b", 4)
    session = begun(stays, pauses)
    session.leave(pauses)
    asked = session.ask()
    assert named(asked) == []
    assert forgotten(asked) == [(IDS["b"], [4])]
    assert session.asked(IDS["b"], 4) is None
    session.answered(FetchResponse(session_id=SESSION))
    session.want(pauses)
    asked = session.ask()
    assert named(asked) == [("b", 4, 0)]
    assert forgotten(asked) == []


def test_a_partition_made_anew_is_not_forgotten() -> None:
    """The leader takes in what is asked before it forgets."""
    session = begun(before := followed("a", 0), followed("a", 1))
    grow(anew := followed("a", 0))
    session.leave(before)
    session.want(anew)
    asked = session.ask()
    assert named(asked) == [("a", 0, 1)]
    assert forgotten(asked) == []
    assert session.asked(IDS["a"], 0) == (anew, 5)


def test_an_answer_belongs_to_the_epoch_in_which_it_was_asked_for() -> None:
    session = begun(partition := followed("a", 0))
    partition.become_follower(LEADER, 6)
    assert session.asked(IDS["a"], 0) == (partition, 5)
    session.want(partition)
    session.ask()
    assert session.asked(IDS["a"], 0) == (partition, 6)


@pytest.mark.parametrize(
    ("error", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, SESSION),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, SESSION),
    ],
)
def test_after_an_error_everything_is_told_again(error: ErrorCode, session_id: int) -> None:
    session = begun(followed("a", 0))
    session.ask()
    assert not session.answered(FetchResponse(error_code=error))
    asked = session.ask()
    assert (asked.session_id, asked.session_epoch) == (session_id, 0)
    assert named(asked) == [("a", 0, 0)]


def test_a_lost_answer_ends_the_session() -> None:
    """By its id, so that the leader need not keep it until it is old."""
    session = begun(followed("a", 0))
    session.ask()
    session.start_over()
    asked = session.ask()
    assert (asked.session_id, asked.session_epoch) == (SESSION, 0)
    assert named(asked) == [("a", 0, 0)]


def test_a_leader_without_room_is_told_everything_each_time() -> None:
    session = wanting(followed("a", 0))
    for _ in range(2):
        asked = session.ask()
        assert (asked.session_id, asked.session_epoch) == (0, 0)
        assert named(asked) == [("a", 0, 0)]
        assert session.answered(FetchResponse(session_id=0))


def test_epochs_wrap() -> None:
    session = begun(followed("a", 0))
    session._epoch = 2**31 - 1
    assert session.ask().session_epoch == 2**31 - 1
    session.answered(FetchResponse(session_id=SESSION))
    assert session.ask().session_epoch == 1
