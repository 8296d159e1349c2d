"""A backup of the store is restored: no replica deletes what it knows to be committed, and each rule is needed for it."""

import pytest

from headrace.controller import term
from headrace.controller.values import PartitionState
from headrace.replication import following
from headrace.testing.simulation.cluster import SimulationFailed
from headrace.testing.simulation.restored_store import run_restore

SEEDS = 200
BLOCK = 50
MOST_SEEDS = 100


@pytest.mark.parametrize("first", range(1, SEEDS + 1, BLOCK))
def test_seeds(first: int) -> None:
    for seed in range(first, first + BLOCK):
        run_restore(seed)


def first_failure() -> str:
    for seed in range(1, MOST_SEEDS + 1):
        try:
            run_restore(seed)
        except SimulationFailed as failure:
            return str(failure.__cause__)
    return ""


def test_followers_that_cut_below_their_high_watermark_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "deletes_committed", lambda *_, **__: False)
    assert "committed is lost" in first_failure()


def test_controllers_that_leave_out_no_epochs_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term, "_MOST_EPOCHS_LEFT_OUT", 1)
    assert "one leader" in first_failure()


def test_replicas_that_do_not_know_their_history_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PartitionState, "has_given_out", lambda *_: True)
    assert "committed is lost" in first_failure()
