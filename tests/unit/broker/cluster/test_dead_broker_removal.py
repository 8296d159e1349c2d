"""Which brokers are taken out of the store: those whose connection broke and who refuse others, and nobody else."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from headrace.broker.cluster import dead_broker_removal
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.dead_broker_removal import DeadBrokerRemoval
from headrace.broker.internal_apis import pull_changes
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.changes import (
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnregistered,
    Change,
    ChangeBatch,
)
from headrace.controller.values import Broker, Endpoint
from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.membership import prepare
from headrace.coordination.nodes import BrokerNode, ControllerNode, SuspectNode
from headrace.coordination.store import SessionLost
from headrace.testing.memory_store import Leg, MemoryStore, MemoryTree
from headrace.wire.internal import PullChangesRequest
from tests.support.controllers import make_driver
from tests.unit.broker.apis.one_broker import connection_to
from tests.unit.controller.cluster_model import PlainRules

US, OTHER, THIRD = 1, 2, 3
SUSPECT_PATH = BrokerNode.path(OTHER)


class World:
    """A tree in which three brokers are registered, and what broker 1 believes. `answers` are those to its dials, in order."""

    def __init__(
        self, answers: tuple[bool, ...] = (True,), *, is_on: bool = True, is_alone: bool = False
    ) -> None:
        """Unless broker 1 `is_alone`, broker 3 has been refused connections as well."""
        self._is_alone = is_alone
        self.tree = MemoryTree()
        self.store_is_down = False
        self.store = MemoryStore(self.tree, self._travel)
        self.cluster = ClusterView(US, "a-cluster", tells_dialled_address=False)
        self.dialled: list[tuple[str, int]] = []
        self.dials = asyncio.Event()
        self.answering = asyncio.Event()
        self.answering.set()
        self.before_answer: Callable[[], Awaitable[None]] | None = None
        self._answers = list(answers)
        self.removal = DeadBrokerRemoval(
            self.cluster,
            self.store,
            "INTERNAL",
            self._refuses,
            is_on=is_on,
            pause=self._pause,
        )

    async def prepare(self) -> None:
        await self.store.open()
        await prepare(self.store)
        for broker_id in (US, OTHER, THIRD):
            await self.register(broker_id)
        if not self._is_alone:
            await self.testify()

    async def testify(self) -> None:
        """Broker 3 says that broker 2 refuses connections."""
        epoch = self.cluster.state.brokers[OTHER].epoch
        await self.store.create(SuspectNode.path(OTHER, epoch, THIRD))

    async def register(self, broker_id: int) -> None:
        created = await self.store.create(BrokerNode.path(broker_id), b"{}", ephemeral=True)
        endpoints = (
            Endpoint("CLIENTS", f"outside-{broker_id}", 9092),
            Endpoint("INTERNAL", f"inside-{broker_id}", 9093),
        )
        self.hear(BrokerRegistered(Broker(broker_id, created.created_txn, endpoints)))

    async def elect(self, broker_id: int) -> None:
        node = ControllerNode(broker_id, "0").encode()
        await self.store.create(ControllerNode.PATH, node, ephemeral=True)

    def hear(self, *changes: Change) -> None:
        self.cluster.apply(ChangeBatch(1, 0, changes))

    async def judge(self) -> None:
        """Let what has been told be dealt with."""
        await asyncio.sleep(0)
        running = asyncio.create_task(self.removal.run())
        await self.until(lambda: not self.removal._suspected)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    @staticmethod
    async def until(condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 (nothing here takes time)
            await asyncio.sleep(0)

    @property
    def is_registered(self) -> bool:
        return self.tree.get(SUSPECT_PATH) is not None

    async def _travel(self, _: Leg) -> None:
        if self.store_is_down:
            raise SessionLost("the session is over")

    async def _pause(self, _: float) -> None:
        await asyncio.sleep(0)

    async def _refuses(self, host: str, port: int) -> bool:
        self.dialled.append((host, port))
        self.dials.set()
        await self.answering.wait()
        if self.before_answer is not None:
            await self.before_answer()
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(10):
            await story()

    asyncio.run(main())


def test_a_broker_that_refuses_connections_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        world = World()
        await world.prepare()
        await world.elect(THIRD)
        world.removal.connection_broke(OTHER)
        await world.judge()
        assert not world.is_registered
        assert world.dialled == [("inside-2", 9093)]
        assert world.tree.get(ControllerNode.PATH) is not None, "another one's controllership"
        assert world.tree.get(BrokerNode.path(THIRD)) is not None

    play(story)
    (line,) = caplog.messages
    assert "broker 2 is gone" in line
    assert "controllership" not in line


def test_its_controller_node_goes_with_it(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        world = World()
        await world.prepare()
        await world.elect(OTHER)
        before = world.tree.last_txn
        world.removal.connection_broke(OTHER)
        await world.judge()
        assert not world.is_registered
        assert world.tree.get(ControllerNode.PATH) is None
        assert world.tree.last_txn == before + 3, "in one write, between our word and its end"

    play(story)
    assert "its controllership" in caplog.text


def test_one_witness_is_not_enough() -> None:
    """Whose own connections are reset by a firewall would remove everybody."""

    async def story() -> None:
        world = World(is_alone=True)
        await world.prepare()
        for suspect in (OTHER, THIRD):
            world.removal.connection_broke(suspect)
        await world.judge()
        assert len(world.dialled) == 2 * dead_broker_removal._TESTIMONIES
        assert world.is_registered
        assert world.tree.get(BrokerNode.path(THIRD)) is not None
        assert world.tree.children(SuspectNode.ROOT) == [], "what it said is taken back"

    play(story)


def test_a_witness_who_has_taken_it_back_does_not_count() -> None:
    async def story() -> None:
        world = World()
        await world.prepare()
        epoch = world.cluster.state.brokers[OTHER].epoch

        class Late(MemoryStore):
            async def multi(self, operations: Any) -> None:
                await self.delete(SuspectNode.path(OTHER, epoch, THIRD))
                await super().multi(operations)

        late = Late(world.tree)
        await late.open()
        world.removal = DeadBrokerRemoval(
            world.cluster, late, "INTERNAL", world._refuses, pause=world._pause
        )
        world.removal.connection_broke(OTHER)
        await world.judge()
        assert world.is_registered

    play(story)


def test_whom_another_broker_suspects_is_dialled_too() -> None:
    """Nobody else need have lost a connection to it; nobody dials itself, nor a later incarnation."""

    async def story() -> None:
        world = World(is_alone=True)
        await world.prepare()
        running = asyncio.create_task(world.removal.run())
        await asyncio.sleep(0)
        await world.store.create(SuspectNode.path(US, world.cluster.state.brokers[US].epoch, THIRD))
        await world.store.create(SuspectNode.path(OTHER, 1, THIRD))
        await world.testify()
        await world.until(lambda: not world.is_registered)
        assert world.dialled == [("inside-2", 9093)]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    play(story)


def test_two_witnesses_at_once_remove_it_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        world = World(is_alone=True)
        await world.prepare()
        other = World(is_alone=True)
        other.tree, other.store = world.tree, MemoryStore(world.tree)
        await other.store.open()
        other.cluster = ClusterView(THIRD, "a-cluster", tells_dialled_address=False)
        other.hear(*map(BrokerRegistered, world.cluster.state.brokers.values()))
        other.removal = DeadBrokerRemoval(
            other.cluster, other.store, "INTERNAL", other._refuses, pause=other._pause
        )
        for each in (world, other):
            each.removal.connection_broke(OTHER)
        await asyncio.gather(world.judge(), other.judge())
        assert not world.is_registered
        assert world.tree.children(SuspectNode.ROOT) == []

    play(story)
    assert len([line for line in caplog.messages if "broker 2 is gone" in line]) == 1


def test_a_broker_that_accepts_or_is_silent_is_kept() -> None:
    """Paused, overloaded, cut off: its session decides."""

    async def story() -> None:
        world = World((False,))
        await world.prepare()
        world.removal.connection_broke(OTHER)
        await world.judge()
        assert world.is_registered
        assert len(world.dialled) == len(dead_broker_removal._PAUSES_S)

    play(story)


def test_a_process_that_is_about_to_end_may_accept_once_more() -> None:
    async def story() -> None:
        world = World((False, False, True))
        await world.prepare()
        world.removal.connection_broke(OTHER)
        await world.judge()
        assert not world.is_registered
        assert len(world.dialled) == 3

    play(story)


def test_a_later_incarnation_is_kept() -> None:
    async def story(*, is_heard_of: bool) -> None:
        world = World()
        await world.prepare()
        known = world.cluster.state.brokers[OTHER]

        async def return_meanwhile() -> None:
            await world.store.delete(SUSPECT_PATH)
            await world.register(OTHER)
            if not is_heard_of:
                world.hear(BrokerRegistered(known))

        world.before_answer = return_meanwhile
        world.removal.connection_broke(OTHER)
        await world.judge()
        node = world.tree.get(SUSPECT_PATH)
        assert node is not None
        assert node.created_txn > known.epoch

    play(lambda: story(is_heard_of=True))
    play(lambda: story(is_heard_of=False))


def test_a_broker_that_stops_in_an_orderly_way_is_left_alone() -> None:
    async def story(*, is_known_before: bool) -> None:
        world = World()
        await world.prepare()

        async def hear_of_it() -> None:
            world.hear(BrokerShuttingDown(OTHER))

        if is_known_before:
            await hear_of_it()
        world.before_answer = hear_of_it
        world.removal.connection_broke(OTHER)
        await world.judge()
        assert world.is_registered
        assert len(world.dialled) == (0 if is_known_before else 1)

    play(lambda: story(is_known_before=True))
    play(lambda: story(is_known_before=False))


def test_a_broker_that_nobody_knows_or_reaches_is_not_dialled() -> None:
    async def story() -> None:
        world = World()
        await world.prepare()
        world.hear(BrokerUnregistered(OTHER))
        world.removal.connection_broke(OTHER)
        world.hear(BrokerRegistered(Broker(OTHER, 1)))
        await world.judge()
        world.removal.connection_broke(OTHER)
        await world.judge()
        assert not world.dialled

    play(story)


def test_somebody_else_may_be_quicker(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        world = World()
        await world.prepare()
        await world.elect(OTHER)

        class Late(MemoryStore):
            async def multi(self, operations: Any) -> None:
                await self.delete(SUSPECT_PATH)
                await super().multi(operations)

        late = Late(world.tree)
        await late.open()
        slow = DeadBrokerRemoval(world.cluster, late, "INTERNAL", world._refuses)
        world.removal = slow
        slow.connection_broke(OTHER)
        await world.judge()
        assert world.tree.get(ControllerNode.PATH) is not None, "not without the registration"

    play(story)
    assert not caplog.messages


def test_a_store_out_of_reach_leaves_it_to_the_session() -> None:
    async def story() -> None:
        world = World()
        await world.prepare()
        world.store_is_down = True
        world.removal.connection_broke(OTHER)
        await world.judge()
        assert world.is_registered
        world.store_is_down = False
        world.removal.connection_broke(OTHER)
        await world.judge()
        assert not world.is_registered, "the next connection that breaks is looked after again"

    play(story)


def test_each_broker_is_looked_after_once_at_a_time() -> None:
    async def story() -> None:
        world = World((False,), is_alone=True)
        await world.prepare()
        world.answering.clear()
        running = asyncio.create_task(world.removal.run())
        for _ in range(3):
            world.removal.connection_broke(OTHER)
            await world.dials.wait()
        world.removal.connection_broke(THIRD)
        await world.until(lambda: len(world.dialled) == 2)
        assert world.dialled == [("inside-2", 9093), ("inside-3", 9093)]
        world.answering.set()
        await world.until(lambda: not world.removal._suspected)
        assert len(world.dialled) == 2 * len(dead_broker_removal._PAUSES_S)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    play(story)


def test_switched_off_nothing_is_evidence() -> None:
    async def story() -> None:
        world = World(is_on=False)
        await world.prepare()
        world.removal.connection_broke(OTHER)
        await world.removal.run()
        assert world.is_registered
        assert not world.dialled

    play(story)


def test_the_controller_hears_of_a_broker_whose_question_is_cut_off() -> None:
    async def story() -> None:
        store = EmbeddedStore()
        await store.open()
        await prepare(store)
        world = World((False,), is_alone=True)
        await world.prepare()
        driver = make_driver(store, US, PlainRules())
        running = asyncio.create_task(driver.run())
        await driver.ready()
        now = await driver.pull(-1, 0)
        for client, suspects in (("broker-2", {OTHER}), ("me", set()), ("broker-", set())):
            context = RequestContext(1000, 0, client, connection_to())
            request = PullChangesRequest(
                controller_epoch=now.controller_epoch,
                offset=now.next_offset,
                max_wait_ms=60_000,
            )
            asking = asyncio.create_task(
                pull_changes.handle(
                    request, context, driver=driver, dead_broker_removal=world.removal
                )
            )
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert asking.cancelled()
            assert world.removal._suspected == suspects
            await world.judge()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await store.close()

    play(story)
