"""When the loop goes on turning after an answer, and when it goes to sleep."""

from collections.abc import Callable

from headrace.broker.net.busy_poll import BusyPoll

LONGEST_S = 0.0002
NEAR_S = 0.00005
TURN_S = 0.000002


class Machine:
    """A loop that only turns, and its two clocks."""

    def __init__(self) -> None:
        self.now = 1.0
        self.cpu = 0.0
        self.waiting: list[Callable[[], None]] = []
        self.poll = BusyPoll(
            self.waiting.append, LONGEST_S, clock=lambda: self.now, cpu_clock=lambda: self.cpu
        )

    def request(self, *, after_s: float, nbytes: int = 100, client: str = "one") -> None:
        """Comes `after_s` after the last answer."""
        self.now += after_s
        self.poll.arrived(client, nbytes)
        self.poll.answered()

    def turns(self, *, seconds: float = 1.0, share: float = 1.0) -> int:
        """How often the loop turns within `seconds`, if it gets that share of the core."""
        count = 0
        end = self.now + seconds
        while self.waiting and self.now < end:
            self.now += TURN_S / share
            self.cpu += TURN_S
            self.waiting.pop()()
            count += 1
        return count


def test_requests_far_apart_let_it_sleep_at_once() -> None:
    machine = Machine()
    for _ in range(3):
        machine.request(after_s=2 * LONGEST_S)
        assert machine.turns() == 0


def test_requests_close_together_keep_it_turning_for_a_while() -> None:
    machine = Machine()
    machine.request(after_s=1)
    machine.request(after_s=NEAR_S)
    assert machine.turns(seconds=NEAR_S) > 0
    machine.request(after_s=0)
    assert round(machine.turns() * TURN_S / LONGEST_S, 1) == 1.0
    assert machine.waiting == []


def test_it_turns_once_per_loop_however_many_requests_there_are() -> None:
    machine = Machine()
    machine.request(after_s=1)
    for _ in range(3):
        machine.request(after_s=NEAR_S)
    assert len(machine.waiting) == 1


def test_several_clients_are_not_waited_for() -> None:
    machine = Machine()
    for client in ("one", "other", "one", "other"):
        machine.request(after_s=NEAR_S, client=client)
        assert machine.turns() == 0


def test_much_at_once_is_not_waited_for() -> None:
    machine = Machine()
    machine.request(after_s=1)
    machine.request(after_s=NEAR_S, nbytes=64 * 1024)
    assert machine.turns() == 0


def test_where_others_need_the_core_it_rests() -> None:
    machine = Machine()
    machine.request(after_s=1)
    machine.request(after_s=NEAR_S)
    machine.turns(share=0.5)
    machine.request(after_s=NEAR_S)
    assert machine.turns() == 0, "too early to try again"
    machine.now += 0.2
    machine.request(after_s=0)
    machine.request(after_s=NEAR_S)
    assert machine.turns() > 0


def test_nothing_happens_when_it_is_switched_off() -> None:
    turns: list[Callable[[], None]] = []
    poll = BusyPoll(turns.append, 0.0, clock=lambda: 0.0, cpu_clock=lambda: 0.0)
    for _ in range(3):
        poll.arrived("one", 100)
        poll.answered()
    assert turns == []
