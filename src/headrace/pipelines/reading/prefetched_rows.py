"""Rows of a small micro-batch that Spark takes together with the plan of the batch, so that no task reads them.

A task of a Python source talks to a Python process, which costs more than all the rest of a small batch. PySpark spares that to
sources of the simple kind (`SimpleDataSourceStreamReader`): a private wrapper class sends their rows along when a batch is planned,
and Spark keeps them as a block until the batch is done. Where the block is lost, Spark reads the partition by a task after all.

This module owns what is known of that wrapper. A reader that is the wrapper for good could not report how far a topic goes, so a
reader becomes one only between `partitions` and the call that takes the rows. With a PySpark that has no such class, tasks read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper as _Wrapper
except ImportError:  # another PySpark
    _Wrapper = None  # type: ignore[assignment,misc]


class PrefetchingReader(DataSourceStreamReader):
    """A stream reader that may hand over the rows of a batch with its plan."""

    _prefetched: list[pa.RecordBatch] | None = None
    _reader_class: type[PrefetchingReader] | None = None  # of a carrier of rows: what it is else

    @property
    def can_prefetch(self) -> bool:
        return _Wrapper is not None

    def hand_over(self, rows: list[pa.RecordBatch]) -> None:
        """Let Spark take these rows when `partitions` returns, which must return exactly one partition then."""
        self._prefetched = rows
        self.__class__ = _carrier_of(type(self))

    def take_back(self) -> None:
        """Forget rows that were not taken."""
        self._prefetched = None
        if self._reader_class is not None:
            self.__class__ = self._reader_class


def _get_cache(
    reader: PrefetchingReader, start: dict[str, Any], end: dict[str, Any]
) -> Iterator[pa.RecordBatch] | None:
    rows = reader._prefetched
    reader.take_back()
    return None if rows is None else iter(rows)


@cache
def _carrier_of(reader_class: type[PrefetchingReader]) -> type[PrefetchingReader]:
    """The same class as PySpark's wrapper: the class of a reader while it has rows to hand over."""
    if reader_class._reader_class is not None:
        return reader_class
    # The reader's class comes first, or its objects could not change to this one.
    return type(
        f"{reader_class.__name__}WithRows",
        (reader_class, _Wrapper),
        {"_reader_class": reader_class, "getCache": _get_cache},
    )
