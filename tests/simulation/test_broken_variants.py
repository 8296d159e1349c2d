"""The simulation catches what it is there to catch."""

from collections.abc import Iterable

import pytest

from headrace.testing.simulation.cluster import SimulationFailed, run_seed
from tests.simulation.broken_variants import VARIANTS, Variant

MOST_SEEDS = 500


def first_failure(seeds: Iterable[int]) -> SimulationFailed | None:
    for seed in seeds:
        try:
            run_seed(seed)
        except SimulationFailed as failure:
            return failure
    return None


@pytest.mark.parametrize(
    ("variant", "known_seed"), VARIANTS.items(), ids=[variant.__name__ for variant in VARIANTS]
)
def test_a_broken_variant_is_caught(
    variant: Variant, known_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a seed that is known to; if that has become another story, by any of the first ones."""
    variant(monkeypatch)
    failure = first_failure([known_seed]) or first_failure(range(1, MOST_SEEDS + 1))
    assert failure is not None, f"{MOST_SEEDS} seeds did not catch it"
    cause = failure.__cause__
    assert isinstance(cause, AssertionError), failure
    assert "liveness" not in str(cause), failure
