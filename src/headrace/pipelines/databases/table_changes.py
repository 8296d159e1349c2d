"""`format("headrace-table")`: the changes of a database's table as a stream, found by a column that rises with every change.

A row that changes twice between two looks is seen once, as it is then; a row that is deleted is not seen. Both are the price of
needing nothing but a column. A version is read `settle` after it was first seen, so that transactions which took a lower one have
that long to commit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from headrace.pipelines.databases.settled_versions import SettledVersions
from headrace.pipelines.databases.tables import DatabaseTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class TableChangesSource(DataSource):
    """A table's changes, for Spark. Options: url, table, version, settleMs; the schema is the user's."""

    @classmethod
    def name(cls) -> str:
        return "headrace-table"

    def streamReader(self, schema: StructType) -> TableChangesReader:  # noqa: N802 - Spark's name
        return TableChangesReader(dict(self.options), schema)


class Versions(InputPartition):
    """Versions above `after`, up to and with `up_to`."""

    def __init__(self, after: int | None, up_to: int) -> None:
        super().__init__((after, up_to))
        self.after = after
        self.up_to = up_to


class TableChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Looks at the table once per batch. The first run reads the whole table."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._table = DatabaseTable(options["url"], options["table"])
        self._version = options["version"]
        self._columns = schema.fieldNames()
        self._settle_s = int(options["settlems"]) / 1000
        self._settled = SettledVersions(self._settle_s)
        self._is_frozen = False

    def initialOffset(self) -> dict[str, int | None]:  # noqa: N802
        return {"version": None}  # before all: versions may be 0, or below

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        now_s = time.monotonic()
        if not self._is_frozen:
            self._settled.see(self._table.newest(self._version), now_s)
        end = self._settled.settled(now_s)
        return start if _is_empty(start["version"], end) else {"version": end}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._settled.see(self._table.newest(self._version), time.monotonic())
        time.sleep(self._settle_s)
        self._is_frozen = True

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Versions]:
        after, up_to = start["version"], end["version"]
        return [] if _is_empty(after, up_to) else [Versions(after, up_to)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Versions)
        return self._table.changed(self._columns, self._version, partition.after, partition.up_to)


def _is_empty(after: int | None, up_to: int | None) -> bool:
    return up_to is None or (after is not None and up_to <= after)
