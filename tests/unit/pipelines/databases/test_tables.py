"""Rows written by key, and rows that changed since a version: with the database that comes with Python."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace.pipelines.databases.settled_versions import SettledVersions
from headrace.pipelines.databases.tables import DatabaseTable, VersionMissing
from headrace.pipelines.pipeline import DefinitionError


@pytest.fixture
def url(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.execute(
            'CREATE TABLE "odd ""name" (id INTEGER, city TEXT, n INTEGER, PRIMARY KEY (id))'
        )
        shop.commit()
    return f"sqlite:///{tmp_path / 'shop.db'}"


def test_the_same_rows_again_change_nothing(url: str) -> None:
    table = DatabaseTable(url, 'odd "name')
    rows = [(number, f"c{number}", 1) for number in range(2500)]
    assert table.upsert(["id", "city", "n"], ["id"], rows) == 2500
    assert table.upsert(["id", "city", "n"], ["id"], [*rows, (0, "new", 2)]) == 2501
    found = list(table.changed(["id", "city"], "n", 1, 2))
    assert found == [(0, "new")]
    assert len(list(table.changed(["id"], "n", 0, 2))) == 2500


def test_rows_that_are_nothing_but_key(url: str) -> None:
    table = DatabaseTable(url, 'odd "name')
    assert table.upsert(["id"], ["id"], [(1,), (1,), (2,)]) == 3
    assert table.newest("id") == 2


def test_an_empty_table_has_no_version(url: str) -> None:
    assert DatabaseTable(url, 'odd "name').newest("n") is None


def test_versions_of_zero_and_below_are_read(url: str) -> None:
    table = DatabaseTable(url, 'odd "name')
    table.upsert(["id", "n"], ["id"], [(1, 0), (2, -5), (3, 7)])
    assert table.newest("n") == 7
    assert list(table.changed(["id"], "n", None, 7)) == [(2,), (1,), (3,)]
    assert list(table.changed(["id"], "n", 0, 7)) == [(3,)]


def test_rows_that_would_never_be_read_are_refused(url: str) -> None:
    table = DatabaseTable(url, 'odd "name')
    table.upsert(["id", "city", "n"], ["id"], [(1, "x", 1), (2, "y", None)])
    with pytest.raises(VersionMissing, match='column "n" is NULL'):
        table.newest("n")
    with pytest.raises(VersionMissing, match="holds 'y': a version is a whole number"):
        table.newest("city")


def test_a_version_is_read_when_it_has_settled() -> None:
    versions = SettledVersions(10.0)
    assert versions.settled(0.0) is None
    versions.see(6, 0.0)  # 5 is taken, but not committed
    assert versions.settled(9.0) is None
    versions.see(8, 9.0)
    assert versions.settled(10.0) == 6, "5 had its ten seconds"
    assert versions.settled(18.9) == 6
    assert versions.settled(19.0) == 8
    versions.see(None, 20.0)
    assert versions.settled(40.0) == 8, "a table that was emptied"


def test_without_a_time_to_settle_the_newest_is_read_at_once() -> None:
    versions = SettledVersions(0.0)
    versions.see(-3, 1.0)
    assert versions.settled(1.0) == -3


def test_a_database_that_is_not_known() -> None:
    with pytest.raises(DefinitionError, match="a database is sqlite:///PATH or postgresql://"):
        DatabaseTable("mysql://x", "t")
