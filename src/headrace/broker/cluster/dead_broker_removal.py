"""Takes brokers that are known to be dead out of the coordination store, without waiting for their sessions to end. A rim module.

When a process ends, however it ends, its kernel closes its connections and refuses new ones. A part of
the broker whose connection to another broker broke tells this module, which dials that broker. Only a refusal at every address of
its host name proves that the process has ended. Silence does not, because a broker that is paused, overloaded or cut off is silent
too: its session decides. A broker in a controlled shutdown refuses new connections as well, but keeps its open ones until its
leaderships are handed over, and removes its registration itself.

One witness is not enough, because a firewall or a proxy beside one broker refuses connections to all others. A witness creates a
node below `/brokers/suspects`. All brokers watch these nodes and dial, too. The second broker that is refused removes the
registration, in one write that requires the first witness's node to exist. With fewer than two brokers that can dial, the session
decides.

A mistake of two witnesses moves leaders and loses nothing that acks=all acknowledged: elections are clean, because the
controller elects nobody from outside the ISR while the session of the removed broker lives.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.controller.values import Broker
from headrace.coordination.nodes import BrokerNode, ControllerNode, MalformedNode, SuspectNode
from headrace.coordination.store import (
    BadVersion,
    Check,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Store,
    StoreFailed,
)

_logger = logging.getLogger(__name__)

# A process that is about to end may still accept connections when its first one breaks.
_PAUSES_S: Final = (0.0, 0.02, 0.05, 0.1, 0.3)
_TESTIMONY_S: Final = 2.0  # a refusal that is older than this proves nothing
_TESTIMONIES: Final = 5  # attempts, because another broker may be too busy to dial at once


class DeadBrokerRemoval:
    """Brokers that refused a connection, until they are removed or answer. `run` removes them."""

    def __init__(
        self,
        cluster: ClusterView,
        store: Store,
        listener_name: str,
        refuses: Callable[[str, int], Awaitable[bool]],
        *,
        is_on: bool = True,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`listener_name` is the inter-broker listener. `refuses` tells whether a host and port refuses connections."""
        self._cluster = cluster
        self._store = store
        self._listener_name = listener_name
        self._is_on = is_on
        self._refuses = refuses
        self._pause = pause
        self._suspects: asyncio.Queue[Broker] = asyncio.Queue()
        self._suspected: set[int] = set()
        self._testimony_changed = asyncio.Event()

    def connection_broke(self, broker_id: int) -> None:
        """A connection to or from a broker ended, and this broker did not close it."""
        suspect = self._cluster.state.brokers.get(broker_id)
        if self._is_on and suspect is not None and broker_id not in self._suspected:
            self._suspected.add(broker_id)
            self._suspects.put_nowait(suspect)

    async def run(self) -> None:
        """Check every broker whose connection to this or another broker broke, until cancelled."""
        if not self._is_on:
            return
        async with asyncio.TaskGroup() as checks:
            checks.create_task(self._hear_witnesses())
            while True:
                checks.create_task(self._check(await self._suspects.get()))

    async def _hear_witnesses(self) -> None:
        """Dial brokers that another broker suspects."""
        cancel = await self._store.watch_children(SuspectNode.ROOT, self._testimony_changed.set)
        self._testimony_changed.set()  # nodes may exist already
        try:
            while True:
                await self._testimony_changed.wait()
                self._testimony_changed.clear()
                for broker_id, broker_epoch, _ in await self._testimonies():
                    suspect = self._cluster.state.brokers.get(broker_id)
                    if suspect is not None and suspect.epoch == broker_epoch:
                        self.connection_broke(broker_id)
        finally:
            cancel()

    async def _testimonies(self) -> list[tuple[int, int, int]]:
        """Suspect nodes that other brokers wrote, about brokers other than this one."""
        us = self._cluster.broker_id
        try:
            names = await self._store.children(SuspectNode.ROOT)
        except (NoNode, StoreFailed):
            return []
        parsed = map(SuspectNode.parse, names)
        return [each for each in parsed if each is not None and us not in (each[0], each[2])]

    async def _check(self, suspect: Broker) -> None:
        try:
            for _ in range(_TESTIMONIES):
                if not await self._is_gone(suspect) or await self._testify(suspect):
                    break
        except (StoreFailed, MalformedNode) as error:
            _logger.debug("broker %d is left to its session: %s", suspect.broker_id, error)
        finally:
            self._suspected.discard(suspect.broker_id)

    async def _is_gone(self, suspect: Broker) -> bool:
        endpoint = suspect.endpoint(self._listener_name)
        if endpoint is None or suspect.broker_id == self._cluster.broker_id:
            return False
        for pause_s in _PAUSES_S:
            await self._pause(pause_s)
            if not self._is_as_known(suspect):
                return False
            if await self._refuses(endpoint.host, endpoint.port):
                return self._is_as_known(suspect)
        return False

    def _is_as_known(self, suspect: Broker) -> bool:
        """Whether the broker has still the same epoch and is not in a controlled shutdown."""
        now = self._cluster.state.brokers.get(suspect.broker_id)
        return now is not None and now.epoch == suspect.epoch and not now.shutting_down

    async def _testify(self, dead: Broker) -> bool:
        """Be the first witness, for a while, or the second, who removes the registration. Returns whether it is gone."""
        us = self._cluster.broker_id
        path = SuspectNode.path(dead.broker_id, dead.epoch, us)
        try:
            await self._store.create(path, ephemeral=True)
        except NodeExists:
            pass  # from a check a moment ago
        except NoNode:
            return False  # a broker of an earlier version prepared this store
        try:
            # Our node is created before the others are read, so that of two witnesses at least one sees both nodes.
            for _, _, witness_id in await self._testimonies_on(dead):
                return await self._remove(dead, witness_id)
            return await self._wait_for_removal(dead)
        finally:
            with contextlib.suppress(NoNode, StoreFailed):
                await self._store.delete(path)

    async def _wait_for_removal(self, dead: Broker) -> bool:
        """Wait until the registration has changed, at most as long as our refusal counts. Returns whether it is gone."""
        path, changed = BrokerNode.path(dead.broker_id), asyncio.Event()
        cancel = await self._store.watch_node(path, changed.set)
        node = await self._store.get(path)
        waits = {
            asyncio.ensure_future(self._pause(_TESTIMONY_S)),
            asyncio.ensure_future(changed.wait()),
        }
        try:
            if node is not None and node.created_txn == dead.epoch:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                return changed.is_set()
            return True
        finally:
            cancel()
            for wait in waits:
                wait.cancel()

    async def _testimonies_on(self, dead: Broker) -> list[tuple[int, int, int]]:
        known = (dead.broker_id, dead.epoch)
        return [each for each in await self._testimonies() if each[:2] == known]

    async def _remove(self, dead: Broker, witness_id: int) -> bool:
        store, path = self._store, BrokerNode.path(dead.broker_id)
        controller_node = await store.get(ControllerNode.PATH)
        node = await store.get(path)
        if node is None or node.created_txn != dead.epoch:
            return True
        removals: list[Operation] = [
            Check(SuspectNode.path(dead.broker_id, dead.epoch, witness_id), 0),
            Delete(path, node.version),
        ]
        was_controller = (
            controller_node is not None
            and ControllerNode.decode(controller_node.data).brokerid == dead.broker_id
        )
        if controller_node is not None and was_controller:
            removals.append(Delete(ControllerNode.PATH, controller_node.version))
        try:
            await store.multi(removals)
        except (NoNode, BadVersion):
            return False  # another broker has removed it, or the other witness has removed its node
        _logger.warning(
            "broker %d is gone: brokers %d and %d lost a connection to it and are refused others. Removed its registration%s",
            dead.broker_id,
            witness_id,
            self._cluster.broker_id,
            " and its controllership" if was_controller else "",
        )
        return True
