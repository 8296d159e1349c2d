"""How a broker joins: whose id it is, whose registration, and what a lost session does to it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.membership import (
    BrokerIdTaken,
    BrokerRegistration,
    cluster_id,
    prepare,
)
from headrace.coordination.nodes import ROOTS, BrokerNode
from headrace.coordination.store import SessionState
from headrace.testing.memory_store import MemoryStore, MemoryTree


def broker_node(timestamp: str = "1") -> BrokerNode:
    return BrokerNode(
        listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
        endpoints=("PLAINTEXT://somewhere:9092",),
        host="somewhere",
        port=9092,
        timestamp=timestamp,
    )


def run(story: Callable[[EmbeddedStore], Awaitable[None]], *, prepared: bool = True) -> None:
    async def main() -> None:
        store = EmbeddedStore()
        await store.open()
        if prepared:
            await prepare(store)
        async with asyncio.timeout(10):
            await story(store)
        await store.close()

    asyncio.run(main())


def test_the_roots_are_there_whatever_was_there_before() -> None:
    async def story(store: EmbeddedStore) -> None:
        await store.create("/brokers/topics", parents=True)  # another broker is half-way
        await prepare(store)
        for path in ROOTS:
            assert await store.get(path) is not None, path
        epoch = await store.get("/controller_epoch")
        assert epoch is not None
        assert epoch.data == b"0"
        await store.set("/controller_epoch", b"5", version=0)
        await prepare(store)
        again = await store.get("/controller_epoch")
        assert again is not None
        assert again.data == b"5"

    run(story, prepared=False)


def test_the_first_broker_names_the_cluster() -> None:
    async def story(store: EmbeddedStore) -> None:
        assert await cluster_id(store, "one") == "one"
        assert await cluster_id(store, "two") == "one"

    run(story)


def test_an_id_belongs_to_one_living_broker() -> None:
    async def story(store: EmbeddedStore) -> None:
        first = BrokerRegistration(store, 1, broker_node())
        epoch = await first.register()
        second = BrokerRegistration(store, 1, broker_node("2"))
        with pytest.raises(BrokerIdTaken, match=r"already registered .*somewhere:9092"):
            await second.register()
        await first.withdraw()
        await first.withdraw()
        assert await second.register() > epoch

    run(story)


def test_a_registration_that_a_crash_left_behind_is_waited_for() -> None:
    async def story(store: EmbeddedStore) -> None:
        left_behind = BrokerRegistration(store, 1, broker_node())
        await left_behind.register()
        coming = BrokerRegistration(store, 1, broker_node("2"), takeover_timeout_ms=5_000)
        registering = asyncio.ensure_future(coming.register())
        await store.get("/")
        await left_behind.withdraw()  # the session of the dead broker has ended
        assert await registering > left_behind.epoch

    run(story)


def test_a_registration_whose_answer_was_lost_is_recognised() -> None:
    async def story(store: EmbeddedStore) -> None:
        node = broker_node()
        created = await store.create(BrokerNode.path(1), node.encode(), ephemeral=True)
        assert await BrokerRegistration(store, 1, node).register() == created.created_txn

    run(story)


def test_a_lost_session_is_followed_by_a_new_registration() -> None:
    async def story(store: EmbeddedStore) -> None:
        heard: asyncio.Queue[int] = asyncio.Queue()
        registration = BrokerRegistration(store, 1, broker_node(), on_epoch=heard.put_nowait)
        first = await registration.register()
        assert await heard.get() == first
        running = asyncio.ensure_future(registration.run())
        await asyncio.sleep(0)
        await registration.withdraw()  # what the end of a session does
        store._report(SessionState.LOST)
        store._report(SessionState.CONNECTED)
        second = await heard.get()
        assert second > first
        node = await store.get(BrokerNode.path(1))
        assert node is not None
        assert BrokerNode.decode(1, node.data).previous_broker_epoch == first
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(story)


def test_nobody_waits_for_a_store_out_of_reach_in_order_to_leave_it() -> None:
    tree = MemoryTree()

    async def story() -> None:
        out_of_reach = False

        async def travel(_: object) -> None:
            if out_of_reach:
                await asyncio.Event().wait()  # until the connection is back, which it never is

        store = MemoryStore(tree, travel)
        await store.open()
        await prepare(store)
        registration = BrokerRegistration(store, 1, broker_node())
        await registration.register()
        out_of_reach = True
        store.report(SessionState.SUSPENDED)
        async with asyncio.timeout(1):
            await registration.withdraw()

    asyncio.run(story())
    assert tree.get(BrokerNode.path(1)) is not None, "it goes with the session"
