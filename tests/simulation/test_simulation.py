"""A thousand seeds, the same each time. More by `python -m headrace.testing.simulation --seeds N`."""

import os
import re
import subprocess
import sys

import pytest

from headrace.testing.simulation.__main__ import main
from headrace.testing.simulation.cluster import Cluster, SimulationFailed, run_seed
from headrace.testing.simulation.plan import Fault, draw_plan
from tests.simulation.broken_variants import acknowledges_before_the_isr_has_it

SEEDS = 1_000
BLOCK = 50  # seeds that one test plays; tests may run side by side


@pytest.mark.parametrize("first", range(1, SEEDS + 1, BLOCK))
def test_seeds(first: int) -> None:
    outcomes = [run_seed(seed) for seed in range(first, first + BLOCK)]
    assert min(outcome.steps for outcome in outcomes) >= 1_000
    # A simulation in which nothing happens proves nothing.
    assert sum(outcome.committed for outcome in outcomes) > 20 * BLOCK
    assert sum(outcome.epochs for outcome in outcomes) > 2 * BLOCK


def test_every_fault_is_drawn() -> None:
    drawn = {fault for seed in range(1, 101) for fault in draw_plan(seed, 1).faults}
    assert drawn == set(Fault)


def test_a_seed_is_the_same_run_in_every_process() -> None:
    command = [sys.executable, "-m", "headrace.testing.simulation", "--first", "48", "--seeds", "4"]
    told = {
        subprocess.run(
            [*command, "--jobs", jobs],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.partition(" leader epochs")[0]
        for hash_seed, jobs in (("1", "1"), ("2", "2"))
    }
    assert len(told) == 1
    assert told.pop().startswith("4 seeds are well, 0 failed; ")


def test_a_seed_is_the_same_story() -> None:
    stories = []
    for _ in range(2):
        cluster = Cluster(draw_plan(5, 400))
        cluster.set_up()
        cluster.suffer()
        stories.append(list(cluster.story))
        for broker in cluster.brokers.values():
            broker.end()
    assert stories[0] == stories[1]
    assert len(stories[0]) > 20


def test_a_failure_tells_its_seed_and_plays_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    acknowledges_before_the_isr_has_it(monkeypatch)
    with pytest.raises(SimulationFailed) as failure:
        run_seed(2)
    text = str(failure.value)
    assert text.startswith("seed 2 fails at step ")
    assert "acknowledged, not committed" in text
    assert " leads epoch " in text, "the story so far"
    assert "python -m headrace.testing.simulation --seed 2 --steps 1000" in text
    assert main(["--seed", "2"]) == 1
    assert text in capsys.readouterr().out, "the same failure at the same step"
    assert main(["--first", "2", "--seeds", "4", "--keep-going"]) == 1
    told = re.search(r"(\d) seeds are well, (\d) failed", capsys.readouterr().out)
    assert told is not None
    well, failed = map(int, told.groups())
    assert (well + failed, failed > 1) == (4, True), "the first failure is not the last seed"
