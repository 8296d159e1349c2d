"""Which seeds of the simulation a test module plays: the same each time, more by HEADRACE_SIMULATION_SEEDS.

They are cut into modules, because the workers of a test run share modules, and into blocks, because a test has a time limit.
"""

import os
from typing import Final

import pytest

from headrace.testing.simulation.cluster import Outcome
from headrace.testing.simulation.plan import draw_plan
from headrace.testing.simulation.report import Failure, play, story_of

MODULES: Final = 10
BLOCK: Final = 10
SEEDS: Final = int(os.environ.get("HEADRACE_SIMULATION_SEEDS", "100"))


def blocks(module: int) -> list[range]:
    """The seeds of one module, block by block."""
    share = -(-SEEDS // MODULES)
    seeds = range(1 + module * share, min(SEEDS, (module + 1) * share) + 1)
    return [seeds[at : at + BLOCK] for at in range(0, len(seeds), BLOCK)]


def played(seed: int) -> Outcome:
    """A seed that breaks no rule; another one fails the test with its story."""
    outcome = play(draw_plan(seed))
    if isinstance(outcome, Failure):
        pytest.fail(story_of(outcome), pytrace=False)
    return outcome


def play_block(seeds: range) -> None:
    """A simulation in which nothing happens proves nothing."""
    outcomes = [played(seed) for seed in seeds]
    assert min(outcome.steps for outcome in outcomes) >= 2_000
    assert sum(outcome.committed for outcome in outcomes) > 50 * len(outcomes)
    assert sum(outcome.epochs for outcome in outcomes) > 3 * len(outcomes)
