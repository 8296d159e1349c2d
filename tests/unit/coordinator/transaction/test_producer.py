import pytest

from headrace.coordinator.transaction.state import Status
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.transaction.transaction_story import (
    P0,
    TIMEOUT_MS,
    TV1,
    TV2,
    Story,
    producer,
)

FENCED = ErrorCode.PRODUCER_FENCED
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_new_id_begins_at_epoch_zero_and_each_producer_gets_the_next() -> None:
    story = Story()
    first = story.initialize()
    assert first == (ErrorCode.NONE, producer(1_001, 0))
    assert story.initialize() == (ErrorCode.NONE, producer(1_001, 1))
    assert story.status() is Status.EMPTY
    assert story.add(first.producer, P0) is FENCED


def test_transactional_ids_have_producer_ids_of_their_own() -> None:
    story = Story()
    one = story.initialize(transactional_id="one").producer
    other = story.initialize(transactional_id="other").producer
    assert one.producer_id != other.producer_id


@pytest.mark.parametrize("timeout_ms", [0, -1, 15 * 60_000 + 1])
def test_a_time_out_beyond_the_limit_is_refused(timeout_ms: int) -> None:
    story = Story()
    answer = story.initialize(timeout_ms=timeout_ms)
    assert answer.error is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert story.log == []


def test_an_empty_transactional_id_is_refused() -> None:
    assert Story().initialize(transactional_id="").error is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [TV1, TV2])
def test_an_open_transaction_is_aborted_before_the_next_producer_begins(version: int) -> None:
    story = Story()
    zombie = story.begin(P0, version=version)
    assert story.initialize().error is BUSY
    assert story.status() is Status.PREPARE_ABORT
    assert story.initialize().error is BUSY
    (markers,) = story.write_markers()
    assert not markers.commit
    assert (markers.producer_id, markers.producer_epoch) == (zombie.producer_id, 1)
    assert story.initialize().producer == producer(1_001, 2)
    assert story.end(zombie, version=version).error is FENCED
    assert story.add(zombie, P0, version=version) is FENCED


def test_a_decided_transaction_is_waited_for() -> None:
    story = Story()
    given = story.begin()
    story.end(given)
    assert story.initialize().error is BUSY
    story.write_markers()
    assert story.status() is Status.COMPLETE_COMMIT
    assert story.initialize().producer == producer(1_001, 1)


class TestAProducerThatGoesOnAfterAnError:
    def test_gets_the_next_epoch(self) -> None:
        story = Story()
        given = story.initialize().producer
        assert story.initialize(given).producer == producer(1_001, 1)

    def test_gets_the_same_answer_again_if_it_was_lost(self) -> None:
        story = Story()
        given = story.initialize().producer
        once = story.initialize(given, timeout_ms=10)
        again = story.initialize(given, timeout_ms=20)
        assert once == again == (ErrorCode.NONE, producer(1_001, 1))
        assert story.transaction().timeout_ms == 20

    def test_is_fenced_if_another_producer_came_between(self) -> None:
        story = Story()
        given = story.initialize().producer
        story.initialize()
        assert story.initialize(given).error is FENCED

    def test_is_fenced_if_the_repetition_reaches_another_coordinator(self) -> None:
        """The last epoch is not in the log; Kafka does the same."""
        story = Story()
        given = story.initialize().producer
        story.initialize(given)
        story.fail_over()
        assert story.initialize(given).error is FENCED

    def test_has_its_open_transaction_aborted_first(self) -> None:
        story = Story()
        given = story.begin()
        assert story.initialize(given).error is BUSY
        story.write_markers()
        assert story.initialize(given).producer == producer(1_001, 1)

    def test_is_fenced_if_its_transaction_was_aborted_for_a_producer_that_has_begun(self) -> None:
        story = Story()
        given = story.begin()
        assert story.initialize().error is BUSY
        story.write_markers()
        assert story.initialize().producer == producer(1_001, 2)
        assert story.initialize(given).error is FENCED

    def test_is_fenced_with_an_unknown_producer_id(self) -> None:
        story = Story()
        story.initialize()
        assert story.initialize(producer(5, 0)).error is FENCED

    def test_gets_a_fresh_id_if_the_transactional_id_is_forgotten(self) -> None:
        assert Story().initialize(producer(5, 3)).producer == producer(1_001, 0)

    def test_gets_its_answer_after_an_end_that_raised_the_epoch(self) -> None:
        story = Story()
        given = story.begin(version=TV2)
        story.end(given, version=TV2)
        story.write_markers()
        assert story.initialize(given).producer == producer(1_001, 1)


class TestEpochsAreUsedUp:
    def test_the_next_producer_gets_another_id(self) -> None:
        story = Story()
        story.initialize()
        last = story.set_epoch(32_766)
        assert story.initialize().producer == producer(1_002, 0)
        assert story.add(last, P0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert story.initialize(last).error is FENCED

    def test_a_producer_that_goes_on_gets_another_id_and_may_repeat(self) -> None:
        story = Story()
        story.initialize()
        last = story.set_epoch(32_766)
        assert story.initialize(last).producer == producer(1_002, 0)
        assert story.initialize(last).producer == producer(1_002, 0)
        assert story.initialize(last).producer == producer(1_002, 0)

    def test_the_last_producer_can_still_be_fenced(self) -> None:
        story = Story()
        story.initialize()
        last = story.set_epoch(32_766)
        assert story.add(last, P0) is ErrorCode.NONE
        assert story.initialize().error is BUSY
        (markers,) = story.write_markers()
        assert markers.producer_epoch == 32_767
        assert story.add(producer(1_001, 32_767), P0) is FENCED
        assert story.end(producer(1_001, 32_767), commit=False, version=TV2).error is FENCED
        assert story.initialize(producer(1_001, 9)).error is FENCED
        assert story.initialize(last).producer == producer(1_002, 0)
        assert story.initialize().producer == producer(1_002, 1)
        assert story.initialize(last).error is FENCED


def test_what_the_log_refuses_changes_nothing() -> None:
    story = Story()
    given = story.initialize().producer
    story.refuse_appends = True
    assert story.initialize(timeout_ms=TIMEOUT_MS).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    story.refuse_appends = False
    assert story.add(given, P0) is ErrorCode.NONE
