"""Tables of SQLite and PostgreSQL, from Python: rows written by key, and rows that changed since a version.

SQLite comes with Python; PostgreSQL needs the package psycopg. One statement form fits both. Names of tables and columns come
from the pipeline's own file and are quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from headrace.errors import HeadraceError
from headrace.pipelines.pipeline import DefinitionError

_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")
_ROWS_AT_ONCE: Final = 1000
# SQLite has one writer at a time, so that versions are committed in their order; PostgreSQL has many.
_SETTLE_SQLITE: Final = "0s"
_SETTLE_POSTGRES: Final = "10s"


def default_settle(url: str) -> str:
    """How long after it was first seen a version is read, where nothing else is said."""
    return _SETTLE_SQLITE if url.startswith(_SQLITE) else _SETTLE_POSTGRES


class VersionMissing(HeadraceError):
    """The column that should rise with every change does not say it for some rows."""


class DatabaseTable:
    """One table. A connection is opened for each call: calls are one per micro-batch."""

    def __init__(self, url: str, table: str) -> None:
        self._url = url
        self._table = _quoted(table)
        if url.startswith(_SQLITE):
            self._mark = "?"
        elif url.startswith(_POSTGRES):
            self._mark = "%s"
        else:
            raise DefinitionError(f"{url}: a database is {_SQLITE}PATH or {_POSTGRES[0]}…")

    def upsert(
        self, columns: Sequence[str], keys: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> int:
        """Insert rows, or replace those with the same key, in one transaction. The same rows again change nothing."""
        names = ", ".join(map(_quoted, columns))
        marks = ", ".join(self._mark for _ in columns)
        rest = [name for name in columns if name not in keys]
        renewed = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in rest)
        action = f"DO UPDATE SET {renewed}" if rest else "DO NOTHING"
        statement = (
            f"INSERT INTO {self._table} ({names}) VALUES ({marks})"  # noqa: S608 - names are quoted
            f" ON CONFLICT ({', '.join(map(_quoted, keys))}) {action}"
        )
        count = 0
        with closing(self._connect()) as connection:
            cursor = connection.cursor()
            for portion in _portions(rows):
                cursor.executemany(statement, portion)
                count += len(portion)
            connection.commit()
        return count

    def newest(self, version: str) -> int | None:
        """The highest version in the table; None where it is empty. Raises VersionMissing."""
        place = _quoted(version)
        with closing(self._connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT 1 FROM {self._table} WHERE {place} IS NULL LIMIT 1")  # noqa: S608
            if cursor.fetchone() is not None:
                raise VersionMissing(
                    f"table {self._table} has rows whose column {place} is NULL: they would never be read."
                    " Give them a version, and make the column NOT NULL"
                )
            cursor.execute(f"SELECT max({place}) FROM {self._table}")  # noqa: S608
            found = cursor.fetchone()[0]
        if found is not None and not isinstance(found, int):
            raise VersionMissing(
                f"the column {place} of table {self._table} holds {found!r}: a version is a whole number"
            )
        return found

    def changed(
        self, columns: Sequence[str], version: str, after: int | None, up_to: int
    ) -> Iterator[tuple[Any, ...]]:
        """Rows with a version above `after` (None: any), up to and with `up_to`, oldest first."""
        names = ", ".join(map(_quoted, columns))
        place = _quoted(version)
        above = "" if after is None else f"{place} > {self._mark} AND "
        statement = (
            f"SELECT {names} FROM {self._table}"  # noqa: S608
            f" WHERE {above}{place} <= {self._mark} ORDER BY {place}"
        )
        with closing(self._connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(statement, (up_to,) if after is None else (after, up_to))
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield from rows

    def _connect(self) -> Any:
        if self._url.startswith(_SQLITE):
            import sqlite3

            return sqlite3.connect(self._url.removeprefix(_SQLITE), timeout=30)
        try:
            from importlib import import_module

            psycopg = import_module("psycopg")
        except ImportError:
            raise DefinitionError(
                f"{self._url} needs the package psycopg: pip install 'psycopg[binary]'"
            ) from None
        return psycopg.connect(self._url)


def _portions(rows: Iterable[Sequence[Any]]) -> Iterator[list[tuple[Any, ...]]]:
    portion: list[tuple[Any, ...]] = []
    for row in rows:
        portion.append(tuple(row))
        if len(portion) == _ROWS_AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion


def _quoted(name: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))
