"""What every `Store` must do. The same checks run on SQLite here and on a real ZooKeeper in
tests/cluster: a difference between the two is a fault of one of them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from headrace.coordination.store import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    NoChildrenForEphemerals,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionState,
    Set,
    Store,
)

# Opens a store on the same, initially empty tree; each one has a session of its own in time.
OpenStore = Callable[[], AbstractAsyncContextManager[Store]]
Case = Callable[[OpenStore], Awaitable[None]]


async def reads_back_what_was_created(open_store: OpenStore) -> None:
    async with open_store() as store:
        created = await store.create("/a", b"one")
        assert created.data == b"one"
        assert created.version == 0
        assert await store.get("/a") == created
        assert await store.get("/b") is None


async def creates_missing_parents_only_when_asked(open_store: OpenStore) -> None:
    async with open_store() as store:
        with pytest.raises(NoNode) as refused:
            await store.create("/p/q/r", b"x")
        assert refused.value.path == "/p/q"
        await store.create("/p/q/r", b"x", parents=True)
        await store.create("/p/q/s", b"", parents=True)
        assert await store.children("/p/q") == ["r", "s"]
        assert await store.get("/p") == Node(b"", 0, (await _node(store, "/p")).created_txn)


async def refuses_a_second_creation(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.create("/a", b"one")
        with pytest.raises(NodeExists):
            await store.create("/a", b"two")
        assert (await _node(store, "/a")).data == b"one"


async def sets_only_the_expected_version(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.create("/a", b"0")
        assert await store.set("/a", b"1", version=0) == 1
        with pytest.raises(BadVersion):
            await store.set("/a", b"again", version=0)
        assert await store.set("/a", b"2", version=ANY_VERSION) == 2
        with pytest.raises(NoNode):
            await store.set("/b", b"", version=ANY_VERSION)
        assert (await _node(store, "/a"))[:2] == (b"2", 2)


async def deletes_only_the_expected_version_and_leaves(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.create("/a/b", parents=True)
        with pytest.raises(NotEmpty):
            await store.delete("/a")
        with pytest.raises(BadVersion):
            await store.delete("/a/b", version=7)
        await store.delete("/a/b", version=0)
        await store.delete("/a")
        with pytest.raises(NoNode):
            await store.delete("/a")


async def created_txn_grows_over_the_whole_store(open_store: OpenStore) -> None:
    async with open_store() as store:
        first = await store.create("/a")
        other = await store.create("/b")
        await store.delete("/a")
        again = await store.create("/a")
        assert first.created_txn < other.created_txn < again.created_txn
    async with open_store() as store:
        assert (await store.create("/c")).created_txn > again.created_txn


async def multi_is_all_or_nothing(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.create("/a", b"0")
        with pytest.raises(BadVersion) as refused:
            await store.multi([Create("/b"), Set("/a", b"1", 5), Create("/c")])
        assert refused.value.path == "/a"
        assert await store.children("/") == ["a"]
        await store.multi(
            [Check("/a", 0), Create("/b"), Create("/b/c", b"x"), Set("/a", b"1", 0), Delete("/b/c")]
        )
        assert (await _node(store, "/a"))[:2] == (b"1", 1)
        assert await store.children("/b") == []


async def multi_tells_which_operation_was_refused(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.create("/a")
        with pytest.raises(NodeExists) as exists:
            await store.multi([Create("/b"), Create("/a")])
        assert exists.value.path == "/a"
        with pytest.raises(NoNode) as missing:
            await store.multi([Create("/x/y")])
        assert missing.value.path == "/x"
        with pytest.raises(NoNode) as unchecked:
            await store.multi([Check("/nothing", 0)])
        assert unchecked.value.path == "/nothing"
        with pytest.raises(BadVersion) as fenced:
            await store.multi([Check("/a", 3), Create("/b")])
        assert fenced.value.path == "/a"
        with pytest.raises(NotEmpty):
            await store.multi([Create("/a/b"), Delete("/a")])


async def tree_holds_the_nodes_with_data(open_store: OpenStore) -> None:
    async with open_store() as store:
        for path, data in (
            ("/t/a", b"1"),
            ("/t/a/x/state", b"2"),
            ("/t/a-b", b"3"),
            ("/t/a0/x", b"4"),
            ("/tt", b"no"),
        ):
            await store.create(path, data, parents=True)
        tree = await store.get_tree("/t")
        assert {path: node.data for path, node in tree.items()} == {
            "/t/a": b"1",
            "/t/a/x/state": b"2",
            "/t/a-b": b"3",
            "/t/a0/x": b"4",
        }
        assert tree["/t/a"] == await store.get("/t/a")
        assert await store.children("/t") == ["a", "a-b", "a0"]
        with pytest.raises(NoNode):
            await store.children("/none")


async def ephemeral_nodes_end_with_the_session(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.create("/ids")
        await store.create("/ids/1", b"me", ephemeral=True)
        with pytest.raises(NoChildrenForEphemerals) as refused:
            await store.create("/ids/1/child")
        assert refused.value.path == "/ids/1"
        assert await store.children("/ids") == ["1"]
    async with open_store() as store:
        assert await store.children("/ids") == []


async def node_watch_tells_of_every_kind_of_change(open_store: OpenStore) -> None:
    async with open_store() as store:
        changed = asyncio.Event()
        cancel = await store.watch_node("/a", changed.set)
        await store.create("/a")
        await _soon(changed)
        await store.set("/a", b"1", version=0)
        await _soon(changed)
        await store.multi([Set("/a", b"2", 1)])
        await _soon(changed)
        await store.delete("/a")
        await _soon(changed)
        cancel()
        await store.create("/a")
        await store.get("/a")
        assert not changed.is_set()


async def children_watch_tells_of_births_and_deaths(open_store: OpenStore) -> None:
    async with open_store() as store:
        changed = asyncio.Event()
        with pytest.raises(NoNode):
            await store.watch_children("/ids", changed.set)
        await store.create("/ids")
        await store.watch_children("/ids", changed.set)
        await store.create("/ids/1", ephemeral=True)
        await _soon(changed)
        await store.create("/ids/2")
        await _soon(changed)
        await store.delete("/ids/1")
        await _soon(changed)
        assert await store.children("/ids") == ["2"]


async def session_is_connected_while_open(open_store: OpenStore) -> None:
    async with open_store() as store:
        while_open = store.session_state
    assert (while_open, store.session_state) == (SessionState.CONNECTED, SessionState.LOST)


async def writes_of_many_callers_do_not_mix(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.create("/n", b"0")

        async def add_one() -> None:
            while True:
                node = await _node(store, "/n")
                try:
                    await store.set("/n", b"%d" % (int(node.data) + 1), version=node.version)
                except BadVersion:
                    continue
                return

        async with asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(add_one())
        assert await store.get("/n") == Node(b"8", 8, (await _node(store, "/n")).created_txn)


CASES: tuple[Case, ...] = (
    reads_back_what_was_created,
    creates_missing_parents_only_when_asked,
    refuses_a_second_creation,
    sets_only_the_expected_version,
    deletes_only_the_expected_version_and_leaves,
    created_txn_grows_over_the_whole_store,
    multi_is_all_or_nothing,
    multi_tells_which_operation_was_refused,
    tree_holds_the_nodes_with_data,
    ephemeral_nodes_end_with_the_session,
    node_watch_tells_of_every_kind_of_change,
    children_watch_tells_of_births_and_deaths,
    session_is_connected_while_open,
    writes_of_many_callers_do_not_mix,
)


async def _node(store: Store, path: str) -> Node:
    node = await store.get(path)
    assert node is not None, path
    return node


async def _soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(5):
        await event.wait()
    event.clear()
