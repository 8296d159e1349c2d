"""The simulation itself: it draws every fault, is the same run each time, and tells of a failure. `test_seeds_*` play the seeds."""

import os
import re
import subprocess
import sys

import pytest

from headrace.testing.simulation.__main__ import main
from headrace.testing.simulation.plan import Fault, draw_plan
from headrace.testing.simulation.report import Failure, command_for, play
from headrace.testing.simulation.shrink import shrink
from tests.simulation.broken_variants import acknowledges_before_the_isr_has_it


def test_every_fault_is_drawn() -> None:
    drawn = {strike.fault for seed in range(1, 101) for strike in draw_plan(seed).strikes}
    assert drawn == set(Fault)


def test_a_seed_is_the_same_run_in_every_process() -> None:
    """To the last event: the digest is taken over the moment of every step and every byte that arrived.

    With another hash seed, and beside another process that plays at the same time.
    """
    command = [
        sys.executable,
        "-m",
        "headrace.testing.simulation",
        "--first",
        "48",
        "--seeds",
        "4",
    ]
    told = {
        subprocess.run(
            [*command, "--jobs", jobs],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.partition(", in ")[0]
        for hash_seed, jobs in (("1", "1"), ("2", "2"))
    }
    assert len(told) == 1
    assert re.match(r"4 seeds are well, 0 failed; .* digest [0-9a-f]{8}$", told.pop())


def test_a_failure_tells_its_story_and_plays_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    acknowledges_before_the_isr_has_it(monkeypatch)
    assert main(["--seeds", "2", "--keep-going", "--no-shrink"]) == 1
    told = capsys.readouterr().out
    assert "seed 1 breaks the rule 'acknowledged means committed' at step " in told
    assert " leads in epoch " in told, "the story so far"
    assert "play it again:            python -m headrace.testing.simulation --seed 1\n" in told
    assert "seed 2 breaks the rule" in told
    assert "0 seeds are well, 2 failed" in told
    assert main(["--seed", "1"]) == 1
    assert capsys.readouterr().out in told, "the same failure at the same step"


def test_a_failure_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledges_before_the_isr_has_it(monkeypatch)
    failure = play(draw_plan(1))
    assert isinstance(failure, Failure)
    smaller = shrink(failure, attempts=3)
    assert smaller.rule == failure.rule
    assert len(smaller.plan.strikes) < len(failure.plan.strikes)
    arguments = command_for(smaller.plan).partition("simulation ")[2].split()
    assert arguments[:3] == ["--seed", "1", "--without"]
    assert main([*arguments, "--lines", "1"]) == 1, "the smaller run has a command of its own"
