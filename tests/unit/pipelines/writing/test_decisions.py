"""Decisions of exactly-once sinks: what a task, a commit and an abort do, and how the topic's log is read."""

import pytest

from headrace.client.transaction_coordinator import OpenTransaction
from headrace.pipelines.writing.decisions import (
    CommitPlan,
    Decision,
    DecisionLog,
    SinkState,
    Step,
    WrongBatch,
    commit_plan,
    completed_record,
    decision_record,
    task_step,
    undecided,
)
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record
from headrace.records.control_batch import ControlType, build_marker


def transaction(number: int, epoch: int = 0) -> OpenTransaction:
    return OpenTransaction(
        transactional_id=f"t-{number}", producer_id=number, producer_epoch=epoch, version=2
    )


ONE, TWO = transaction(1), transaction(2)
DECISION = Decision(5, (ONE, TWO))
PENDING = SinkState(DECISION)
DONE = SinkState(DECISION, completed_batch=5)


@pytest.mark.parametrize("state", [SinkState(), DONE])
def test_a_batch_that_is_next_is_written(state: SinkState) -> None:
    assert task_step(state, 6, older_is_done=False) is Step.WRITE


@pytest.mark.parametrize("state", [PENDING, DONE])
def test_a_batch_that_is_decided_is_not_written_again(state: SinkState) -> None:
    assert task_step(state, 5, older_is_done=False) is Step.SKIP


def test_no_batch_is_written_before_the_last_one_is_confirmed() -> None:
    """Its transactional ids would be taken, and its decided transactions aborted by that."""
    with pytest.raises(WrongBatch, match="batch 5 is decided"):
        task_step(PENDING, 6, older_is_done=False)
    with pytest.raises(WrongBatch, match="batch 5 is decided"):
        commit_plan(PENDING, 6, [ONE], older_is_done=True)


def test_an_older_batch_is_a_checkpoint_that_was_set_back_or_a_version_that_is_done() -> None:
    with pytest.raises(WrongBatch, match="checkpoint was set back"):
        task_step(DONE, 4, older_is_done=False)
    assert task_step(DONE, 4, older_is_done=True) is Step.SKIP


def test_the_first_commit_decides_and_then_ends() -> None:
    plan = commit_plan(SinkState(), 5, [ONE, TWO], older_is_done=False)
    assert plan == CommitPlan(decide=DECISION, finish=DECISION)


def test_a_repeated_commit_finishes_what_was_decided_and_aborts_its_own() -> None:
    own = transaction(3)
    plan = commit_plan(PENDING, 5, [own], older_is_done=False)
    assert plan == CommitPlan(finish=DECISION, abort=(own,))
    assert commit_plan(DONE, 5, [own], older_is_done=False) == CommitPlan(abort=(own,))
    assert commit_plan(DONE, 5, [], older_is_done=False) == CommitPlan()


def test_an_older_version_with_open_transactions_aborts_them() -> None:
    assert commit_plan(DONE, 4, [transaction(3)], older_is_done=True).abort == (transaction(3),)


def test_a_commit_without_transactions_decides_nothing() -> None:
    assert commit_plan(SinkState(), 5, [], older_is_done=False) == CommitPlan()


def test_an_abort_leaves_decided_transactions_alone() -> None:
    """Spark aborts after a commit that failed, which may have written the decision."""
    retry = transaction(1, epoch=1)
    assert undecided(PENDING, [ONE, TWO, retry]) == (retry,)
    assert undecided(SinkState(), [ONE]) == (ONE,)


# -- the log -------------------------------------------------------------------------------------


class Log:
    """Batches with rising offsets."""

    def __init__(self) -> None:
        self.offset = 0

    def decision(self, sink: str, decision: Decision, producer_id: int = 90) -> bytes:
        options = BatchOptions(
            producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )
        return self._batch(decision_record(sink, decision), options)

    def completed(self, sink: str, batch_id: int) -> bytes:
        return self._batch(completed_record(sink, batch_id), BatchOptions())

    def _batch(self, record: tuple[bytes, bytes], options: BatchOptions) -> bytes:
        batch = build_batch([Record(self.offset, 0, *record)], options)
        self.offset += 1
        return bytes(batch)

    def marker(self, kind: ControlType, producer_id: int = 90) -> bytes:
        batch = build_marker(
            kind,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=0,
            offset=self.offset,
        )
        self.offset += 1
        return bytes(batch)


def test_a_decision_counts_when_its_transaction_is_committed() -> None:
    log, found = Log(), DecisionLog()
    found.feed(log.decision("q", DECISION))
    assert found.state_of("q") == SinkState()
    found.feed(log.marker(ControlType.COMMIT))
    assert found.state_of("q") == PENDING
    found.feed(log.completed("q", 5))
    assert found.state_of("q") == DONE
    assert found.state_of("other") == SinkState()


def test_an_aborted_decision_never_counts() -> None:
    log, found = Log(), DecisionLog()
    found.feed(log.decision("q", DECISION) + log.marker(ControlType.ABORT))
    found.feed(log.marker(ControlType.COMMIT))
    found.settle(log.offset)
    assert found.state_of("q") == SinkState()


def test_an_open_transaction_of_another_sink_hides_nothing() -> None:
    log, found = Log(), DecisionLog()
    found.feed(
        log.decision("other", DECISION, producer_id=91)
        + log.decision("q", DECISION)
        + log.marker(ControlType.COMMIT)
    )
    found.settle(0)
    assert found.state_of("q") == PENDING
    assert found.state_of("other") == SinkState()


def test_records_whose_marker_was_compacted_away_are_committed() -> None:
    log, found = Log(), DecisionLog()
    found.feed(log.decision("q", DECISION))
    found.settle(1)
    assert found.state_of("q") == PENDING


def test_a_batch_that_came_in_part_or_before_is_taken_once() -> None:
    log, found = Log(), DecisionLog()
    first = log.decision("q", DECISION)
    rest = log.marker(ControlType.COMMIT)
    found.feed(first + rest[:-1])
    assert found.position == 1
    found.feed(first + rest)
    assert (found.position, found.state_of("q")) == (2, PENDING)
    newer = Decision(6, (transaction(1, epoch=2),))
    found.feed(log.decision("q", newer) + log.marker(ControlType.COMMIT))
    assert found.state_of("q") == SinkState(newer, completed_batch=None)
