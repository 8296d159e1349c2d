"""The sink: rows of a query as records of topics, at least once, through an idempotent producer.

Columns are those of Spark's Kafka connector: `value`, and where wanted `key`, `topic`, `partition`, `headers`. A task writes its
rows and returns when they are acknowledged, so a batch that Spark has committed is in the log. A batch that is repeated after a
failure is written again: exactly-once needs transactions, and `deliveryGuarantee` is the option that will ask for them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from headrace.client.idempotent_producer import ACKS_ALL, IdempotentProducer, ProduceSettings
from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.pipelines.batch_encoding import BATCH_BYTES, Columns, Run, encode_headers, runs_of
from headrace.pipelines.key_partitions import partitions_of_keys
from headrace.pipelines.options import SINK_OPTIONS, OptionError, Options, checked
from headrace.pipelines.source_options import require_plaintext
from headrace.pipelines.task_clients import drop_producer, producer_for
from headrace.records.compression import Codec

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headrace.pipelines.record_spans import Int64s

CHUNK_BYTES: Final = 64 * 1024 * 1024
_COLUMNS: Final = {
    "value": ("string", "binary"),
    "key": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
_ACKS: Final = {
    "all": ACKS_ALL,
    "-1": ACKS_ALL,
    "1": 1,
    "0": 1,
}  # an answer is waited for in any case
_CODECS: Final = {"none": Codec.NONE} | {
    each.name.lower(): each for each in Codec if each is not Codec.NONE
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Everything a sink was told."""

    bootstrap_servers: str
    client_id: str
    topic: str
    batch_bytes: int
    settings: ProduceSettings


class Written(WriterCommitMessage):
    """What a task has written."""

    def __init__(self, record_count: int) -> None:
        self.record_count = record_count


def parse_sink_options(given: dict[str, str], schema: StructType) -> SinkOptions:
    """Raises OptionError for options or columns that make no sense."""
    options = checked(given, SINK_OPTIONS, where="a sink")
    require_plaintext(options)
    options.one_of("deliveryGuarantee", ("at-least-once",), "at-least-once")
    topic = options.text("topic").strip()
    for column in schema.fields:
        kind = column.dataType.simpleString()
        if column.name not in _COLUMNS:
            known = ", ".join(_COLUMNS)
            raise OptionError(f"there is no column '{column.name}' in a topic: there are {known}")
        if kind not in _COLUMNS[column.name]:
            wanted = " or ".join(_COLUMNS[column.name])
            raise OptionError(f"the column {column.name} must be {wanted}, not {kind}")
    names = schema.fieldNames()
    if "value" not in names:
        raise OptionError("there is no column 'value': what should be written?")
    if not topic and "topic" not in names:
        raise OptionError("neither the option topic nor a column 'topic' says where to write")
    return SinkOptions(
        bootstrap_servers=options.kafka("bootstrap.servers"),
        client_id=options.kafka("client.id", "headrace-spark"),
        topic=topic,
        batch_bytes=max(options.kafka_number("batch.size", BATCH_BYTES), 1),
        settings=_settings(options),
    )


def _settings(options: Options) -> ProduceSettings:
    acks = _ACKS[options.one_of("kafka.acks", _ACKS, "all")]
    idempotent = options.flag("kafka.enable.idempotence", otherwise=acks == ACKS_ALL)
    if idempotent and acks != ACKS_ALL:
        raise OptionError("kafka.enable.idempotence=true needs kafka.acks=all")
    name = options.one_of("kafka.compression.type", _CODECS, "none")
    level = f"kafka.compression.{name}.level"
    return ProduceSettings(
        codec=_CODECS[name],
        compression_level=options.number(level, at_least=-(2**17)) if options.has(level) else None,
        acks=acks,
        idempotent=idempotent,
        request_timeout_ms=options.kafka_number("request.timeout.ms", 30_000),
        give_up_after_s=options.kafka_number("delivery.timeout.ms", 120_000) / 1000,
    )


class SinkWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = parse_sink_options(options, schema)

    # Spark gives Arrow batches to a writer of this class, and declares rows.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        return write_rows(iterator, self._options)


class StreamSinkWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a streaming query."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = parse_sink_options(options, schema)

    # Spark gives Arrow batches to a writer of this class, and declares rows.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        return write_rows(iterator, self._options)


def write_rows(batches: Iterator[pa.RecordBatch], options: SinkOptions) -> Written:
    """Write rows; return when they are acknowledged. Raises ProduceFailed."""
    producer = producer_for(options.bootstrap_servers, options.client_id, options.settings)
    spread = _Spread(producer, options)
    count = 0
    try:
        for batch in batches:
            for chunk in _chunks(batch):
                producer.send(spread.runs(chunk), _now_ms())
                count += chunk.num_rows
        producer.flush(_now_ms())
    except HeadraceError:
        drop_producer(producer)
        raise
    return Written(count)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _chunks(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    count = max(1, -(-batch.nbytes // CHUNK_BYTES))
    rows = max(1, -(-batch.num_rows // count))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


class _Spread:
    """Finds the partition of each row."""

    def __init__(self, producer: IdempotentProducer, options: SinkOptions) -> None:
        self._producer = producer
        self._options = options
        self._turn = 0  # rows without a key go to one partition after the other, a stretch each

    def runs(self, rows: pa.RecordBatch) -> Iterator[tuple[TopicPartition, Run]]:
        names = rows.schema.names
        columns = Columns(
            key=_as_bytes(rows.column("key")) if "key" in names else None,
            value=_as_bytes(rows.column("value")),
            headers=encode_headers(rows.column("headers")) if "headers" in names else None,
        )
        wanted = rows.column("partition") if "partition" in names else None
        for topic, places in self._topics(rows):
            of_topic = columns if places is None else _taken(columns, places)
            asked = wanted if wanted is None or places is None else wanted.take(places)
            yield from self._runs_of_topic(topic, of_topic, asked)

    def _topics(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.Array | None]]:
        """Each topic, and which rows go there (None: all)."""
        if self._options.topic:
            yield self._options.topic, None
            return
        topics = np.array(rows.column("topic").to_pylist(), dtype=object)
        if any(topic is None for topic in topics):
            raise OptionError(
                "a row has no topic: its column 'topic' is null and there is no option topic"
            )
        for topic in sorted(set(topics)):
            yield topic, pa.array(np.flatnonzero(topics == topic))

    def _runs_of_topic(
        self, topic: str, columns: Columns, asked: pa.Array | None
    ) -> Iterator[tuple[TopicPartition, Run]]:
        count = len(self._producer.topic(topic).leaders)
        numbers = self._numbers(columns, asked, count)
        order = np.argsort(numbers, kind="stable")
        for number in np.unique(numbers):
            first, last = np.searchsorted(numbers, [number, number + 1], sorter=order)
            whole = last - first == len(numbers)
            part = columns if whole else _taken(columns, pa.array(order[first:last]))
            for run in runs_of(part, batch_bytes=self._options.batch_bytes):
                yield TopicPartition(topic, int(number)), run

    def _numbers(self, columns: Columns, asked: pa.Array | None, count: int) -> Int64s:
        rows = len(columns)
        stretch = -(-rows // count)
        numbers: Int64s = (self._turn + np.arange(rows) // max(stretch, 1)) % count
        self._turn += 1
        if columns.key is not None:
            has_key = columns.key.is_valid().to_numpy(zero_copy_only=False)
            if has_key.any():
                numbers = np.where(has_key, partitions_of_keys(columns.key, count), numbers)
        if asked is not None:
            chosen = asked.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            given = asked.is_valid().to_numpy(zero_copy_only=False)
            if (given & ((chosen < 0) | (chosen >= count))).any():
                raise OptionError(
                    f"a row asks for a partition that is not there: there are {count}"
                )
            numbers = np.where(given, chosen, numbers)
        return numbers


def _as_bytes(column: pa.Array) -> pa.Array:
    return column if pt.is_binary(column.type) else column.cast(pa.binary())


def _taken(columns: Columns, places: pa.Array) -> Columns:
    return Columns(
        key=None if columns.key is None else columns.key.take(places),
        value=columns.value.take(places),
        headers=None if columns.headers is None else columns.headers.take(places),
    )
