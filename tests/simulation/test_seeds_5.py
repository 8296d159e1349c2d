"""The sixth tenth of the simulation's seeds (`seed_blocks`)."""

import pytest

from tests.simulation.seed_blocks import blocks, play_block


@pytest.mark.parametrize("seeds", blocks(5), ids=lambda seeds: f"from {seeds.start}")
def test_seeds(seeds: range) -> None:
    play_block(seeds)
