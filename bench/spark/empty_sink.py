"""A sink in Python that takes rows and does nothing: the floor below which no sink of Spark's Python Data Source API can be.

Spark's Python processes import this module by its name, so it imports nothing else.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType


class Nothing(WriterCommitMessage):
    """A task has taken its rows."""


class EmptyWriter(DataSourceStreamArrowWriter):
    """Takes rows."""

    # Spark gives Arrow batches to a writer of this class, and declares rows.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Nothing:  # type: ignore[override]
        for _ in iterator:
            pass
        return Nothing()


class EmptySink(DataSource):
    """`format("floor")`."""

    @classmethod
    def name(cls) -> str:
        return "floor"

    def streamWriter(self, schema: StructType, overwrite: bool) -> EmptyWriter:  # noqa: FBT001, N802 - Spark's call
        return EmptyWriter()
