"""Takes brokers that are known to be dead out of the coordination store, without waiting for their sessions to end. A rim module.

When a process ends, however it ends, its kernel closes its connections and refuses new ones. Whoever had a connection to
another broker that broke tells this module, which dials the broker: only a refusal, at every address that its name stands
for, says that nobody is there. Silence does not, for a broker that is paused, overloaded or cut off is silent too; its session
decides. A broker that stops in an orderly way refuses connections as well, but keeps those it has until it has handed over,
and withdraws by itself.

A mistake costs an election and loses nothing: a living broker registers again with a new epoch, what it led has a new leader
epoch, and a controller that has lost its seat cannot write any more.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from headrace.broker.cluster_view import ClusterView
from headrace.controller.values import Broker
from headrace.coordination.nodes import BrokerNode, ControllerNode
from headrace.coordination.store import BadVersion, Delete, NoNode, Operation, Store, StoreFailed

_logger = logging.getLogger(__name__)

# A process that is about to end may still accept connections when its first one breaks.
_PAUSES_S: Final = (0.0, 0.02, 0.05, 0.1, 0.3)
_DIAL_S: Final = 0.5


class DeadBrokers:
    """See the module's text. `run` does the work."""

    def __init__(
        self,
        cluster: ClusterView,
        store: Store,
        listener_name: str,
        *,
        is_on: bool = True,
        refuses: Callable[[str, int], Awaitable[bool]] | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`listener_name` is the listener among brokers; `refuses` says whether nobody listens at an address."""
        self._cluster = cluster
        self._store = store
        self._listener_name = listener_name
        self._is_on = is_on
        self._refuses = refuses or refuses_connections
        self._pause = pause
        self._suspects: asyncio.Queue[Broker] = asyncio.Queue()
        self._suspected: set[int] = set()

    def connection_broke(self, broker_id: int) -> None:
        """A connection to or from a broker ended without our doing."""
        suspect = self._cluster.state.brokers.get(broker_id)
        if self._is_on and suspect is not None and broker_id not in self._suspected:
            self._suspected.add(broker_id)
            self._suspects.put_nowait(suspect)

    async def run(self) -> None:
        """Look after every broker that a connection broke to; until cancelled."""
        if not self._is_on:
            return
        async with asyncio.TaskGroup() as checks:
            while True:
                checks.create_task(self._check(await self._suspects.get()))

    async def _check(self, suspect: Broker) -> None:
        try:
            if await self._is_gone(suspect):
                await self._remove(suspect)
        except StoreFailed as error:
            _logger.debug("broker %d is left to its session: %s", suspect.broker_id, error)
        finally:
            self._suspected.discard(suspect.broker_id)

    async def _is_gone(self, suspect: Broker) -> bool:
        endpoint = suspect.endpoint(self._listener_name)
        if endpoint is None:
            return False
        for pause_s in _PAUSES_S:
            await self._pause(pause_s)
            if not self._is_as_known(suspect):
                return False
            if await self._refuses(endpoint.host, endpoint.port):
                return self._is_as_known(suspect)
        return False

    def _is_as_known(self, suspect: Broker) -> bool:
        """Whether it is still the same incarnation, and not one that stops in an orderly way."""
        now = self._cluster.state.brokers.get(suspect.broker_id)
        return now is not None and now.epoch == suspect.epoch and not now.shutting_down

    async def _remove(self, dead: Broker) -> None:
        store, path = self._store, BrokerNode.path(dead.broker_id)
        seat = await store.get(ControllerNode.PATH)
        node = await store.get(path)
        if node is None or node.created_txn != dead.epoch:
            return
        removals: list[Operation] = [Delete(path, node.version)]
        if seat is not None and ControllerNode.decode(seat.data).brokerid == dead.broker_id:
            removals.append(Delete(ControllerNode.PATH, seat.version))
        try:
            await store.multi(removals)
        except (NoNode, BadVersion):
            return  # somebody else was quicker
        _logger.warning(
            "broker %d is gone: a connection broke, others are refused. Removed its registration%s",
            dead.broker_id,
            " and its seat as controller" if len(removals) > 1 else "",
        )


async def refuses_connections(host: str, port: int) -> bool:
    """Whether every address of a host refuses connections to a port. Any other failure says nothing."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_DIAL_S):
            addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            for family, kind, protocol, _, address in addresses:
                if not await _refuses(loop, socket.socket(family, kind, protocol), address):
                    return False
    except OSError:  # time-outs are among them
        return False
    return bool(addresses)


async def _refuses(
    loop: asyncio.AbstractEventLoop, dialling: socket.socket, address: tuple[object, ...]
) -> bool:
    with dialling:
        dialling.setblocking(False)
        try:
            await loop.sock_connect(dialling, address)
        except ConnectionRefusedError:
            return True
    return False
