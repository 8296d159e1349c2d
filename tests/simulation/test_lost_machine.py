"""The controller's machine is lost, and nothing tells: the others go on when its session has ended, not minutes later."""

from dataclasses import replace
from random import Random

import pytest

from headrace.testing.simulation.broker import SimulatedBroker
from headrace.testing.simulation.cluster import SimulatedCluster
from headrace.testing.simulation.plan import draw_plan
from headrace.testing.simulation.report import Failure, play, story_of

SESSION_MS = 18_000  # the default; with a short one nobody has dialled the lost machine by then
TICK_MS = 6_000  # a session ends up to so much later, and an election follows
SEEDS = 2


class LostController(SimulatedCluster):
    """One run."""

    def run(self) -> None:
        self.set_up()
        lost = next(each for each in self.brokers.values() if _is_controller(each))
        lost.lose_power(Random(self.seed))

        def unheard() -> str | None:
            for broker in self.brokers.values():
                parts = broker.parts
                if parts is not None and lost.broker_id in parts.cluster.state.brokers:
                    return f"{broker.name} has not heard that {lost.name} is gone"
            return None

        self.run_until(unheard, (SESSION_MS + TICK_MS) / 1_000)


def _is_controller(broker: SimulatedBroker) -> bool:
    return broker.parts is not None and broker.parts.driver.is_active


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_all_others_hear_of_the_next_controller(seed: int) -> None:
    plan = replace(
        draw_plan(seed),
        strikes=(),
        broker_count=3,
        session_timeout_ms=SESSION_MS,
        granted_timeout_ms=SESSION_MS,
    )
    outcome = play(plan, make_cluster=LostController)
    if isinstance(outcome, Failure):
        pytest.fail(story_of(outcome), pytrace=False)
