"""One controller epoch of a broker: its state, its fenced writes, and the changes that it has published.

Owns the machine of this term and the stream of its changes. Rule of order for each event: decide, write under the fence of
the controller epoch, change the state, publish. A write that is refused or uncertain means that the picture is wrong:
everything is read again and the event decided again, unless it is an observation, which is old by then. A rim over the
store that waits for nothing else: whoever awaits its calls decides when the store answers.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple, TypeVar
from uuid import UUID

from headrace.controller import controllership
from headrace.controller.brokers import UpdateBrokers
from headrace.controller.changes import ChangeBatch, ChangeLog
from headrace.controller.cluster_state import ClusterState
from headrace.controller.core import ConfigRules, ControllerSettings, Core, Decision, Event
from headrace.controller.features import FinalizeDefaults
from headrace.controller.loading import living_sessions, load, registrations
from headrace.controller.machine import ControllerMachine
from headrace.coordination.store import Store, StoreFailed, StoreRefused, WriteUncertain

A = TypeVar("A")

_log = logging.getLogger(__name__)
_ATTEMPTS = 10
_MOST_EPOCHS_LEFT_OUT = 4096


class TermContext(NamedTuple):
    """Store, settings and generators that every controller term of one broker uses."""

    store: Store
    broker_id: int
    settings: ControllerSettings
    config_rules: ConfigRules
    new_topic_id: Callable[[], UUID]
    random_below: Callable[[int], int]


class Term:
    """Usable once `catch_up` has returned; one call at a time."""

    def __init__(
        self,
        context: TermContext,
        epoch_fence: controllership.EpochFence,
        publish: Callable[[ChangeBatch], None],
    ) -> None:
        """`publish` is called with every batch of changes, in order. The first is a snapshot."""
        self._context = context
        self._epoch_fence = epoch_fence
        self._publish = publish
        self._change_log = ChangeLog(epoch_fence.controller_epoch)
        self._machine: ControllerMachine | None = None

    @property
    def machine(self) -> ControllerMachine:
        """What decides."""
        assert self._machine is not None, "a term starts with catching up"
        return self._machine

    @property
    def state(self) -> ClusterState:
        """The controller's own cluster state."""
        return self.machine.core.state

    async def perform(self, event: Event[A]) -> A:
        """Decide upon an event, write the decision and publish its changes. Raises ControllershipLost, StoreFailed."""
        for _ in range(_ATTEMPTS):
            decision = await self._attempt(event)
            if decision is not None:
                return decision.answer
        raise StoreFailed(
            f"the state changed during each of {_ATTEMPTS} attempts to write: {event!r:.200}"
        )

    async def look_at_brokers(self) -> None:
        """Read the registered brokers and update the partitions that a change of them concerns."""
        seen = await self._look(self.machine)
        # Once only: if everything has to be read again, the brokers are looked at then, and what was seen here is old.
        await self._attempt(seen)
        await self._attempt(FinalizeDefaults())

    async def _look(self, machine: ControllerMachine) -> UpdateBrokers:
        """Who is registered, and whose session lives. The registrations first: who is in neither has lost its session."""
        registered = await registrations(self._context.store)
        machine.core.sessions = await living_sessions(self._context.store)
        return UpdateBrokers(registrations=registered)

    async def _attempt(self, event: Event[A]) -> Decision[A] | None:
        """Returns None if the state was out of date. It has been read again then."""
        machine = self.machine
        decision = machine.decide(event)
        try:
            await controllership.write(self._context.store, self._epoch_fence, decision.groups)
        except (StoreRefused, WriteUncertain) as surprise:
            _log.warning("controller reads everything again: %s", surprise)
            await self.catch_up()
            return None
        if decision.changes:
            machine.written(event, decision)
            self._publish(self._change_log.append(decision.changes))
        return decision

    async def catch_up(self) -> None:
        """Read the whole state, update every partition, and publish a snapshot."""
        context, epoch = self._context, self._epoch_fence.controller_epoch
        for _ in range(_ATTEMPTS):
            picture = await load(context.store, context.broker_id, epoch)
            for fault in picture.faults:
                _log.error("controller: %s", fault)
            machine = ControllerMachine(
                Core(
                    state=picture.state,
                    nodes=picture.nodes,
                    settings=context.settings,
                    config_rules=context.config_rules,
                    new_topic_id=context.new_topic_id,
                    random_below=context.random_below,
                    seen_epochs=picture.seen_epochs,
                    seen_directories=picture.seen_directories,
                    has_producer_ids=picture.has_producer_ids,
                    max_group_bytes=context.store.max_multi_bytes,
                    epoch_gap=context.random_below(_MOST_EPOCHS_LEFT_OUT),
                )
            )
            event = await self._look(machine)
            decision = machine.decide(event)
            groups = (*picture.leftovers, *decision.groups)
            try:
                await controllership.write(context.store, self._epoch_fence, groups)
                if not groups:
                    # What was read node by node is one picture only if no other controller wrote meanwhile.
                    await controllership.confirm(context.store, self._epoch_fence)
            except (StoreRefused, WriteUncertain) as surprise:
                _log.warning("controller reads everything again: %s", surprise)
                continue
            machine.core.nodes.written(picture.leftovers)
            machine.written(event, decision)
            if not await self._finalize_features(machine):
                continue
            self._machine = machine
            # A new log of changes at a later offset: whoever follows the old one gets a snapshot.
            self._change_log = ChangeLog(epoch, first_offset=self._change_log.next_offset + 1)
            self._publish(self.snapshot())
            return
        raise StoreFailed(f"the state changed during each of {_ATTEMPTS} attempts to read it")

    async def _finalize_features(self, machine: ControllerMachine) -> bool:
        """False if the picture was wrong."""
        event = FinalizeDefaults()
        decision = machine.decide(event)
        if decision.groups:
            try:
                await controllership.write(self._context.store, self._epoch_fence, decision.groups)
            except (StoreRefused, WriteUncertain) as surprise:
                _log.warning("controller reads everything again: %s", surprise)
                return False
            machine.written(event, decision)
        return True

    def snapshot(self) -> ChangeBatch:
        """All that is true now, for a reader that knows nothing."""
        return ChangeBatch(
            self._epoch_fence.controller_epoch,
            self._change_log.next_offset,
            tuple(self.state.snapshot()),
            is_snapshot=True,
        )

    def changes_from(self, controller_epoch: int, offset: int) -> ChangeBatch:
        """The changes from an offset on; a snapshot for who is new or followed another controller."""
        batch = self._change_log.read(controller_epoch, offset)
        return self.snapshot() if batch is None else batch
