"""The simulation catches what it is there to catch."""

import os
from collections.abc import Iterable

import pytest

from headrace.testing.simulation.plan import draw_plan
from headrace.testing.simulation.report import Failure, play
from tests.simulation.broken_variants import Variant
from tests.simulation.caught_variants import VARIANTS, Caught

MOST_SEEDS = int(os.environ.get("HEADRACE_MUTANT_SEEDS", "1000"))


def first_failure(seeds: Iterable[int]) -> Failure | None:
    """The first seed that breaks a rule. That something is never done is no proof: it may have other causes."""
    for seed in seeds:
        outcome = play(draw_plan(seed))
        if isinstance(outcome, Failure) and outcome.rule != "liveness":
            return outcome
    return None


def may_catch(seed: int, caught: Caught) -> bool:
    return not caught.faults or not set(caught.faults).isdisjoint(draw_plan(seed).faults)


@pytest.mark.parametrize(
    ("variant", "caught"), VARIANTS.items(), ids=[variant.__name__ for variant in VARIANTS]
)
def test_a_broken_variant_is_caught(
    variant: Variant, caught: Caught, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a seed that is known to; if that has become another story, by any of the first ones."""
    variant(monkeypatch)
    failure = first_failure([caught.seed]) or first_failure(
        seed for seed in range(1, MOST_SEEDS + 1) if may_catch(seed, caught)
    )
    assert failure is not None, f"{MOST_SEEDS} seeds did not catch it"
    assert isinstance(failure.error, AssertionError), failure.error
