"""`format("headrace")`: what Spark sees of us. Topics as a batch source, a streaming source and a sink.

Spark finds this class by its name when the package is installed (`pyspark_headrace`), or after
`spark.dataSource.register(HeadraceDataSource)`. It is imported wherever Spark plans a query, so it imports little; Spark pickles
readers and writers and calls them in other processes, so they hold options and no connections.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from headrace.pipelines.reading.prefetched_rows import PrefetchingReader
from headrace.pipelines.spark.frozen_imports import freeze_imports

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.pipelines.cluster.cluster_offsets import ClusterOffsets
    from headrace.pipelines.offset_ranges import OffsetRange
    from headrace.pipelines.options.source_options import SourceOptions
    from headrace.pipelines.reading.group_commits import GroupCommits
    from headrace.pipelines.reading.range_reading import TaskRange
    from headrace.pipelines.reading.record_opening import SourceColumns
    from headrace.pipelines.reading.stream_progress import StreamProgress
    from headrace.pipelines.writing.sink import SinkWriter, StreamSinkWriter
    from headrace.schemas.columns.codec import PinnedSchema

_log = logging.getLogger(__name__)

_MOST_PREFETCHED_BYTES: Final = 8 * 1024 * 1024  # they go through the driver's memory
_TASKS_READ_S: Final = 10.0


class HeadraceDataSource(DataSource):
    """Topics, for Spark."""

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def schema(self) -> str | StructType:
        """The columns where the user gave no schema of their own."""
        from headrace.pipelines.options.known_options import SOURCE_OPTIONS, checked
        from headrace.pipelines.options.source_options import opening_of, topic_choice
        from headrace.pipelines.reading.source_columns import declared_columns

        options = checked(self.options, SOURCE_OPTIONS, where="a query")
        return declared_columns(opening_of(options), topic_choice(options))

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(dict(self.options), schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        return StreamReader(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> SinkWriter:  # noqa: FBT001 - Spark's call
        from headrace.pipelines.options.known_options import OptionError
        from headrace.pipelines.writing.sink import SinkWriter

        if overwrite:
            raise OptionError("a topic cannot be overwritten: use mode('append')")
        return SinkWriter(dict(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSinkWriter:  # noqa: FBT001, N802
        from headrace.pipelines.writing.sink import StreamSinkWriter

        writer = StreamSinkWriter(dict(self.options), schema)
        freeze_imports()  # Spark asks for the writer twice a batch: for its plan and its commit
        return writer


class RangePartition(InputPartition):
    """Ranges of partitions, for one task."""

    def __init__(self, ranges: Sequence[TaskRange]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class BatchReader(DataSourceReader):
    """Reads what lies between two places, once."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        from headrace.pipelines.options.source_options import parse_source_options

        self._options = parse_source_options(options, streaming=False)
        self._columns = _checked_columns(schema, self._options)

    def partitions(self) -> list[RangePartition]:
        from headrace.pipelines.cluster.cluster_offsets import ClusterOffsets
        from headrace.pipelines.offset_ranges import OffsetRange

        cluster = ClusterOffsets(self._options)
        try:
            partitions = cluster.partitions(wait_for_topics=True)
            starts = cluster.resolve(self._options.starting, partitions)
            ends = cluster.resolve(self._options.ending, partitions)
        finally:
            cluster.close()
        ranges = [
            OffsetRange(partition=each, start=starts[each], end=ends[each]) for each in partitions
        ]
        return _for_tasks(self._options.portions.tasks_of(ranges), cluster.topic_ids)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangePartition):
            return iter(())  # Spark makes a partition of its own where there is none
        return _rows(partition, self._columns, self._options)


class StreamReader(PrefetchingReader, SupportsTriggerAvailableNow):
    """Reads on and on. One object lives beside the driver, answers about offsets and reads small batches; others, pickled,
    read the rest.
    """

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        from headrace.pipelines.options.source_options import parse_source_options

        self._options = parse_source_options(options, streaming=True)
        self._columns = _checked_columns(schema, self._options)
        self._cluster: ClusterOffsets | None = None
        self._progress: StreamProgress | None = None
        self._group_commits: GroupCommits | None = None
        self._tasks_read_until = 0.0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return self._answering().initial()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        self.take_back()
        # Spark's own commit() comes with the next batch only: a group whose topic rests would seem to lag for ever.
        # A batch that ended at `start` is done when the end of the next one is asked for.
        self._show_progress(start)
        # With limits of our own, "all that is available" comes only from a trigger that wants it.
        everything = self._is_limited() and isinstance(limit, ReadAllAvailable)
        return self._answering().next_end(start, everything=everything)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        portions = self._options.portions
        rows = portions.max_offsets or portions.min_offsets
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def _is_limited(self) -> bool:
        portions = self._options.portions
        return (portions.max_offsets or portions.min_offsets) is not None

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._answering().latest_known()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._answering().freeze()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[RangePartition]:
        from headrace.pipelines.offset_ranges import topic_ids_in
        from headrace.pipelines.options.source_options import ENOUGH_FOR_A_TASK

        progress = self._answering()
        ranges = progress.planned(start, end)
        tasks = _for_tasks(ranges, topic_ids_in(end))
        if len(tasks) == 1 and sum(each.size for each in ranges[0]) <= ENOUGH_FOR_A_TASK:
            self._prefetch(tasks[0])
        return tasks

    def _prefetch(self, partition: RangePartition) -> None:
        """Read a small batch here and now. One that cannot be had in this way is left to a task, and so are the next ones."""
        from headrace.pipelines.reading.range_reading import read_now

        if not self.can_prefetch or time.monotonic() < self._tasks_read_until:
            return
        rows = read_now(
            partition.ranges, self._columns, self._options, most_bytes=_MOST_PREFETCHED_BYTES
        )
        if rows is None:
            self._tasks_read_until = time.monotonic() + _TASKS_READ_S
        else:
            self.hand_over(rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return _rows(partition, self._columns, self._options)

    def _show_progress(self, done: dict[str, Any]) -> None:
        """Commit to the group, where there is one, how far the query came."""
        from headrace.errors import HeadraceError
        from headrace.pipelines.offset_ranges import offsets_in
        from headrace.pipelines.reading.group_commits import GroupCommits

        group = self._options.commit_group
        if not group:
            return
        commits = self._group_commits = self._group_commits or GroupCommits()
        if not commits.is_due(done, time.monotonic()):
            return
        self._answering()
        assert self._cluster is not None
        try:
            self._cluster.commit(group, offsets_in(done))
        except HeadraceError as error:
            # The checkpoint is what counts.
            if commits.failed(str(error), time.monotonic()):
                _log.warning(
                    "the progress is not committed to group %s: %s (tried again now and then)",
                    group,
                    error,
                )
        else:
            commits.succeeded(done)

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def _answering(self) -> StreamProgress:
        from headrace.pipelines.cluster.cluster_offsets import ClusterOffsets
        from headrace.pipelines.reading.stream_progress import StreamProgress

        if self._progress is None:
            self._cluster = ClusterOffsets(self._options)
            self._progress = StreamProgress(
                self._cluster,
                starting=self._options.starting,
                portions=self._options.portions,
                on_loss=self._report_loss,
                now_ms=lambda: time.time_ns() // 1_000_000,
            )
        return self._progress

    def _report_loss(self, what: str) -> None:
        from headrace.pipelines.reading.range_reading import DataLost

        if self._options.fail_on_data_loss:
            raise DataLost(
                f"{what}. Records may have been lost (failOnDataLoss=false goes on with what is there)"
            )
        _log.warning("%s; going on, because failOnDataLoss=false", what)


def _for_tasks(
    tasks: Sequence[Sequence[OffsetRange]], topic_ids: Mapping[str, str]
) -> list[RangePartition]:
    from headrace.pipelines.reading.range_reading import TaskRange

    return [
        RangePartition(
            [
                TaskRange(
                    partition=each.partition,
                    start=each.start,
                    end=each.end,
                    topic_id=topic_ids.get(each.partition.topic),
                )
                for each in ranges
            ]
        )
        for ranges in tasks
    ]


def _rows(
    partition: RangePartition, columns: SourceColumns, options: SourceOptions
) -> Iterator[pa.RecordBatch]:
    from headrace.pipelines.reading.range_reading import read_range

    for each in partition.ranges:
        yield from read_range(each, columns, options)
    freeze_imports()


def _checked_columns(schema: StructType, options: SourceOptions) -> SourceColumns:
    """The columns to read, after a wrong one was told: before anything is read."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from headrace.pipelines.reading.record_opening import Opener, SourceColumns

    opening = options.opening
    pinned: dict[str, PinnedSchema] = {}
    if opening.registry is not None:
        from headrace.pipelines.columns.schemas import chosen_schemas, from_metadata

        pinned = from_metadata(schema)
        names = schema.fieldNames()
        missing = [
            each
            for each in (opening.key, opening.value)
            if each.column in names and each.column not in pinned
        ]
        pinned |= chosen_schemas(missing, opening.registry, options.choice)
    columns = SourceColumns(to_arrow_schema(schema, timezone="UTC"), pinned)
    Opener(columns, opening)
    return columns
