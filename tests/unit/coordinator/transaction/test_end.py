import pytest

from headrace.coordinator.transaction.events import IdentityAnswer
from headrace.coordinator.transaction.settings import TransactionSettings
from headrace.coordinator.transaction.state import Status
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.transaction.transaction_story import (
    P0,
    P1,
    TIMEOUT_MS,
    TV1,
    TV2,
    Story,
    producer,
)

NONE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
BAD_STATE = ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("commit", "prepared", "complete"),
    [
        (True, Status.PREPARE_COMMIT, Status.COMPLETE_COMMIT),
        (False, Status.PREPARE_ABORT, Status.COMPLETE_ABORT),
    ],
)
class TestVersion1:
    def test_markers_follow_the_answer(
        self, commit: bool, prepared: Status, complete: Status
    ) -> None:
        story = Story()
        given = story.begin(P1, P0)
        assert story.end(given, commit=commit) == (NONE, given)
        assert story.status() is prepared
        (markers,) = story.write_markers()
        assert markers == ("t", given.producer_id, 0, commit, 0, (P0, P1))
        assert story.status() is complete
        assert story.transaction().identity == given

    def test_repetitions(self, commit: bool, prepared: Status, complete: Status) -> None:
        story = Story()
        given = story.begin()
        story.end(given, commit=commit)
        assert story.end(given, commit=commit).error is BUSY
        assert story.end(given, commit=not commit).error is BAD_STATE
        story.write_markers()
        assert story.end(given, commit=commit) == (NONE, given)
        assert story.end(given, commit=not commit).error is BAD_STATE
        assert story.owed == []

    def test_without_a_transaction(self, commit: bool, prepared: Status, complete: Status) -> None:
        story = Story()
        given = story.initialize().producer
        assert story.end(given, commit=commit).error is BAD_STATE


@pytest.mark.parametrize("version", [TV1, TV2])
class TestEither:
    def test_others_end_nothing(self, version: int) -> None:
        story = Story()
        given = story.begin()
        mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert story.end(producer(1, 0), version=version).error is mapping
        for epoch in (-1, 1, 2):
            other = producer(given.producer_id, epoch)
            assert story.end(other, version=version).error is FENCED
        assert story.status() is Status.ONGOING

    def test_unknown_and_empty_transactional_ids(self, version: int) -> None:
        story = Story()
        unknown = story.end(producer(1, 0), version=version)
        assert unknown.error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        empty = story.end(producer(1, 0), transactional_id="", version=version)
        assert empty.error is ErrorCode.INVALID_REQUEST

    def test_a_refused_decision_is_no_decision(self, version: int) -> None:
        story = Story()
        given = story.begin(version=version)
        story.refuse_appends = True
        refused = story.end(given, version=version)
        assert refused.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert story.owed == []
        story.refuse_appends = False
        assert story.end(given, commit=False, version=version).error is NONE
        assert [each.commit for each in story.owed] == [False]

    def test_a_completion_that_the_log_refuses_is_owed(self, version: int) -> None:
        story = Story()
        given = story.begin(version=version)
        story.end(given, version=version)
        story.refuse_appends = True
        story.write_markers()
        assert story.status() is Status.PREPARE_COMMIT
        story.refuse_appends = False
        story.write_markers()
        assert story.status() is Status.COMPLETE_COMMIT

    def test_a_coordinator_that_dies_after_the_decision_leaves_the_markers_to_the_next(
        self, version: int
    ) -> None:
        story = Story()
        given = story.begin(P0, P1, version=version)
        story.end(given, version=version)
        owed = story.owed
        story.fail_over()
        assert story.owed == owed
        story.write_markers()
        assert story.status() is Status.COMPLETE_COMMIT
        story.fail_over()
        assert story.owed == []

    def test_late_news_of_markers_does_not_end_the_next_transaction(self, version: int) -> None:
        story = Story()
        given = story.begin(P0, version=version)
        story.end(given, version=version)
        (stale,) = story.write_markers()
        current = story.transaction().identity
        assert story.add(current, P0, version=version) is NONE
        story.tell_done(stale)
        assert story.status() is Status.ONGOING
        story.end(current, commit=False, version=version)
        if version == TV2:
            # Below version 2 both transactions have one epoch, but their outcomes differ.
            assert stale.producer_epoch < story.owed[0].producer_epoch
        story.tell_done(stale)
        assert story.status() is Status.PREPARE_ABORT

    def test_a_transaction_without_partitions_completes_at_once(self, version: int) -> None:
        story = Story()
        given = story.initialize().producer
        story.add(given, version=version)
        assert story.status() is Status.ONGOING
        assert story.end(given, version=version).error is NONE
        assert story.batches[-1] == 2
        assert story.owed == []
        assert story.status() is Status.COMPLETE_COMMIT


class TestVersion2:
    def test_the_answer_has_the_next_epoch_and_so_have_the_markers(self) -> None:
        story = Story()
        given = story.begin(version=TV2)
        assert story.end(given, version=TV2) == (NONE, producer(1_001, 1))
        (markers,) = story.write_markers()
        assert (markers.producer_epoch, markers.transaction_version) == (1, 2)
        assert story.transaction().identity == producer(1_001, 1)

    # Kafka's own table: what Empty, CompleteAbort and CompleteCommit answer to a repeated and to a new EndTxn.
    @pytest.mark.parametrize(
        ("before", "commit", "is_repeated", "error", "raises"),
        [
            (None, False, True, FENCED, False),
            (None, False, False, NONE, True),
            (None, True, True, FENCED, False),
            (None, True, False, BAD_STATE, False),
            ("abort", False, True, NONE, False),
            ("abort", False, False, NONE, True),
            ("abort", True, True, BAD_STATE, False),
            ("abort", True, False, BAD_STATE, False),
            ("commit", False, True, BAD_STATE, False),
            ("commit", False, False, NONE, True),
            ("commit", True, True, NONE, False),
            ("commit", True, False, BAD_STATE, False),
        ],
    )
    def test_repeated_and_new_requests(
        self, before: str | None, commit: bool, is_repeated: bool, error: ErrorCode, raises: bool
    ) -> None:
        story = Story()
        given = story.initialize().producer
        given = story.initialize().producer
        if before is not None:
            story.add(given, P0, version=TV2)
            story.end(given, commit=before == "commit", version=TV2)
            story.write_markers()
        current = story.transaction().identity
        asked = current._replace(epoch=current.epoch - 1) if is_repeated else current
        answer = story.end(asked, commit=commit, version=TV2)
        assert answer.error is error
        expected = current._replace(epoch=current.epoch + raises)
        assert story.transaction().identity == expected
        if error is NONE:
            assert answer.producer == expected
        if raises:
            assert story.status() is Status.COMPLETE_ABORT
            assert story.owed == []

    @pytest.mark.parametrize("commit", [True, False])
    def test_repetitions_while_markers_are_under_way(self, commit: bool) -> None:
        story = Story()
        given = story.begin(version=TV2)
        raised = story.end(given, commit=commit, version=TV2).producer
        assert story.end(given, commit=commit, version=TV2).error is BUSY
        assert story.end(given, commit=not commit, version=TV2).error is BAD_STATE
        assert story.end(raised, commit=commit, version=TV2).error is FENCED

    def test_a_delayed_end_cannot_end_the_next_transaction(self) -> None:
        """KAFKA-17754, which version 1 cannot tell from the request of the next transaction."""
        story = Story()
        given = story.begin(version=TV2)
        raised = story.end(given, version=TV2).producer
        story.write_markers()
        story.add(raised, P1, version=TV2)
        assert story.end(given, version=TV2).error is FENCED
        assert story.status() is Status.ONGOING

    def test_the_id_changes_when_its_epochs_are_used_up(self) -> None:
        story = Story()
        story.initialize()
        last = story.set_epoch(32_766)
        story.add(last, P0, version=TV2)
        answer = story.end(last, version=TV2)
        assert answer == (NONE, producer(1_002, 0))
        assert story.end(last, version=TV2).error is BUSY
        (markers,) = story.write_markers()
        assert (markers.producer_id, markers.producer_epoch) == (1_001, 32_767)
        assert story.transaction().identity == producer(1_002, 0)
        assert story.end(last, version=TV2) == answer
        assert story.end(last, commit=False, version=TV2).error is BAD_STATE
        assert story.initialize(last).producer == producer(1_002, 0)

    def test_the_change_of_ids_survives_a_failover(self) -> None:
        story = Story()
        story.initialize()
        last = story.set_epoch(32_766)
        story.add(last, P0, version=TV2)
        answer = story.end(last, version=TV2)
        story.fail_over()
        story.write_markers()
        assert story.transaction().identity == answer.producer
        assert story.end(last, version=TV2) == answer

    def test_an_abort_without_a_transaction_changes_the_id_too(self) -> None:
        story = Story()
        story.initialize()
        last = story.set_epoch(32_766)
        assert story.end(last, commit=False, version=TV2) == (NONE, producer(1_002, 0))

    def test_a_client_that_goes_back_to_version_1(self) -> None:
        story = Story()
        given = story.begin(version=TV2)
        raised = story.end(given, version=TV2).producer
        story.write_markers()
        story.add(raised, P0)
        assert story.end(raised) == (NONE, raised)
        (markers,) = story.write_markers()
        assert markers.transaction_version == 0


class TestOverdue:
    @pytest.mark.parametrize("version", [TV1, TV2])
    def test_an_open_transaction_is_aborted_and_its_producer_fenced(self, version: int) -> None:
        story = Story()
        given = story.begin(version=version)
        story.sleep(TIMEOUT_MS)
        assert story.status() is Status.ONGOING
        story.sleep(story.settings.abort_check_interval_ms + 1)
        (markers,) = story.write_markers()
        assert (markers.commit, markers.producer_epoch) == (False, 1)
        late = story.end(given, version=version)
        expected = BAD_STATE if version == TV2 else FENCED
        assert late == IdentityAnswer(expected)
        assert story.initialize().producer == producer(1_001, 2)

    @pytest.mark.parametrize("version", [TV1, TV2])
    def test_its_producer_goes_on_with_the_raised_epoch(self, version: int) -> None:
        story = Story()
        given = story.begin(version=version)
        story.sleep(2 * TIMEOUT_MS)
        story.write_markers()
        assert story.initialize(given).producer == producer(1_001, 1)

    def test_the_clock_begins_with_the_first_partition_and_goes_on_over_a_failover(self) -> None:
        story = Story()
        given = story.initialize().producer
        story.sleep(10 * TIMEOUT_MS)
        story.add(given, P0)
        story.sleep(TIMEOUT_MS // 2)
        story.add(given, P1)
        story.fail_over()
        story.sleep(TIMEOUT_MS // 2 + 2 * story.settings.abort_check_interval_ms)
        assert story.status() is Status.PREPARE_ABORT

    def test_decided_and_ended_transactions_are_left_alone(self) -> None:
        story = Story()
        given = story.begin()
        story.end(given)
        story.sleep(10 * TIMEOUT_MS)
        assert story.status() is Status.PREPARE_COMMIT
        story.write_markers()
        story.sleep(10 * TIMEOUT_MS)
        assert story.status() is Status.COMPLETE_COMMIT

    def test_a_refused_abort_is_tried_again(self) -> None:
        story = Story()
        story.begin()
        story.refuse_appends = True
        story.sleep(2 * TIMEOUT_MS)
        assert story.status() is Status.ONGOING
        story.refuse_appends = False
        story.sleep(story.settings.abort_check_interval_ms)
        assert story.status() is Status.PREPARE_ABORT

    def test_many_are_aborted_in_several_batches(self) -> None:
        story = Story(TransactionSettings(abort_check_interval_ms=TIMEOUT_MS * 2))
        many = [TopicPartition("wide", index) for index in range(400)]
        for number in range(5):
            story.begin(*many, transactional_id=f"t{number}")
        story.batches.clear()
        story.sleep(TIMEOUT_MS * 2)
        assert story.batches == [2]
        story.sleep(1_000)
        assert story.batches == [2, 2, 1]
        assert len(story.owed) == 5

    def test_one_that_is_larger_than_a_batch_is_aborted_alone(self) -> None:
        story = Story()
        story.begin(*(TopicPartition("wide", index) for index in range(1_500)))
        story.sleep(2 * TIMEOUT_MS)
        assert story.status() is Status.PREPARE_ABORT
