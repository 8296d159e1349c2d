"""Fetch sessions: who is remembered, what is news."""

from itertools import count
from uuid import UUID

import pytest

from headrace.broker.fetching.fetch_sessions import (
    MAX_CONSUMER_PARTITIONS,
    FetchSession,
    FetchSessions,
    SessionPartition,
)
from headrace.wire.error_code import ErrorCode
from headrace.wire.fetch_response_codec import FetchDetails, FetchedPartition
from headrace.wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

NO_ID = UUID(int=0)
MINUTES_MS = 60_000


def asking(
    session_id: int,
    epoch: int,
    wanted: dict[str, list[int]] | None = None,
    forgotten: dict[str, list[int]] | None = None,
    *,
    offset: int = 0,
) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(partition=index, fetch_offset=offset) for index in indexes
                ],
            )
            for topic, indexes in (wanted or {}).items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=topic, partitions=indexes)
            for topic, indexes in (forgotten or {}).items()
        ],
    )


def begun(sessions: FetchSessions, wanted: dict[str, list[int]], now_ms: int = 0) -> FetchSession:
    session = sessions.resolve(asking(0, 0, wanted), uses_ids=False, now_ms=now_ms)
    assert isinstance(session, FetchSession)
    return session


def gone_on(
    sessions: FetchSessions, request: FetchRequest, *, uses_ids: bool = False, now_ms: int = 0
) -> FetchSession | ErrorCode | None:
    return sessions.resolve(request, uses_ids=uses_ids, now_ms=now_ms)


def names(session: FetchSession) -> list[tuple[str, int]]:
    return [(topic, index) for (topic, _), index in session.partitions]


def test_a_request_may_stand_for_itself() -> None:
    sessions = FetchSessions(10, count(1).__next__)
    assert gone_on(sessions, asking(0, -1, {"a": [0]})) is None
    assert len(sessions) == 0


def test_a_session_remembers_and_is_changed() -> None:
    sessions = FetchSessions(10, count(1).__next__)
    session = begun(sessions, {"a": [0, 1], "b": [0]})
    assert (session.session_id > 0, session.epoch) == (True, 1)
    request = asking(session.session_id, 1, {"a": [1], "c": [5]}, {"b": [0]}, offset=7)
    assert gone_on(sessions, request) is session
    assert names(session) == [("a", 0), ("a", 1), ("c", 5)]
    assert session.partitions[(("a", NO_ID), 1)].ask.fetch_offset == 7
    assert session.epoch == 2


def test_wrong_ids_and_epochs() -> None:
    sessions = FetchSessions(10, count(1).__next__)
    session = begun(sessions, {"a": [0]})
    unknown = asking(session.session_id + 1, 1)
    assert gone_on(sessions, unknown) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    for epoch in (2, 5):
        request = asking(session.session_id, epoch)
        assert gone_on(sessions, request) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    by_id = gone_on(sessions, asking(session.session_id, 1), uses_ids=True)
    assert by_id == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_is_closed_or_begun_anew() -> None:
    sessions = FetchSessions(10, count(1).__next__)
    first = begun(sessions, {"a": [0]})
    second = gone_on(sessions, asking(first.session_id, 0, {"b": [0]}))
    assert isinstance(second, FetchSession)
    assert second.session_id != first.session_id
    assert len(sessions) == 1
    assert gone_on(sessions, asking(second.session_id, -1, {"b": [0]})) is None
    assert len(sessions) == 0


def test_a_session_that_wants_nothing_any_more_ends() -> None:
    sessions = FetchSessions(10, count(1).__next__)
    session = begun(sessions, {"a": [0]})
    assert gone_on(sessions, asking(session.session_id, 1, None, {"a": [0]})) is session
    assert len(sessions) == 0


def test_epochs_wrap() -> None:
    sessions = FetchSessions(10, count(1).__next__)
    session = begun(sessions, {"a": [0]})
    session.epoch = 2**31 - 1
    gone_on(sessions, asking(session.session_id, 2**31 - 1))
    assert session.epoch == 1


def test_sessions_are_bounded_and_old_ones_make_room() -> None:
    sessions = FetchSessions(2, count(1).__next__)
    old = begun(sessions, {"a": [0]}, now_ms=0)
    begun(sessions, {"a": [0]}, now_ms=MINUTES_MS)
    assert gone_on(sessions, asking(0, 0, {"a": [0]}), now_ms=MINUTES_MS) is None
    late = gone_on(sessions, asking(0, 0, {"a": [0]}), now_ms=2 * MINUTES_MS)
    assert isinstance(late, FetchSession)
    request = asking(old.session_id, 1)
    assert gone_on(sessions, request) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.evictions == 1


def test_those_with_records_wait_behind_the_others() -> None:
    session = begun(FetchSessions(10, count(1).__next__), {"a": [0, 1, 2]})
    session.put_last([(("a", NO_ID), 0)])
    assert names(session) == [("a", 1), ("a", 2), ("a", 0)]


def quiet(**changed: object) -> FetchedPartition:
    answer = FetchedPartition(0, 0, 10, 10, 0)
    for name, value in changed.items():
        setattr(answer, name, value)
    return answer


@pytest.mark.parametrize(
    "news",
    [
        quiet(records=b"batch"),
        quiet(error_code=3),
        quiet(high_watermark=11),
        quiet(log_start_offset=1),
        quiet(preferred_read_replica=2),
        quiet(details=FetchDetails(diverging_epoch=EpochEndOffset(epoch=1, end_offset=2))),
    ],
)
def test_what_is_news(news: FetchedPartition) -> None:
    wanted = SessionPartition(FetchPartition())
    assert wanted.has_news(quiet()), "the first answer always is"
    assert not wanted.has_news(quiet())
    assert wanted.has_news(news)


def test_after_an_error_everything_is_news_again() -> None:
    wanted = SessionPartition(FetchPartition())
    wanted.has_news(quiet())
    wanted.has_news(quiet(error_code=6, high_watermark=-1))
    assert wanted.has_news(quiet())


def test_a_number_that_is_taken_is_not_given_again() -> None:
    numbers = iter([7, 7, 7, 9])
    sessions = FetchSessions(10, lambda: next(numbers))
    assert [begun(sessions, {"a": [0]}).session_id for _ in range(2)] == [7, 9]
    assert len(sessions) == 2


def test_sessions_of_consumers_hold_a_bounded_number_of_partitions() -> None:
    sessions = FetchSessions(10, count(1).__next__)
    first = begun(sessions, {"a": list(range(MAX_CONSUMER_PARTITIONS - 1))})
    refused = gone_on(sessions, asking(0, 0, {"b": [0, 1]}))
    assert refused is None
    assert len(sessions) == 1
    begun(sessions, {"b": [0]})
    grown = gone_on(sessions, asking(first.session_id, 1, {"c": [0]}))
    assert grown == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 1
