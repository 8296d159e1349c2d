"""A limit for all, and a share for each."""

from headrace.rest.memory_budget import MemoryBudget


def test_the_limit_counts_for_all() -> None:
    budget = MemoryBudget(100)
    assert budget.take("a", 60)
    assert not budget.take("b", 50)
    assert budget.take("b", 40)
    assert budget.held_bytes == 100
    budget.give("a", 60)
    assert budget.take("c", 60)


def test_no_owner_takes_more_than_its_share() -> None:
    budget = MemoryBudget(100, share=30)
    assert budget.take("a", 20)
    assert not budget.take("a", 11)
    assert budget.take("a", 10)
    assert budget.take("b", 30)
    budget.give("a", 30)
    assert budget.take("a", 30)


def test_one_large_thing_may_be_larger_than_a_share() -> None:
    budget = MemoryBudget(100, share=30)
    assert budget.take("a", 90)
    assert not budget.take("a", 1)
    assert not MemoryBudget(100, share=30).take("a", 101)
