"""What a pipeline's file says: sources and sinks by name, and functions from DataFrames to DataFrames.

    from headrace.pipelines.pipeline import files, flow, source, topic, view

    source("lines", topic("lines", valueFormat="string"))

    @view
    def words(lines): ...                                  # the arguments are sources or views, by their names

    @flow(into=topic("word-counts", key="word"), mode="update")
    def word_count(words): ...

Nothing is read or started here: definitions are collected while the file is loaded, and Spark is not imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.errors import HeadraceError

FILE_FORMATS: Final = ("parquet", "json", "csv", "text", "orc")
MODES: Final = ("append", "update", "complete")


class DefinitionError(HeadraceError):
    """A pipeline's file says something that makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic. `key` is for sinks: the column that becomes the record's key."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """A directory of files."""

    path: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Jdbc:
    """A table of a database with a JDBC driver, read or appended to."""

    url: str
    table: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A table of SQLite or PostgreSQL: its changes as a stream (`version` rises with each), or rows written by key."""

    url: str
    table: str
    keys: tuple[str, ...] = ()
    version: str | None = None
    schema: str | None = None
    settle: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the pipeline itself, kept under its directory."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFormat:
    """Any other source or sink that Spark knows."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)


Dataset = Topic | Files | Jdbc | Database | Table | SparkFormat
Query = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A dataset with a name. `streaming`: read on and on; `as_table`: the newest value of each key."""

    name: str
    dataset: Dataset
    streaming: bool
    as_table: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A DataFrame with a name, made of others."""

    name: str
    query: Query
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A DataFrame that is written somewhere, on and on."""

    name: str
    into: Dataset
    query: Query
    inputs: tuple[str, ...]
    mode: str = "append"
    trigger: str | None = None  # an interval such as "10 seconds"; without one, as fast as it goes
    is_batch: bool = False  # computed once, after everything else


@dataclass(slots=True)
class Definitions:
    """Everything a pipeline's file said, in its order."""

    sources: dict[str, Source] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    flows: dict[str, Flow] = field(default_factory=dict)

    def add(self, item: Source | View | Flow) -> None:
        if item.name in self.sources | self.views | self.flows:
            raise DefinitionError(f"'{item.name}' is defined twice")
        match item:
            case Source():
                self.sources[item.name] = item
            case View():
                self.views[item.name] = item
            case Flow():
                self.flows[item.name] = item


_collecting: ContextVar[Definitions | None] = ContextVar("collecting", default=None)


@contextmanager
def collecting() -> Iterator[Definitions]:
    """Definitions made in here are collected."""
    found = Definitions()
    token = _collecting.set(found)
    try:
        yield found
    finally:
        _collecting.reset(token)


def _add(item: Source | View | Flow) -> None:
    found = _collecting.get()
    if found is not None:  # a file that is imported, by a test for instance, defines nothing
        found.add(item)


# Datasets.


def topic(name: str, *, key: str | None = None, **options: object) -> Topic:
    """A topic, with options of `format("headrace")`; those with dots are given as `**{"kafka.client.id": …}`."""
    return Topic(name=name, key=key, options=_texts(options))


def files(
    path: str,
    *,
    format: str = "parquet",
    schema: str | None = None,
    partition_by: Sequence[str] = (),
    **options: object,
) -> Files:
    """A directory of files."""
    if format not in FILE_FORMATS:
        raise DefinitionError(f"files can be {', '.join(FILE_FORMATS)}, not {format}")
    return Files(
        path=path,
        format=format,
        schema=schema,
        partition_by=tuple(partition_by),
        options=_texts(options),
    )


def jdbc(url: str, table: str, **options: object) -> Jdbc:
    """A table reached through a JDBC driver, whose jar is given with --conf spark.jars=…"""
    return Jdbc(url=url, table=table, options=_texts(options))


def database(
    url: str,
    table: str,
    *,
    keys: Sequence[str] = (),
    version: str | None = None,
    schema: str | None = None,
    settle: str | None = None,
) -> Database:
    """A table of sqlite:///PATH or postgresql://…, reached from Python.

    Read as a stream, rows come in the order of `version`, `settle` (such as "10s") after their version was first seen:
    a transaction that takes longer than that to commit is passed over.
    """
    return Database(
        url=url, table=table, keys=tuple(keys), version=version, schema=schema, settle=settle
    )


def table(name: str) -> Table:
    """A table of the pipeline itself."""
    return Table(name=name)


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }


# What is done with them.


def source(name: str, dataset: Dataset, *, streaming: bool = True, as_table: bool = False) -> None:
    """Give a dataset the name by which functions and SQL ask for it."""
    _add(
        Source(name=name, dataset=dataset, streaming=streaming and not as_table, as_table=as_table)
    )


def view(query: Query) -> Query:
    """The function's DataFrame gets the function's name."""
    _add(View(name=query.__name__, query=query, inputs=_inputs(query)))
    return query


def flow(
    *, into: Dataset, mode: str = "append", trigger: str | None = None
) -> Callable[[Query], Query]:
    """The function's DataFrame is written into a dataset."""

    def defined(query: Query) -> Query:
        _add(
            Flow(
                name=query.__name__,
                into=into,
                query=query,
                inputs=_inputs(query),
                mode=_mode(mode),
                trigger=trigger,
            )
        )
        return query

    return defined


def sql_view(name: str, text: str) -> None:
    """A query in SQL over sources and views, under a name."""
    _add(View(name=name, query=_sql(text), inputs=(SQL + text,)))


def sql_flow(
    name: str, text: str, *, into: Dataset, mode: str = "append", trigger: str | None = None
) -> None:
    """What a query in SQL finds is written into a dataset."""
    inputs = (SQL + text,)
    _add(
        Flow(
            name=name, into=into, query=_sql(text), inputs=inputs, mode=_mode(mode), trigger=trigger
        )
    )


SQL: Final = "sql:"  # in front of an input that is a text whose words may name inputs


def _sql(text: str) -> Query:
    def run(spark: Any) -> Any:
        return spark.sql(text)

    return run


def _mode(mode: str) -> str:
    if mode not in MODES:
        raise DefinitionError(f"a mode is {', '.join(MODES)}, not {mode}")
    return mode


def _inputs(query: Query) -> tuple[str, ...]:
    return tuple(inspect.signature(query).parameters)
