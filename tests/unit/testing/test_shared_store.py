"""The store that brokers of one process share: the contract of every store, and several sessions at once."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headrace.coordination.store import (
    BadVersion,
    Create,
    SessionLost,
    SessionState,
    Set,
    Store,
    StoreFailed,
)
from headrace.testing.shared_store import SharedStore, SharedTree
from tests.unit.coordination.store_contract import CASES, Case


@asynccontextmanager
async def session(tree: SharedTree) -> AsyncIterator[SharedStore]:
    store = SharedStore(tree)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Case) -> None:
    tree = SharedTree()

    @asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        async with session(tree) as store:
            yield store

    async def run() -> None:
        await case(open_store)

    asyncio.run(run())


def test_sessions_see_each_other_come_and_go() -> None:
    async def story() -> None:
        tree = SharedTree()
        changed = asyncio.Event()
        async with session(tree) as one:
            await one.create("/ids")
            await one.watch_children("/ids", changed.set)
            async with session(tree) as two:
                await two.create("/ids/2", b"two", ephemeral=True)
                await changed.wait()
                changed.clear()
                assert await one.children("/ids") == ["2"]
            await changed.wait()
            assert await one.children("/ids") == []

    asyncio.run(story())


def test_an_expired_session_loses_its_nodes_and_gets_another() -> None:
    async def story() -> None:
        tree = SharedTree()
        async with session(tree) as one, session(tree) as two:
            states: list[SessionState] = []
            connected = asyncio.Event()

            def heard(state: SessionState) -> None:
                states.append(state)
                if state is SessionState.CONNECTED:
                    connected.set()

            read_again = asyncio.Event()
            one.on_session(heard)
            await one.create("/mine", ephemeral=True)
            await one.watch_node("/mine", read_again.set)
            await two.create("/other", ephemeral=True)
            expiring = threading.Thread(target=one.expire)
            expiring.start()
            expiring.join()
            with pytest.raises(SessionLost):
                await one.create("/late")
            await connected.wait()
            await read_again.wait()
            assert states == [SessionState.LOST, SessionState.CONNECTED]
            assert await two.children("/") == ["other"]
            await one.create("/mine", ephemeral=True)

    asyncio.run(story())


def test_a_refused_multi_leaves_no_trace() -> None:
    async def story() -> None:
        async with session(SharedTree()) as store:
            await store.create("/a/b", b"0", parents=True)
            before = await store.get("/a/b")
            with pytest.raises(BadVersion):
                await store.multi([Set("/a/b", b"1", 0), Create("/a/c"), Set("/a", b"", 9)])
            assert await store.get("/a/b") == before
            assert await store.children("/a") == ["b"]

    asyncio.run(story())


def test_threads_do_not_get_into_each_others_way() -> None:
    tree = SharedTree()

    async def count(times: int) -> None:
        async with session(tree) as store:
            for _ in range(times):
                while True:
                    node = await store.get("/n")
                    assert node is not None
                    try:
                        await store.set("/n", b"%d" % (int(node.data) + 1), version=node.version)
                    except BadVersion:
                        continue
                    break

    async def prepare() -> None:
        async with session(tree) as store:
            await store.create("/n", b"0")

    asyncio.run(prepare())
    threads = [threading.Thread(target=lambda: asyncio.run(count(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    node = tree.nodes.get("/n")
    assert node is not None
    assert node[:2] == (b"200", 200)


def test_a_closed_store_refuses_work() -> None:
    async def story() -> None:
        store = SharedStore(SharedTree())
        await store.open()
        await store.close()
        with pytest.raises(StoreFailed, match="not open"):
            await store.get("/a")

    asyncio.run(story())
