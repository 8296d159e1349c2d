import pytest

from headrace.coordinator.transaction.state import Status
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.transaction.transaction_story import (
    P0,
    P1,
    START_MS,
    TV2,
    Story,
    producer,
)


def test_the_first_partition_begins_the_transaction_and_further_ones_join() -> None:
    story = Story()
    given = story.initialize().producer
    assert story.add(given, P0) is ErrorCode.NONE
    story.sleep(5)
    assert story.add(given, P1, version=TV2) is ErrorCode.NONE
    transaction = story.transaction()
    assert transaction.status is Status.ONGOING
    assert transaction.partitions == {P0, P1}
    assert transaction.start_ms == START_MS
    assert transaction.client_version == 2


def test_a_partition_that_takes_part_already_costs_no_record() -> None:
    story = Story()
    given = story.begin(P0, P1)
    count = len(story.log)
    assert story.add(given, P1) is ErrorCode.NONE
    assert len(story.log) == count


@pytest.mark.parametrize("commit", [True, False])
def test_a_decided_transaction_takes_no_partition(commit: bool) -> None:
    story = Story()
    given = story.begin()
    story.end(given, commit=commit)
    assert story.add(given, P1) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert story.verify(given, P0) == {P0: ErrorCode.CONCURRENT_TRANSACTIONS}
    story.write_markers()
    assert story.add(given, P1) is ErrorCode.NONE
    assert story.transaction().partitions == {P1}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (producer(1, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (producer(1_001, 1), ErrorCode.PRODUCER_FENCED),
        (producer(1_001, -1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_others_add_nothing(given: tuple[int, int], error: ErrorCode) -> None:
    story = Story()
    story.begin(P0)
    assert story.add(producer(*given), P1) is error
    assert story.verify(producer(*given), P0) == {P0: error}
    assert story.transaction().partitions == {P0}


def test_unknown_and_empty_transactional_ids() -> None:
    story = Story()
    given = producer(1, 0)
    assert story.add(given, P0, transactional_id="") is ErrorCode.INVALID_REQUEST
    assert story.add(given, P0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert story.verify(given, P0) == {P0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_the_question_of_a_partition_leader_changes_nothing() -> None:
    story = Story()
    given = story.begin(P0)
    count = len(story.log)
    assert story.verify(given, P0, P1) == {
        P0: ErrorCode.NONE,
        P1: ErrorCode.TRANSACTION_ABORTABLE,
    }
    assert len(story.log) == count


def test_a_partition_of_the_last_transaction_is_not_in_the_next() -> None:
    story = Story()
    given = story.begin(P0)
    story.end(given)
    story.write_markers()
    assert story.verify(given, P0) == {P0: ErrorCode.TRANSACTION_ABORTABLE}
