"""Finds a smaller run that breaks the same rule: fewer faults, and if it can be, fair weather.

Every attempt is a whole run, so the number of attempts is bounded. Taking a fault away changes everything that comes after it:
a smaller run that fails in the same way is luck, but there are many attempts.
"""

from collections.abc import Iterator
from typing import Final

from headrace.testing.simulation.plan import Plan
from headrace.testing.simulation.report import Failure, play

_MOST_ATTEMPTS: Final = 40


def shrink(failure: Failure, attempts: int = _MOST_ATTEMPTS) -> Failure:
    """The smallest failure found within so many runs."""
    smallest = failure
    left = attempts
    is_smaller = True
    while is_smaller and left > 0:
        is_smaller = False
        for plan in _smaller_plans(smallest):
            left -= 1
            outcome = play(plan)
            if isinstance(outcome, Failure) and outcome.rule == failure.rule:
                smallest, is_smaller = outcome, True
                break
            if left <= 0:
                break
    return smallest


def _smaller_plans(failure: Failure) -> Iterator[Plan]:
    """Plans with less in them, those with much less first."""
    plan = failure.plan
    struck = {
        int(told.text.split()[1].rstrip(":"))
        for told in failure.told
        if told.text.startswith("FAULT")
    }
    numbers = [strike.number for strike in plan.strikes]
    idle = frozenset(number for number in numbers if number not in struck)
    if idle:
        yield plan.without(idle)
    if not plan.is_calm:
        yield plan.calmed()
    size = len(numbers)
    while size > 1:
        size = (size + 1) // 2
        for start in range(0, len(numbers), size):
            if size < len(numbers):
                yield plan.without(frozenset(numbers[start : start + size]))
    for number in numbers:
        yield plan.without(frozenset((number,)))
