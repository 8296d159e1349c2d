"""Controllers for tests: a `ControllerDriver` whose clock stands still and whose choices are always the first."""

from uuid import uuid4

from headrace.controller.core import ConfigRules
from headrace.controller.driver import ControllerDriver
from headrace.coordination.store import Store

NOW_MS = 1_700_000_000_000


def make_driver(
    store: Store, broker_id: int, config_rules: ConfigRules, *, cluster: str | None = None
) -> ControllerDriver:
    """A candidate for the controllership on this broker."""
    return ControllerDriver(
        store,
        broker_id,
        cluster=cluster,
        config_rules=config_rules,
        clock=lambda: NOW_MS,
        new_topic_id=uuid4,
        random_below=lambda _: 0,
    )
