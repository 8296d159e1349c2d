"""The store of simulations: the contract of every store, sessions that expire, ways that are long."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace.coordination.store import (
    Create,
    SessionLost,
    SessionState,
    Set,
    Store,
    WriteUncertain,
)
from headrace.testing.memory_store import Leg, MemoryStore, MemoryTree
from tests.unit.coordination.store_contract import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Case) -> None:
    tree = MemoryTree()

    @asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        store = MemoryStore(tree)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def run() -> None:
        await case(open_store)

    asyncio.run(run())


def done(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs what never waits, without an event loop."""
    with pytest.raises(StopIteration) as end:
        coroutine.send(None)
    return end.value.value


def test_no_event_loop_is_needed() -> None:
    store = MemoryStore(MemoryTree())
    done(store.open())
    done(store.create("/a", b"1"))
    assert done(store.get("/a")).data == b"1"


def test_an_expired_session_loses_its_nodes_and_every_right() -> None:
    tree = MemoryTree()
    store = MemoryStore(tree)
    store.renew()
    done(store.multi([Create("/mine", b"x", ephemeral=True), Create("/stays", b"y")]))
    tree.end_session(store.session)
    assert tree.get("/mine") is None
    assert tree.get("/stays") is not None
    assert store.session_state is SessionState.CONNECTED, "nobody has told it yet"
    with pytest.raises(SessionLost):
        store.get("/stays").send(None)
    store.renew()
    assert done(store.get("/stays")).data == b"y"


def test_a_write_whose_answer_is_lost_has_been_made() -> None:
    async def travel(leg: Leg) -> None:
        if leg is Leg.BACK_FROM_WRITE:
            raise WriteUncertain("no answer")

    tree = MemoryTree()
    store = MemoryStore(tree, travel)
    store.renew()
    with pytest.raises(WriteUncertain):
        store.create("/a", b"1").send(None)
    assert done(store.get("/a")).data == b"1", "reads are not harmed"


def test_every_write_is_told() -> None:
    told: list[tuple[str, int | None, int | None]] = []
    tree = MemoryTree(
        lambda path, before, after: told.append(
            (path, before and before.version, after and after.version)
        )
    )
    session = tree.open_session()
    tree.write([Create("/a", b"1", ephemeral=True)], session)
    tree.write([Set("/a", b"2", 0)], session)
    tree.end_session(session)
    assert told == [("/a", None, 0), ("/a", 0, 1), ("/a", 1, None)]
