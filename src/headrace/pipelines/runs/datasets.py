"""Definitions as DataFrames and as started queries: the only module that turns a dataset into Spark's own words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from headrace.pipelines.databases.tables import DatabaseTable
from headrace.pipelines.definitions.pipeline_file import (
    SPARK,
    has_schemas,
    inputs_of,
    letter_writers,
    settle_ms,
    sink_options,
    slips_told,
    source_options,
    sources_of,
    topic_options,
    without_dead_letters,
)
from headrace.pipelines.options.sink_options import EXACTLY_ONCE
from headrace.pipelines.pipeline import (
    SQL,
    Database,
    DefinitionError,
    Definitions,
    Files,
    Flow,
    Jdbc,
    Source,
    SparkFormat,
    Table,
    Topic,
    View,
)
from headrace.pipelines.runs.query_start import start_patiently
from headrace.pipelines.spark_session import make_active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

LETTER_WRITERS = "dead_letter_writers.json"  # in the pipeline's directory: by source, the flow that writes its letters
QUERY_ID = "sql.streaming.queryId"  # a local property of the thread that runs a query's batches
RECORD_COLUMNS = frozenset({"key", "value", "topic", "partition", "headers"})


def _file_of(item: View | Flow) -> str:
    """Where an item's function stands; SQL has no line of its own."""
    code = getattr(item.query, "__code__", None)
    is_sql = any(name.startswith(SQL) for name in item.inputs)
    return "" if code is None or is_sql else str(code.co_filename)


class Datasets:
    """The DataFrames of one pipeline, built when first asked for, and the queries that write them."""

    def __init__(
        self,
        spark: SparkSession,
        definitions: Definitions,
        *,
        bootstrap_servers: str,
        directory: Path,
        schema_registry: str = "",
    ) -> None:
        self._spark = spark
        self._definitions = definitions
        self._bootstrap_servers = bootstrap_servers
        self._schema_registry = schema_registry
        self._directory = directory
        self._frames: dict[tuple[str, frozenset[str]], DataFrame] = {}
        self._letter_writers: dict[str, str] | None = None

    def frame_of(self, item: View | Flow, quiet: frozenset[str] = frozenset()) -> DataFrame:
        """What an item's function makes of its inputs. Inputs are temporary views as well, for SQL.

        Sources in `quiet` write no dead letters.
        """
        inputs = {name: self._named(name, quiet) for name in inputs_of(item, self._definitions)}
        arguments = inspect_arguments(item, inputs, self._spark)
        with slips_told(_file_of(item), otherwise=item.name):
            frame: DataFrame = item.query(**arguments)
        if frame is None or not hasattr(frame, "createOrReplaceTempView"):
            raise DefinitionError(f"{item.name} returned {frame!r}, not a DataFrame")
        return frame

    def _named(self, name: str, quiet: frozenset[str]) -> DataFrame:
        source, known = self._definitions.sources.get(name), (name, quiet)
        if known not in self._frames:
            self._frames[known] = (
                self._read(source, is_quiet=name in quiet)
                if source
                else self.frame_of(self._definitions.views[name], quiet)
            )
        # Also where it was made for an earlier flow: in between, the name may have stood for the same with other `quiet`.
        self._frames[known].createOrReplaceTempView(name)
        return self._frames[known]

    def register_views(self) -> None:
        """Make views that take no arguments known by name: functions of Declarative Pipelines ask Spark for them."""
        for view in self._definitions.views.values():
            if not view.inputs:
                self._named(view.name, frozenset())

    # Reading.

    def _read(self, source: Source, *, is_quiet: bool) -> DataFrame:
        reader: DataFrameReader | DataStreamReader = (
            self._spark.readStream if source.streaming else self._spark.read
        )
        dataset = source.dataset
        match dataset:
            case Topic():
                options = source_options(dataset) | self._topic_options(dataset)
                if is_quiet:
                    options = without_dead_letters(options)
                frame = reader.format("headrace").options(subscribe=dataset.name, **options).load()
                return newest_by_key(frame) if source.as_table else frame
            case Files():
                if dataset.schema is not None:
                    reader = reader.schema(dataset.schema)
                return reader.format(dataset.format).options(**dataset.options).load(dataset.path)
            case Jdbc():
                if source.streaming:
                    raise DefinitionError(
                        f"{source.name}: JDBC tables are read with streaming=False"
                    )
                options = {"url": dataset.url, "dbtable": dataset.table, **dataset.options}
                return reader.format("jdbc").options(**options).load()
            case Database():
                return self._read_database(source, dataset)
            case Table():
                self.ensure_table(dataset.name, None)
                return reader.table(dataset.name)
            case SparkFormat():
                return reader.format(dataset.format).options(**dataset.options).load()
            case _:
                assert_never(dataset)

    def _topic_options(self, dataset: Topic) -> dict[str, str]:
        return topic_options(dataset, self._bootstrap_servers, self._schema_registry)

    def _read_database(self, source: Source, dataset: Database) -> DataFrame:
        from headrace.pipelines.databases.table_changes import TableChangesSource

        if not source.streaming:
            raise DefinitionError(f"{source.name}: a database is read as a stream of its changes")
        assert dataset.schema is not None
        assert dataset.version is not None
        self._spark.dataSource.register(TableChangesSource)
        options = {
            "url": dataset.url,
            "table": dataset.table,
            "version": dataset.version,
            "settleMs": str(settle_ms(dataset)),
        }
        reader = self._spark.readStream.format("headrace-table").schema(dataset.schema)
        return reader.options(**options).load()

    # Writing.

    def start(self, flow: Flow, *, available_now: bool) -> StreamingQuery:
        """Start the query of a flow, and return when its sources are there. Its checkpoint is found again by the flow's name."""
        frame = self.frame_of(flow, self._quiet_sources(flow))
        if not frame.isStreaming:
            raise DefinitionError(f"{flow.name} reads no stream: nothing would drive it")
        writer = self._writer(flow, frame).queryName(flow.name).outputMode(flow.mode)
        writer = writer.option(
            "checkpointLocation", str(self._directory / "checkpoints" / flow.name)
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif flow.trigger is not None:
            writer = writer.trigger(processingTime=flow.trigger)
        make_active(self._spark)
        return start_patiently(writer.start)

    def _quiet_sources(self, flow: Flow) -> frozenset[str]:
        """The sources whose dead letters another flow writes."""
        if self._letter_writers is None:
            file = self._directory / LETTER_WRITERS
            earlier = json.loads(file.read_text()) if file.exists() else {}
            self._letter_writers = letter_writers(self._definitions, earlier)
            if self._letter_writers != earlier:
                self._directory.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(self._letter_writers, indent=1))
        return frozenset(
            source
            for source in sources_of(flow, self._definitions)
            if self._letter_writers.get(source, flow.name) != flow.name
        )

    def _writer(self, flow: Flow, frame: DataFrame) -> DataStreamWriter:
        into = flow.into
        match into:
            case Topic():
                options = {
                    "topic": into.name,
                    **sink_options(flow, self._definitions),
                    **self._topic_options(into),
                }
                records = as_records(frame, into)
                if flow.mode == "update":
                    # Spark gives a sink written in Python no updates; batch by batch they are rows like any other.
                    return records.writeStream.foreachBatch(_append_to_topic(options))
                return records.writeStream.format("headrace").options(**options)
            case Files():
                writer = frame.writeStream.format(into.format).option("path", into.path)
                if into.partition_by:
                    writer = writer.partitionBy(*into.partition_by)
                return writer.options(**into.options)
            case Jdbc():
                options = {"url": into.url, "dbtable": into.table, **into.options}
                return frame.writeStream.foreachBatch(_append("jdbc", options))
            case Database():
                return frame.writeStream.foreachBatch(_upsert(into))
            case Table():
                self.ensure_table(into.name, frame)
                return frame.writeStream.format("parquet").option(
                    "path", self._table_path(into.name)
                )
            case SparkFormat():
                return frame.writeStream.format(into.format).options(**into.options)
            case _:
                assert_never(into)

    def compute(self, flow: Flow) -> None:
        """A flow that is computed once: what it finds replaces what was there."""
        if not isinstance(flow.into, Table):
            raise DefinitionError(f"{flow.name}: only tables are computed as a whole")
        self.refresh_tables()
        frame = self.frame_of(flow)
        frame.write.mode("overwrite").parquet(self._table_path(flow.into.name))
        self.ensure_table(flow.into.name, frame)

    def refresh_tables(self) -> None:
        """Let this session see what queries have written to the pipeline's tables: it remembers which files there were."""
        for flow in self._definitions.flows.values():
            if isinstance(flow.into, Table) and self._spark.catalog.tableExists(flow.into.name):
                self._spark.catalog.refreshTable(flow.into.name)

    def ensure_table(self, name: str, frame: DataFrame | None) -> None:
        """Make a table of the pipeline known to this session."""
        path = self._table_path(name)
        if self._spark.catalog.tableExists(name):
            return
        if frame is not None:
            Path(path).mkdir(parents=True, exist_ok=True)
            self._spark.catalog.createTable(name, path=path, source="parquet", schema=frame.schema)
        elif Path(path).exists():
            self._spark.catalog.createTable(name, path=path, source="parquet")
        else:
            raise DefinitionError(f"there is no table {name} yet: no flow has written it")

    def _table_path(self, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_.]+", name):
            raise DefinitionError(f"'{name}' is no name for a table")
        return str(self._directory / "tables" / name)


def inspect_arguments(
    item: View | Flow, inputs: dict[str, Any], spark: SparkSession
) -> dict[str, Any]:
    """The arguments of an item's function: its inputs by name, and the session where it asks for it."""
    import inspect

    wanted = inspect.signature(item.query).parameters
    return {name: spark if name == SPARK else inputs[name] for name in wanted}


def newest_by_key(frame: DataFrame) -> DataFrame:
    """A topic as a table: the newest value of each key; a key whose newest value is null is gone."""
    from pyspark.sql import functions as fn

    others = [name for name in frame.columns if name != "key"]
    place = fn.struct("partition", "offset")
    newest = frame.groupBy("key").agg(
        *[fn.max_by(fn.struct(name), place).alias(name) for name in others]
    )
    columns = [fn.col(f"{name}.{name}").alias(name) for name in others]
    return newest.select("key", *columns).where("value is not null")


def as_records(frame: DataFrame, into: Topic) -> DataFrame:
    """Rows as records: as they are where they have a column `value`, else as one value, with the key that the topic names.

    The value is a struct where the topic's values have schemas, else JSON.
    """
    from pyspark.sql import functions as fn

    if "value" in frame.columns and set(frame.columns) <= RECORD_COLUMNS:
        return frame
    row = fn.struct(*[fn.col(f"`{name}`") for name in frame.columns])
    value = (row if has_schemas(into, "value") else fn.to_json(row)).alias("value")
    if into.key is None:
        return frame.select(value)
    key = fn.col(into.key)
    if not has_schemas(into, "key"):
        key = key.cast("string")
    return frame.select(key.alias("key"), value)


def _append(its_format: str, options: dict[str, str]) -> Any:
    def append(frame: DataFrame, _batch_id: int) -> None:
        frame.write.format(its_format).mode("append").options(**options).save()

    return append


def _append_to_topic(options: dict[str, str]) -> Any:
    """Appends batches that are named by the query and the batch, so that a repeated one is written once."""
    named = any(
        name.lower() == "deliveryguarantee" and value.strip().lower() == EXACTLY_ONCE
        for name, value in options.items()
    )

    def append(frame: DataFrame, batch_id: int) -> None:
        batch = dict(options)
        if named:
            query_id = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
            if query_id is None:
                raise DefinitionError(
                    f"this Spark does not tell the id of the query ({QUERY_ID}), which names the batches: use"
                    " deliveryGuarantee=at-least-once"
                )
            batch |= {"txnAppId": query_id, "txnVersion": str(batch_id)}
        frame.write.format("headrace").mode("append").options(**batch).save()

    return append


def _upsert(into: Database) -> Any:
    table = DatabaseTable(into.url, into.table)

    def upsert(frame: DataFrame, _batch_id: int) -> None:
        table.upsert(frame.columns, into.keys, frame.toLocalIterator())

    return upsert
