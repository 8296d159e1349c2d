"""The real store over the virtual ensemble: the contract of every store, and what breaks between the two."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace.coordination.lease import OnConfirmed
from headrace.coordination.store import SessionLost, SessionState, Store, WriteUncertain
from headrace.coordination.zookeeper import ZooKeeperStore
from headrace.coordination.zookeeper_client import ZooKeeperClient
from headrace.testing.virtual.process import VirtualProcess
from headrace.testing.virtual.scheduler import SECOND_US
from headrace.testing.virtual.world import VirtualWorld
from headrace.testing.virtual.zookeeper import ZOOKEEPER_HOST, VirtualEnsemble
from headrace.testing.virtual.zookeeper_client import VirtualZooKeeperClient
from tests.unit.coordination.store_contract import CASES, Case

CUT = {("broker", ZOOKEEPER_HOST), (ZOOKEEPER_HOST, "broker")}


class Setting:
    """A process and an ensemble that grants sessions of at most 4 s."""

    def __init__(self, world: VirtualWorld) -> None:
        self.world = world
        server = world.process(ZOOKEEPER_HOST)
        self.ensemble = VirtualEnsemble(server, lambda *_: None, longest_timeout_ms=4_000)
        self.process = world.process("broker")
        self.clients: list[VirtualZooKeeperClient] = []
        self.states: list[tuple[SessionState, float]] = []

    def store(self, process: VirtualProcess | None = None) -> ZooKeeperStore:
        owner = process or self.process

        def make_client(_: str, timeout_s: float, on_confirmed: OnConfirmed) -> ZooKeeperClient:
            client = VirtualZooKeeperClient(owner, self.ensemble.mailbox, timeout_s, on_confirmed)
            self.clients.append(client)
            return client

        return ZooKeeperStore(
            "virtual:2181",
            session_timeout_ms=6_000,
            make_client=make_client,
            clock=owner.loop.time,
        )

    async def open(self) -> ZooKeeperStore:
        store = self.store()
        await store.open()
        store.on_session(
            lambda state: self.states.append((state, asyncio.get_running_loop().time()))
        )
        return store

    def run(self, story: Callable[[], Coroutine[Any, Any, None]], most_s: float = 200) -> None:
        task = self.process.loop.create_task(story())
        until_us = self.world.scheduler.now_us + int(most_s * SECOND_US)
        while not task.done():
            assert self.world.scheduler.step(), "nothing is left to happen"
            assert self.world.scheduler.now_us < until_us, "it takes too long"
        task.result()
        assert not self.process.failures


@pytest.fixture
def setting() -> Iterator[Setting]:
    with VirtualWorld(1) as world:
        yield Setting(world)


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(20_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not come to that")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Case, setting: Setting) -> None:
    @asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        store = setting.store()
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def run() -> None:
        await case(open_store)

    setting.run(run)


def test_a_session_is_kept_for_as_long_as_it_is_wanted(setting: Setting) -> None:
    async def story() -> None:
        store = await setting.open()
        await store.create("/mine", ephemeral=True)
        await asyncio.sleep(100)
        assert await store.get("/mine") is not None
        assert setting.states == []
        assert 0 < store.lease.remaining_s() < 3, "three quarters of what was granted"
        await store.close()
        assert setting.ensemble.tree.get("/mine") is None

    setting.run(story)


def test_a_silent_ensemble_ends_the_lease_before_the_session(setting: Setting) -> None:
    async def story() -> None:
        store = await setting.open()
        await store.create("/mine", ephemeral=True)
        setting.world.network.cut |= CUT
        cut_at = asyncio.get_running_loop().time()
        await until(lambda: not setting.ensemble.sessions())
        expired_at = asyncio.get_running_loop().time()
        assert expired_at - cut_at > 3.4
        states = dict(reversed(setting.states))
        assert states[SessionState.SUSPENDED] < states[SessionState.OVERDUE] < expired_at
        assert store.lease.is_over()
        setting.world.network.cut.clear()
        await until(lambda: store.session_state is SessionState.CONNECTED)
        assert [state for state, _ in setting.states][-2:] == [
            SessionState.LOST,
            SessionState.CONNECTED,
        ]
        assert not store.lease.is_over()
        await store.create("/mine", ephemeral=True)
        await store.close()

    setting.run(story)


def test_a_short_silence_costs_nothing(setting: Setting) -> None:
    async def story() -> None:
        store = await setting.open()
        await store.create("/mine", ephemeral=True)
        for _ in range(20):
            setting.world.network.cut |= CUT
            await asyncio.sleep(1)
            setting.world.network.cut.clear()
            await asyncio.sleep(3)
        assert await store.get("/mine") is not None
        assert SessionState.LOST not in dict(setting.states)
        await store.close()

    setting.run(story)


def test_a_write_whose_answer_is_lost_is_uncertain_and_a_read_waits(setting: Setting) -> None:
    async def story() -> None:
        store = await setting.open()
        setting.world.network.cut.add((ZOOKEEPER_HOST, "broker"))
        write = asyncio.create_task(store.create("/a", b"1"))
        read = asyncio.create_task(store.get("/a"))
        with pytest.raises(WriteUncertain):
            await write
        assert not read.done()
        setting.world.network.cut.clear()
        node = await read
        assert node is not None, "the write was done all the same"
        await store.close()

    setting.run(story)


def test_an_expired_session_refuses_writes_and_fires_watches(setting: Setting) -> None:
    async def story() -> None:
        store = await setting.open()
        fired = asyncio.Event()
        await store.watch_node("/a", fired.set)
        [session] = setting.ensemble.sessions()
        setting.ensemble.end_session(session)
        with pytest.raises((SessionLost, WriteUncertain)):
            await store.create("/a", ephemeral=True)
        await fired.wait()
        assert SessionState.LOST in dict(setting.states)
        await store.create("/a", ephemeral=True)
        await store.close()

    setting.run(story)


def test_a_paused_process_finds_its_lease_over(setting: Setting) -> None:
    async def story() -> None:
        store = await setting.open()
        await asyncio.sleep(5)
        setting.world.scheduler.after(0, setting.process.pause)
        setting.world.scheduler.after(10 * SECOND_US, setting.process.resume)
        await asyncio.sleep(0.001)
        assert store.lease.is_over()
        await until(lambda: SessionState.LOST in dict(setting.states))
        await store.close()

    setting.run(story)


def test_a_dead_process_keeps_its_session_until_it_times_out(setting: Setting) -> None:
    async def story() -> None:
        store = await setting.open()
        await store.create("/mine", ephemeral=True)

    setting.run(story)
    setting.process.end()
    setting.world.run_for(3)
    assert setting.ensemble.tree.get("/mine") is not None
    setting.world.run_for(3)
    assert setting.ensemble.tree.get("/mine") is None
