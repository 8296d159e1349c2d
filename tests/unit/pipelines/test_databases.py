"""Rows written by key, and rows that changed since a version: with the database that comes with Python."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace.pipelines.databases import DatabaseTable
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


def test_an_empty_table_has_version_zero(url: str) -> None:
    assert DatabaseTable(url, 'odd "name').newest("n") == 0


def test_a_database_that_is_not_known() -> None:
    with pytest.raises(DefinitionError, match="a database is sqlite:///PATH or postgresql://"):
        DatabaseTable("mysql://x", "t")
