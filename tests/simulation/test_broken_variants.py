"""The simulation catches what it is there to catch. `make mutants` plays it.

`make test` does not: any change of the code makes other stories of the seeds, and looking for a new one that catches a variant can
take a quarter of an hour.
"""

import os
from collections.abc import Iterable, Iterator

import pytest

from headrace.testing.simulation.plan import Plan, draw_plan
from headrace.testing.simulation.report import Failure, play
from tests.simulation import broken_variants
from tests.simulation.broken_variants import Variant
from tests.simulation.caught_variants import NOT_CAUGHT, VARIANTS, Caught

MUTANTS = "HEADRACE_MUTANTS"
MOST_SEEDS = int(os.environ.get("HEADRACE_MUTANT_SEEDS", "1000"))


def first_failure(plans: Iterable[Plan], caught: Caught) -> Failure | None:
    """The first run that breaks a rule. That something is never done is mostly no proof: it may have other causes."""
    for plan in plans:
        outcome = play(plan)
        if isinstance(outcome, Failure) and (caught.by_liveness or outcome.rule != "liveness"):
            return outcome
    return None


def plans_to_try(caught: Caught) -> Iterator[Plan]:
    """The seed that is known to catch it; if that has become another story, the first ones, those with most of the faults first."""
    yield draw_plan(caught.seed)
    plans = filter(caught.may_catch, map(draw_plan, range(1, MOST_SEEDS + 1)))
    yield from sorted(plans, key=caught.strength, reverse=True)


@pytest.mark.skipif(MUTANTS not in os.environ, reason=f"{MUTANTS} is not set: make mutants")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("variant", "caught"), VARIANTS.items(), ids=[variant.__name__ for variant in VARIANTS]
)
def test_a_broken_variant_is_caught(
    variant: Variant, caught: Caught, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant(monkeypatch)
    failure = first_failure(plans_to_try(caught), caught)
    assert failure is not None, f"{MOST_SEEDS} seeds did not catch it"
    monkeypatch.undo()
    assert not isinstance(play(failure.plan), Failure), "the seed fails without the variant, too"


def test_every_broken_variant_is_accounted_for() -> None:
    made = {
        made
        for name, made in vars(broken_variants).items()
        if callable(made) and getattr(made, "__module__", "") == broken_variants.__name__
    }
    assert made == VARIANTS.keys() | NOT_CAUGHT.keys()
    assert not VARIANTS.keys() & NOT_CAUGHT.keys()
