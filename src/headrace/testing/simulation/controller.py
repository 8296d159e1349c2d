"""One broker's candidate for the controllership, as `headrace.controller.driver` is, on virtual time.

The term that decides, writes and publishes is the real one, and so is the controllership; only the queue and the waiting are
simulated.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from headrace.controller import controllership
from headrace.controller.changes import ChangeBatch, encode
from headrace.controller.controller_requests import decode_event, encode_answer
from headrace.controller.core import Event
from headrace.controller.term import Term, TermParts
from headrace.coordination.nodes import BrokerNode, BrokerSessionNode, ControllerNode
from headrace.coordination.store import SessionLost, StoreFailed, WriteUncertain
from headrace.testing.simulation.errands import Fail, Pause, Resume
from headrace.testing.virtual_clock import Action, Timer
from headrace.testing.virtual_network import Reply

_CAMPAIGN_PAUSE_MS: Final = 60
_PULL_WAIT_MS: Final = 150

Deliver: TypeAlias = Callable[[int, Action], Timer]
"""Let something happen on this broker so many milliseconds from now, unless it is dead by then."""


class SimulatedController:
    """See the module's text."""

    def __init__(
        self,
        parts: TermParts,
        clock: Callable[[], int],
        deliver: Deliver,
        on_batch: Callable[[ChangeBatch], None],
    ) -> None:
        self._parts = parts
        self._clock = clock
        self._deliver = deliver
        self._on_batch = on_batch
        self._work: deque[tuple[Event[Any] | None, Reply]] = deque()
        self._wake: Resume | None = None
        self._pulls: list[Action] = []
        self.term: Term | None = None

    # ---- what others ask

    def on_ask(self, kind: str, data: bytes, reply: Reply) -> None:
        """Have an event decided; None says that this is not the controller."""
        if self.term is None:
            reply(None)
        else:
            self._put(decode_event(kind, data), reply)

    def on_pull(self, controller_epoch: int, offset: int, reply: Reply) -> None:
        """The changes from an offset on, at the latest after a while; None if this is not the controller."""
        is_over = False

        def look(*, at_last: bool = False) -> None:
            nonlocal is_over
            if is_over:
                return
            if self.term is None:
                is_over = True
                timeout.call_off()
                reply(None)
                return
            batch = self.term.changes_from(controller_epoch, offset)
            if batch.is_snapshot or batch.changes or at_last:
                is_over = True
                timeout.call_off()
                reply(encode(batch))
            else:
                self._pulls.append(look)

        timeout = self._deliver(_PULL_WAIT_MS, lambda: look(at_last=True))
        look()

    # ---- the work

    async def run(self) -> None:
        """Campaign for the controllership, hold it, campaign again."""
        while True:
            try:
                await self._campaign()
            except (SessionLost, WriteUncertain, controllership.ControllershipLost):
                pass
            self._resign()
            await Pause(self._rest)

    def _rest(self, resume: Resume, fail: Fail) -> None:
        self._deliver(_CAMPAIGN_PAUSE_MS, resume)

    async def _campaign(self) -> None:
        store, broker_id = self._parts.store, self._parts.broker_id
        epoch_fence = await controllership.take(store, broker_id, self._clock())
        if epoch_fence is None:
            await self._wait_until_free()
            return
        term = Term(self._parts, epoch_fence, self._publish)
        cancels = [
            await store.watch_node(ControllerNode.PATH, self._signal),
            await store.watch_children(BrokerNode.ROOT, self._signal),
            await store.watch_children(BrokerSessionNode.ROOT, self._signal),
        ]
        try:
            await term.catch_up()
            self.term = term
            while True:
                if not self._work:
                    await Pause(self._arm)
                event, reply = self._work.popleft()
                if event is not None:
                    reply(await _answer(term, event))
                elif await controllership.holder(store) != broker_id:
                    raise controllership.ControllershipLost(
                        "the controllership was given to another"
                    )
                else:
                    await term.look_at_brokers()
        finally:
            for cancel in cancels:
                cancel()

    async def _wait_until_free(self) -> None:
        """As `controllership.wait_until_free`."""
        store = self._parts.store
        cancel = await store.watch_node(ControllerNode.PATH, self._signal)
        try:
            while await controllership.holder(store) != -1:
                if not self._work:
                    await Pause(self._arm)
                self._work.clear()
        finally:
            cancel()

    def _arm(self, resume: Resume, fail: Fail) -> None:
        self._wake = resume

    def _put(self, event: Event[Any] | None, reply: Reply) -> None:
        self._work.append((event, reply))
        if self._wake is not None:
            wake, self._wake = self._wake, None
            wake()

    def _signal(self) -> None:
        """Somebody came or went, or the controllership changed: look, a moment later."""
        self._deliver(2, lambda: self._put(None, lambda _: None))

    def _resign(self) -> None:
        self.term = None
        self._wake = None
        work, self._work = self._work, deque()
        for _, reply in work:
            reply(None)
        self._wake_pulls()

    def _publish(self, batch: ChangeBatch) -> None:
        self._on_batch(batch)
        self._wake_pulls()

    def _wake_pulls(self) -> None:
        pulls, self._pulls = self._pulls, []
        for look in pulls:
            look()


async def _answer(term: Term, event: Event[Any]) -> bytes | None:
    try:
        return encode_answer(await term.perform(event))
    except (SessionLost, WriteUncertain, controllership.ControllershipLost):
        raise
    except StoreFailed:
        return None  # the store refused as a whole: nothing was written
