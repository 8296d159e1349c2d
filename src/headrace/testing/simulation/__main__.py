"""Plays seeds of simulated clusters: `python -m headrace.testing.simulation --seeds 1000 --jobs 2`, or one of them again."""

import argparse
import logging
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Final

from headrace.testing.simulation.cluster import Outcome
from headrace.testing.simulation.plan import Plan, draw_plan
from headrace.testing.simulation.report import (
    STORY_LINES,
    Failure,
    play,
    play_seed,
    story_of,
)
from headrace.testing.simulation.shrink import shrink

_SEEDS_AT_A_TIME: Final = 10


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@contextmanager
def _played(seeds: range, *, jobs: int) -> Iterator[Iterable[Outcome | int]]:
    if jobs == 1:
        yield map(play_seed, seeds)
        return
    executor = ProcessPoolExecutor(jobs, get_context("spawn"))
    try:
        yield executor.map(play_seed, seeds, chunksize=_SEEDS_AT_A_TIME)
    finally:
        executor.shutdown(cancel_futures=True)


def _numbers(text: str) -> frozenset[int]:
    """What `1-3,7` stands for."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m headrace.testing.simulation", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=1_000, help="how many (default 1000)")
    parser.add_argument("--first", type=int, default=1, help="where to begin (default 1)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--keep-going", action="store_true", help="play the rest after a failure")
    parser.add_argument("--no-shrink", action="store_true", help="tell a failure as it is")
    parser.add_argument("--seed", type=int, help="only this one, and tell its story")
    parser.add_argument("--without", type=_numbers, default=frozenset(), help="strikes left out")
    parser.add_argument("--calm", action="store_true", help="with fair weather")
    parser.add_argument("--log", default="error", help="level of the brokers' logs in the story")
    parser.add_argument("--lines", type=int, default=STORY_LINES, help="of the story")
    return parser


def _tell_one(plan: Plan, options: argparse.Namespace) -> int:
    outcome = play(plan, logging.getLevelNamesMapping()[options.log.upper()])
    if isinstance(outcome, Failure):
        _say(story_of(outcome, options.lines))
        return 1
    _say(f"seed {plan.seed} is well: {outcome}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 if a seed failed."""
    options = _parser().parse_args(arguments)
    if options.seed is not None:
        plan = draw_plan(options.seed).without(options.without)
        return _tell_one(plan.calmed() if options.calm else plan, options)
    started = time.perf_counter()
    outcomes: list[Outcome] = []
    failures = 0
    seeds = range(options.first, options.first + options.seeds)
    with _played(seeds, jobs=options.jobs) as played:
        for outcome in played:
            if isinstance(outcome, Outcome):
                outcomes.append(outcome)
                continue
            failures += 1
            failure = play(draw_plan(outcome))
            assert isinstance(failure, Failure), f"seed {outcome} is not the same run twice"
            _say(story_of(failure if options.no_shrink else shrink(failure), options.lines))
            if not options.keep_going:
                break
    _say(_summary(outcomes, failures, time.perf_counter() - started))
    return 1 if failures else 0


def _summary(outcomes: list[Outcome], failures: int, took_s: float) -> str:
    steps = sum(outcome.steps for outcome in outcomes)
    virtual_s = sum(outcome.virtual_ms for outcome in outcomes) / 1_000
    return (
        f"{len(outcomes)} seeds are well, {failures} failed; {steps:,} steps, "
        f"{virtual_s / 60:,.0f} virtual minutes, "
        f"{sum(outcome.committed for outcome in outcomes):,} records committed under "
        f"{sum(outcome.epochs for outcome in outcomes):,} leader epochs, "
        f"digest {sum(outcome.digest for outcome in outcomes) & 0xFFFFFFFF:08x}, in {took_s:.1f} s "
        f"({len(outcomes) / took_s:.2f} seeds/s, {virtual_s / took_s:.1f} virtual seconds/s, "
        f"{steps / took_s:,.0f} steps/s)"
    )


if __name__ == "__main__":
    sys.exit(main())
