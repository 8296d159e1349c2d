"""Who has to stand back, by a clock that only moves when told."""

from collections.abc import Callable

import pytest

from headrace.broker.net.read_budget import (
    ALONE_BUDGET_S,
    SHARED_BUDGET_S,
    SHARED_FOR_S,
    ReadBudget,
)

Takes = Callable[..., bool]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def takes(clock: Clock) -> Takes:
    """A function: a client's read is dealt with for so long; whether the client has to stand back then."""
    share = ReadBudget(lambda resume: None, clock)

    def take(client: str, seconds: float, *, changes: int = 0) -> bool:
        arrived = clock.now
        clock.now += seconds
        return share.is_exhausted(client, arrived, changes)

    return take


def test_a_client_stands_back_when_its_reads_together_took_long(takes: Takes) -> None:
    turns = [takes("one", 0.4 * ALONE_BUDGET_S) for _ in range(9)]
    assert turns == [False, False, True] * 3


def test_one_read_may_be_too_long(takes: Takes) -> None:
    assert takes("one", 2 * ALONE_BUDGET_S)


def test_another_client_begins_anew(takes: Takes) -> None:
    turns = [
        takes(client, 0.6 * ALONE_BUDGET_S) for client in ("one", "other", "one", "other", "other")
    ]
    assert turns == [False, False, False, False, True]


def test_after_a_rest_a_client_begins_anew(takes: Takes, clock: Clock) -> None:
    for _ in range(5):
        assert not takes("one", 0.6 * ALONE_BUDGET_S)
        clock.now += 0.0005


def test_turns_are_short_in_company_and_for_a_while_after(takes: Takes, clock: Clock) -> None:
    turns = [takes("one", 0.6 * SHARED_BUDGET_S, changes=2) for _ in range(6)]
    assert turns == [False, True] * 3
    clock.now += SHARED_FOR_S
    turns = [takes("one", 0.6 * SHARED_BUDGET_S, changes=2) for _ in range(6)]
    assert turns == [False] * 6
    assert takes("one", 2 * SHARED_BUDGET_S, changes=3)
