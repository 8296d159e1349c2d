"""A broker's link to the controller: sends requests to it and receives its changes. A rim module.

If this broker is the controller, both are calls. Otherwise each uses a connection of its own to the address that the controller
registered. A change is applied once and in order: the stream of each controller starts with a
snapshot, and batches of an older controller are dropped. When another broker becomes the
controller, connections and dials to the former one are dropped, because it may hang, or its machine be lost, without closing them. A broker that cannot read the changes of a newer
controller keeps the cluster state that it has, and tries again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from headrace.client.async_connection import AsyncConnection, Connect
from headrace.client.exchange import Disconnected
from headrace.controller.changes import ChangeBatch, ChangeGate, decode
from headrace.controller.controller_requests import decode_answer, encode_event
from headrace.controller.controllership import holder
from headrace.controller.core import Event
from headrace.controller.create_partitions import CreatePartitions
from headrace.controller.driver import ControllerDriver, NotController, UnknownToController
from headrace.controller.loading import endpoints_of
from headrace.controller.topics import CreateTopics
from headrace.coordination.nodes import BrokerNode, ControllerNode, MalformedNode
from headrace.coordination.store import Store, StoreFailed
from headrace.errors import MalformedMessage
from headrace.wire.error_code import ErrorCode
from headrace.wire.internal import BROKER_CLIENT, AskControllerRequest, PullChangesRequest

_logger = logging.getLogger(__name__)

A = TypeVar("A")

_PULL_WAIT_MS: Final = 2_000
_PULL_TIMEOUT_S: Final = 6.0
_ASK_TIMEOUT_S: Final = 30.0
_RETRY_S: Final = 0.1
_FIRST_RETRY_S: Final = 0.01  # another controller is often elected soon
_UNREADABLE_RETRY_S: Final = 5.0
_ASK_ATTEMPTS: Final = 30
_GONE: Final = (Disconnected, MalformedNode, NotController, OSError, StoreFailed, TimeoutError)


class ControllerLink:
    """The connections of this broker to the controller."""

    def __init__(
        self,
        driver: ControllerDriver,
        store: Store,
        broker_id: int,
        listener_name: str,
        connect: Connect,
        on_broken: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`on_broken` is called with the id of a controller whose connection was not closed by this broker."""
        self._driver = driver
        self._store = store
        self._broker_id = broker_id
        self._listener_name = listener_name
        self._connect_to = connect
        self._on_broken = on_broken
        self._asking: AsyncConnection | None = None
        self._asking_id = -1
        self._pulling: AsyncConnection | None = None
        self._pulling_id = -1
        self._dials: dict[asyncio.Timeout, int] = {}  # connections being made → to which broker
        self._pause_s = _RETRY_S
        self._controller_node_changed = asyncio.Event()
        # Awaited before a creation is answered: this broker has applied its roles for the new partitions.
        self.after_creation: Callable[[], Awaitable[None]] | None = None

    # ---- requests

    async def ask(self, event: Event[A]) -> A:
        """Ask the controller. Looks for the new controller if the old one is gone."""
        for _ in range(_ASK_ATTEMPTS):
            try:
                if self._driver.is_active:
                    answer = await self._driver.ask(event)
                    if _is_creation(event) and self.after_creation is not None:
                        await self.after_creation()
                    return answer
                return await self._ask_elsewhere(event)
            except NotController:
                await self._drop_asking()
            except (Disconnected, MalformedNode, OSError) as error:
                _logger.info("the controller cannot be reached: %s", error)
                await self._drop_asking()
            await asyncio.sleep(_RETRY_S)
        raise NotController(-1)

    async def _ask_elsewhere(self, event: Event[A]) -> A:
        connection = await self._asking_connection()
        kind, data = encode_event(event)
        async with asyncio.timeout(_ASK_TIMEOUT_S):
            response = await connection.send(AskControllerRequest(kind=kind, event=data), 0)
        if response.error_code == ErrorCode.NOT_CONTROLLER:
            raise NotController(response.controller_id)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise UnknownToController(f"the controller is of a version that does not know {kind}")
        if response.error_code:
            raise StoreFailed(f"the controller answers {ErrorCode.of(response.error_code).name}")
        try:
            answer: A = decode_answer(kind, response.answer)
        except MalformedMessage as error:
            raise StoreFailed(f"the controller is of another version: {error}") from error
        return answer

    async def _asking_connection(self) -> AsyncConnection:
        controller_id = await holder(self._store)
        if not self._asks(controller_id):
            await self._drop_asking()
            connection = await self._connect(controller_id)
            if not self._asks(controller_id):
                self._asking, self._asking_id = connection, controller_id
                return connection
            await connection.close()  # another request has connected meanwhile
        if self._asking is None:
            raise NotController(controller_id)
        return self._asking

    def _asks(self, controller_id: int) -> bool:
        return (
            self._asking is not None and self._asking.is_open and self._asking_id == controller_id
        )

    async def _drop_asking(self) -> None:
        if self._asking is not None:
            connection, self._asking = self._asking, None
            await connection.close()

    async def _connect(self, controller_id: int) -> AsyncConnection:
        """Connect to the controller, which must be another broker. TimeoutError once yet another broker is the controller."""
        if controller_id in (-1, self._broker_id):
            raise NotController(-1)
        async with asyncio.timeout(None) as dial:
            self._dials[dial] = controller_id
            try:
                return await self._dial(controller_id)
            finally:
                del self._dials[dial]

    async def _dial(self, controller_id: int) -> AsyncConnection:
        node = await self._store.get(BrokerNode.path(controller_id))
        if node is None:
            raise NotController(-1)
        try:
            endpoints = endpoints_of(BrokerNode.decode(controller_id, node.data))
        except (MalformedNode, ValueError) as error:
            raise Disconnected(f"the registration of broker {controller_id}: {error}") from error
        for endpoint in endpoints:
            if endpoint.listener == self._listener_name:
                client_id = f"{BROKER_CLIENT}-{self._broker_id}"
                return await self._connect_to(endpoint.host, endpoint.port, client_id=client_id)
        raise NotController(-1)

    # ---- changes

    async def follow(self, apply: Callable[[ChangeBatch], None]) -> None:
        """Feed `apply` with the changes of whoever is controller; until cancelled."""
        gate = ChangeGate()

        def apply_once(batch: ChangeBatch) -> None:
            if gate.admits(batch):
                apply(batch)

        self._driver.listen(apply_once)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_controller_node())
            while True:
                if not self._driver.is_active:
                    try:
                        await self._pull(apply_once)
                    except _GONE as error:
                        _logger.debug("no changes from the controller: %s", error)
                    except MalformedMessage as error:
                        await self._wait_for_readable_changes(error)
                await asyncio.sleep(self._pause_s)
                self._pause_s = min(2 * self._pause_s, _RETRY_S)

    async def _wait_for_readable_changes(self, error: MalformedMessage) -> None:
        """Keep the last cluster state until there is another controller, or for a while.

        Skipping what cannot be read would leave a false state, and ending would turn a rolling upgrade into an outage.
        """
        _logger.error(
            "broker %d, the controller, publishes changes that this version cannot read (%s). This broker goes on with the "
            "cluster state that it has; it hears of no new topic, leader or config until it is upgraded",
            self._pulling_id,
            error,
        )
        self._controller_node_changed.clear()
        try:
            async with asyncio.timeout(_UNREADABLE_RETRY_S):
                await self._controller_node_changed.wait()
        except TimeoutError:
            pass

    async def _watch_controller_node(self) -> None:
        changed = asyncio.Event()
        cancel = await self._store.watch_node(ControllerNode.PATH, changed.set)
        try:
            while True:
                await changed.wait()
                changed.clear()
                self._controller_node_changed.set()
                try:
                    controller_id = await holder(self._store)
                except (StoreFailed, MalformedNode) as error:
                    _logger.warning("it is not known who the controller is: %s", error)
                    await asyncio.sleep(_RETRY_S)
                    changed.set()
                    continue
                self._give_up_others(controller_id)
        finally:
            cancel()
            if self._asking is not None:
                self._asking.abort()

    def _give_up_others(self, controller_id: int) -> None:
        """Wait no longer for brokers that do not hold the controllership."""
        if self._asking is not None and self._asking_id != controller_id:
            self._asking.abort()
        if self._pulling is not None and self._pulling_id != controller_id:
            self._pulling.abort()
        for dial, broker_id in self._dials.items():
            if broker_id != controller_id and not dial.expired():
                dial.reschedule(asyncio.get_running_loop().time())

    async def _pull(self, apply: Callable[[ChangeBatch], None]) -> None:
        self._pulling_id = await holder(self._store)
        connection = self._pulling = await self._connect(self._pulling_id)
        epoch, offset = -1, 0
        try:
            while not self._driver.is_active:
                request = PullChangesRequest(
                    controller_epoch=epoch, offset=offset, max_wait_ms=_PULL_WAIT_MS
                )
                async with asyncio.timeout(_PULL_TIMEOUT_S):
                    response = await connection.send(request, 0)
                if response.error_code:
                    raise NotController(response.controller_id)
                self._pause_s = _FIRST_RETRY_S
                batch = decode(response.batch)
                epoch, offset = batch.controller_epoch, batch.next_offset
                if batch.changes or batch.is_snapshot:
                    apply(batch)
        finally:
            if connection.was_broken_off:
                self._on_broken(self._pulling_id)
            self._pulling = None
            await connection.close()


def _is_creation(event: object) -> bool:
    return isinstance(event, CreateTopics | CreatePartitions)
