"""Plays seeds: `python -m headrace.testing.simulation --seeds 1000`, or one of them again with `--seed 17`."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Final

from headrace.testing.simulation.cluster import DEFAULT_STEPS, Outcome, tell_seed

_SEEDS_AT_A_TIME: Final = 10


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@contextmanager
def _played(seeds: range, *, steps: int, jobs: int) -> Iterator[Iterable[Outcome | str]]:
    play = partial(tell_seed, steps=steps)
    if jobs == 1:
        yield map(play, seeds)
        return
    executor = ProcessPoolExecutor(jobs, get_context("spawn"))
    try:
        yield executor.map(play, seeds, chunksize=_SEEDS_AT_A_TIME)
    finally:
        executor.shutdown(cancel_futures=True)


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 if a seed failed."""
    parser = argparse.ArgumentParser(
        prog="python -m headrace.testing.simulation", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=1_000, help="how many (default 1000)")
    parser.add_argument("--first", type=int, default=1, help="where to begin (default 1)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help="steps with faults, each")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--keep-going", action="store_true", help="play the rest after a failure")
    options = parser.parse_args(arguments)
    first = options.first if options.seed is None else options.seed
    count = options.seeds if options.seed is None else 1
    started = time.perf_counter()
    outcomes: list[Outcome] = []
    failures = 0
    seeds = range(first, first + count)
    with _played(seeds, steps=options.steps, jobs=options.jobs) as played:
        for outcome in played:
            if isinstance(outcome, Outcome):
                outcomes.append(outcome)
                continue
            _say(outcome)
            failures += 1
            if not options.keep_going:
                break
    took_s = time.perf_counter() - started
    steps = sum(outcome.steps for outcome in outcomes)
    _say(
        f"{len(outcomes)} seeds are well, {failures} failed; {steps:,} steps, "
        f"{sum(outcome.virtual_ms for outcome in outcomes) / 60_000:,.0f} virtual minutes, "
        f"{sum(outcome.committed for outcome in outcomes):,} records committed under "
        f"{sum(outcome.epochs for outcome in outcomes):,} leader epochs, in {took_s:.1f} s "
        f"({steps / took_s:,.0f} steps/s)"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
