"""The embedded store: the contract of every store, and what only a file can do."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.store import Create, Set, Store, StoreFailed, StoreInUse
from tests.unit.coordination.store_contract import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Case, tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        store = EmbeddedStore(tmp_path / "store.db")
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def run() -> None:
        await case(open_store)

    asyncio.run(run())


def test_keeps_everything_but_ephemeral_nodes_when_killed(tmp_path: Path) -> None:
    """A copy of the files taken while the store is open is what a killed process leaves."""
    path = tmp_path / "store.db"
    image = tmp_path / "image"
    image.mkdir()

    async def write_and_copy() -> None:
        store = EmbeddedStore(path)
        await store.open()
        await store.multi([Create("/a", b"kept"), Create("/id", b"gone", ephemeral=True)])
        await store.set("/a", b"kept too", version=0)
        for name in ("store.db", "store.db-wal"):
            shutil.copy(tmp_path / name, image / name)
        await store.close()

    async def read() -> tuple[list[str], bytes]:
        store = EmbeddedStore(image / "store.db")
        await store.open()
        try:
            node = await store.get("/a")
            assert node is not None
            return await store.children("/"), node.data
        finally:
            await store.close()

    asyncio.run(write_and_copy())
    assert asyncio.run(read()) == (["a"], b"kept too")


def test_refuses_a_file_that_is_open_elsewhere(tmp_path: Path) -> None:
    async def story() -> None:
        first = EmbeddedStore(tmp_path / "store.db")
        await first.open()
        try:
            with pytest.raises(StoreInUse, match="open in another process"):
                await EmbeddedStore(tmp_path / "store.db").open()
        finally:
            await first.close()
        second = EmbeddedStore(tmp_path / "store.db")
        await second.open()
        await second.close()

    asyncio.run(story())


def test_names_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"this is not a database, only text" * 40)
    with pytest.raises(StoreFailed, match=r"store\.db"):
        asyncio.run(EmbeddedStore(path).open())


def test_refuses_the_layout_of_a_later_release(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(StoreFailed, match="layout 99"):
        asyncio.run(EmbeddedStore(path).open())


def test_works_in_memory_and_refuses_work_when_closed() -> None:
    async def story() -> None:
        store = EmbeddedStore()
        await store.open()
        await store.create("/a")
        assert await store.children("/") == ["a"]
        await store.close()
        with pytest.raises(StoreFailed, match="not open"):
            await store.get("/a")

    asyncio.run(story())


def test_a_cancelled_write_is_whole_and_the_store_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        store = EmbeddedStore(tmp_path / "store.db")
        await store.open()
        await store.create("/a")
        writing = asyncio.ensure_future(store.multi([Set("/a", b"1", 0), Create("/b")]))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        node = await store.get("/a")
        assert node is not None
        assert (node.version, await store.children("/")) in ((0, ["a"]), (1, ["a", "b"]))
        await store.close()

    asyncio.run(story())


def test_room_is_taken_in_advance_and_renewed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    def free_bytes() -> int:
        with sqlite3.connect(path) as db:
            (pages,) = db.execute("PRAGMA freelist_count").fetchone()
            (page_bytes,) = db.execute("PRAGMA page_size").fetchone()
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        db.close()
        assert "reserve" not in tables
        return int(pages * page_bytes)

    async def use(nodes: int) -> None:
        store = EmbeddedStore(path)
        await store.open()
        assert path.with_name("store.db-wal").stat().st_size >= 1 << 20
        for number in range(nodes):
            await store.create(f"/{number}", bytes(100_000))
        await store.close()

    asyncio.run(use(0))
    assert free_bytes() >= 1 << 20
    # Interrupted between taking the room and making it free pages.
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE reserve (bytes BLOB)")
    db.close()
    asyncio.run(use(30))
    assert free_bytes() >= 1 << 19, "what the nodes used up was taken anew"
