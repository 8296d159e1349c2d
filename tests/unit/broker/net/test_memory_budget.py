"""Who may read on when memory for requests is short."""

from headrace.broker.net.memory_budget import MemoryBudget


class Holder:
    def __init__(self, budget: MemoryBudget) -> None:
        self.wakes = 0
        self._budget = budget

    def ask(self, *, is_mid_request: bool = True) -> bool:
        if self._budget.may_go_on(self, is_mid_request=is_mid_request):
            return True
        self._budget.wait(self, self._wake, is_mid_request=is_mid_request)
        return False

    def _wake(self) -> None:
        self.wakes += 1


def test_while_there_is_room_everyone_goes_on() -> None:
    budget = MemoryBudget(100)
    budget.take(99)
    assert Holder(budget).ask()
    assert budget.favoured is None


def test_those_who_wait_are_woken_in_order_when_there_is_room() -> None:
    budget = MemoryBudget(100)
    first, second = Holder(budget), Holder(budget)
    budget.take(150)
    assert not first.ask(is_mid_request=False)
    assert not second.ask(is_mid_request=False)
    budget.give_back(49)
    assert (first.wakes, second.wakes) == (0, 0)
    budget.give_back(2)
    assert (first.wakes, second.wakes) == (1, 1)


def test_halves_of_requests_that_fill_the_memory_do_not_wait_for_each_other_for_ever() -> None:
    budget = MemoryBudget(100)
    first, second, third = Holder(budget), Holder(budget), Holder(budget)
    budget.take(120)
    assert first.ask()
    assert not third.ask(is_mid_request=False)
    assert not second.ask()
    budget.leave(first)
    assert (second.wakes, third.wakes) == (1, 0)
    assert second.ask()
    assert not first.ask()


def test_whoever_is_gone_is_not_woken() -> None:
    budget = MemoryBudget(100)
    gone = Holder(budget)
    budget.take(150)
    assert not gone.ask(is_mid_request=False)
    budget.leave(gone)
    budget.give_back(150)
    assert gone.wakes == 0
