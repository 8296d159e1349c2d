"""The sink: rows of a query as records of topics, at least once, through an idempotent producer.

Columns are those of Spark's Kafka connector: `value`, and where wanted `key`, `topic`, `partition`, `headers`. A task writes its
rows and returns when they are acknowledged, so a batch that Spark has committed is in the log. A batch that is repeated after a
failure is written again: exactly-once needs transactions, and `deliveryGuarantee` is the option that will ask for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from headrace.pipelines.options.sink_options import SinkOptions, parse_sink_options
from headrace.pipelines.spark.frozen_imports import freeze_imports

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class Written(WriterCommitMessage):
    """What a task has written."""

    def __init__(self, record_count: int) -> None:
        self.record_count = record_count


class SinkWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = parse_sink_options(options, schema)
        _prepare_schemas(self._options)

    # Spark gives Arrow batches to a writer of this class, and declares rows.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        return _written(iterator, self._options)


class StreamSinkWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a streaming query."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = parse_sink_options(options, schema)
        _prepare_schemas(self._options)

    # Spark gives Arrow batches to a writer of this class, and declares rows.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        return _written(iterator, self._options)


def _written(batches: Iterator[pa.RecordBatch], options: SinkOptions) -> Written:
    from headrace.pipelines.writing.row_writing import write_rows

    written = Written(write_rows(batches, options))
    freeze_imports()
    return written


def _prepare_schemas(options: SinkOptions) -> None:
    """Register or look up the schemas where the topic is known: what the registry refuses is told before anything is written."""
    if options.registry is None or not options.topic:
        return
    from headrace.pipelines.writing.row_writing import encoders_for

    for encoder in encoders_for(options).values():
        encoder.prepare(options.topic)
