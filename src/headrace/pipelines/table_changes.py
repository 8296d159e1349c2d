"""`format("headrace-table")`: the changes of a database's table as a stream, found by a column that rises with every change.

A row that changes twice between two looks is seen once, as it is then; a row that is deleted is not seen. Both are the price of
needing nothing but a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from headrace.pipelines.databases import DatabaseTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class TableChangesSource(DataSource):
    """A table's changes, for Spark. Options: url, table, version; the schema is the user's."""

    @classmethod
    def name(cls) -> str:
        return "headrace-table"

    def streamReader(self, schema: StructType) -> TableChangesReader:  # noqa: N802 - Spark's name
        return TableChangesReader(dict(self.options), schema)


class Versions(InputPartition):
    """Versions above `after`, up to and with `up_to`."""

    def __init__(self, after: int, up_to: int) -> None:
        super().__init__((after, up_to))
        self.after = after
        self.up_to = up_to


class TableChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Looks at the table once per batch. Starting at 0, the first run reads the whole table."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._table = DatabaseTable(options["url"], options["table"])
        self._version = options["version"]
        self._columns = schema.fieldNames()
        self._frozen: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"version": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        newest = self._table.newest(self._version) if self._frozen is None else self._frozen
        return start if newest <= start["version"] else {"version": newest}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._frozen = self._table.newest(self._version)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Versions]:
        after, up_to = start["version"], end["version"]
        return [Versions(after, up_to)] if after < up_to else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Versions)
        return self._table.changed(self._columns, self._version, partition.after, partition.up_to)
