"""What every fault is given: the cluster around it, its own chance, its target, and a way to undo itself later."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from headrace.testing.simulation.admin import SimulatedAdmin
from headrace.testing.simulation.broker import SimulatedBroker
from headrace.testing.simulation.group import SimulatedMember
from headrace.testing.simulation.plan import Plan
from headrace.testing.simulation.truth import Truth
from headrace.testing.simulation.wire_client import ClientAround
from headrace.testing.virtual.process import VirtualProcess
from headrace.testing.virtual.zookeeper import VirtualEnsemble

Undo = Callable[[], None]


class FaultAround(ClientAround, Protocol):
    """What faults need of the simulated cluster."""

    plan: Plan
    ensemble: VirtualEnsemble
    brokers: dict[int, SimulatedBroker]
    volatile_topics: list[str]
    members: dict[SimulatedMember, VirtualProcess]

    def died(self, broker: SimulatedBroker, *, has_lost: bool) -> None:
        """A broker was killed; perhaps its disk has lost something."""

    def start_member(self) -> None:
        """One more member joins the consumer group."""

    def admin(self, work: Callable[[SimulatedAdmin], Coroutine[Any, Any, object]]) -> object:
        """Let an admin client do something."""


class Survival(Protocol):
    """How much may be broken at a time without breaking a promise."""

    def may_die(self, broker: SimulatedBroker, *, loses: bool, has_copy: bool = False) -> bool:
        """Whether a broker may die now, and perhaps lose what is on its disk. It counts as dead from then on."""

    def note_death(self, broker: SimulatedBroker, *, loses: bool) -> None:
        """A broker has died without being asked for; it counts as dead until it is whole again."""

    def has_copy_elsewhere(self, broker: SimulatedBroker) -> bool:
        """Whether for each partition another broker has everything that is committed."""


class UndoLater(Protocol):
    """A way to undo a fault after a while, at the end of the faults at the latest."""

    def __call__(self, undo: Undo, longest_ms: int = 0) -> None:
        """Within the longest outage of the plan, or within `longest_ms` if that is longer."""


@dataclass(slots=True)
class Act:
    """One fault as it strikes."""

    around: FaultAround
    survival: Survival
    chance: Random
    target: SimulatedBroker
    number: int
    undo_later: UndoLater

    def tell(self, text: str) -> None:
        """Put it into the story."""
        self.around.story.tell(f"FAULT {self.number}: {text}")

    def other_broker(self) -> SimulatedBroker:
        """Another broker than the target."""
        others = [each for each in self.around.brokers.values() if each is not self.target]
        return self.chance.choice(others)

    def some_truth(self) -> Truth | None:
        """A partition, often one of those that are produced to from the start."""
        truths = [each for each in self.around.invariants.truths.values() if each.stored]
        return self.chance.choice(truths) if truths else None

    def ask(self, work: Callable[[SimulatedAdmin], Coroutine[Any, Any, object]]) -> None:
        """Let an admin client do something."""
        self.around.admin(work)


StrikeWith = Callable[[Act], None]
