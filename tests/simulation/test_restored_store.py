"""A backup of the store is restored: no replica deletes what it knows to be committed, and each rule is needed for it."""

import pytest

from headrace.controller import term
from headrace.controller.values import PartitionState
from headrace.replication import following
from headrace.testing.simulation.cluster import Outcome
from headrace.testing.simulation.report import Failure, play, story_of
from headrace.testing.simulation.restored_store import RestoredCluster, restore_plan

SEEDS = 40
BLOCK = 20
MOST_SEEDS = 100


def played(seed: int) -> Outcome | Failure:
    return play(restore_plan(seed), make_cluster=RestoredCluster)


@pytest.mark.parametrize("first", range(1, SEEDS + 1, BLOCK))
def test_seeds(first: int) -> None:
    for seed in range(first, first + BLOCK):
        outcome = played(seed)
        if isinstance(outcome, Failure):
            pytest.fail(story_of(outcome), pytrace=False)


def first_broken_rule() -> str:
    for seed in range(1, MOST_SEEDS + 1):
        outcome = played(seed)
        if isinstance(outcome, Failure) and outcome.rule != "liveness":
            return outcome.rule
    return ""


def test_followers_that_cut_below_their_high_watermark_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "deletes_committed", lambda *_, **__: False)
    assert first_broken_rule() == "known to be committed"


def test_controllers_that_leave_out_no_epochs_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term, "_MOST_EPOCHS_LEFT_OUT", 1)
    assert first_broken_rule() == "one leader"


def test_replicas_that_do_not_know_their_history_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PartitionState, "has_given_out", lambda *_: True)
    assert first_broken_rule() == "known to be committed"
