"""The controller's core: an event comes in, a decision goes out, and only its success changes state.

Owns the one state there is. Pure: no clock, no store, no chance of its own. It keeps the story of
its last events, which goes with every broken invariant.
"""

from collections import deque
from typing import TypeVar

from headrace.controller.changes import BrokerRegistered, Change, PartitionChanged
from headrace.controller.core import Core, Decision, Event

A = TypeVar("A")

_STORY_LENGTH = 200


class ControllerMachine:
    """Decides upon events, one at a time: `decide`, then write, then `written`."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._story: deque[str] = deque(maxlen=_STORY_LENGTH)

    def decide(self, event: Event[A]) -> Decision[A]:
        """What to do about an event. Changes nothing; deciding twice is deciding once."""
        return event.decide(self.core)

    def written(self, event: Event[A], decision: Decision[A]) -> None:
        """Apply the changes of a decision whose writes have succeeded."""
        self._story.append(f"{event!r:.500} -> {len(decision.changes)} changes")
        self.core.nodes.written(decision.groups)
        for change in decision.changes:
            self._apply(change)

    def check(self) -> None:
        """Assert every invariant, with the story if one does not hold."""
        try:
            self.core.state.check()
            for broker_id, broker in self.core.state.brokers.items():
                assert self.core.seen_epochs.get(broker_id) == broker.epoch, "an unseen broker"
        except AssertionError as error:
            error.add_note("The story so far:\n" + "\n".join(self._story))
            raise

    def _apply(self, change: Change) -> None:
        if isinstance(change, PartitionChanged):
            before = self.core.state.topics[change.topic].partitions[change.index]
            if before.leader_epoch < change.partition.leader_epoch:
                self.core.elected.add((change.topic, change.index))
        self.core.state.apply(change)
        if isinstance(change, BrokerRegistered):
            broker = change.broker
            self.core.seen_epochs[broker.broker_id] = broker.epoch
            self.core.seen_directories[broker.broker_id] = broker.directories
