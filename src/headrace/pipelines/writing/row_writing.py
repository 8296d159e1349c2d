"""Writes the rows of a task into topics: finds the partition of each row, sends, and waits for the acknowledgements.

Apart from `sink`, because only the processes that run tasks need numpy and Arrow: Spark asks a sink for its plan and its commits
in processes of their own, and loading both takes longer than the answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from headrace.client.idempotent_producer import IdempotentProducer
from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.pipelines.cluster.task_clients import drop_producer, producer_for
from headrace.pipelines.options.known_options import OptionError
from headrace.pipelines.records.batch_encoding import Columns, Run, encode_headers, runs_of
from headrace.pipelines.records.key_partitions import partitions_of_keys
from headrace.pipelines.writing.exactly_once import (
    BatchIdentity,
    TaskResult,
    drop_sink,
    sink_for,
)

if TYPE_CHECKING:
    from headrace.client.transaction_coordinator import OpenTransaction
    from headrace.pipelines.columns.encoding import ColumnEncoder
    from headrace.pipelines.options.sink_options import SinkOptions
    from headrace.pipelines.records.record_spans import Int64s

CHUNK_BYTES: Final = 64 * 1024 * 1024
_ABANDON_S: Final = 5.0  # a task that failed does not wait longer for its transaction to be aborted


def write_rows(batches: Iterator[pa.RecordBatch], options: SinkOptions) -> int:
    """Write rows; return how many, when they are acknowledged. Raises ProduceFailed."""
    producer = producer_for(options.bootstrap_servers, options.client_id, options.settings)
    try:
        return _sent(batches, producer, options)
    except HeadraceError:
        drop_producer(producer)
        raise


def write_rows_in_transaction(
    batches: Iterator[pa.RecordBatch],
    options: SinkOptions,
    batch: BatchIdentity,
    transactional_id: str,
) -> TaskResult:
    """Write rows in a transaction that stays open. Without rows there is none; rows of a decided batch are passed over.

    Raises HeadraceError.
    """
    first = next((each for each in batches if each.num_rows), None)
    if first is None:
        return TaskResult(record_count=0, transaction=None)
    sink = sink_for(options.bootstrap_servers, options.client_id, options.settings.give_up_after_s)
    transaction = None
    try:
        if sink.is_decided(batch):
            for _ in batches:
                pass
            return TaskResult(record_count=0, transaction=None, was_decided=True)
        transaction = sink.begin(transactional_id, options.transaction_timeout_ms)
        producer = IdempotentProducer(
            sink.leaders, options.settings, transaction=transaction, coordinator=sink.coordinator
        )
        count = _sent(chain((first,), batches), producer, options)
    except BaseException:
        # The coordinator is asked on a connection of its own: on the others an acknowledgement may be under way.
        drop_sink(sink)
        if transaction is not None:
            _abandon(transaction, options)
        raise
    return TaskResult(record_count=count, transaction=transaction)


def _abandon(transaction: OpenTransaction, options: SinkOptions) -> None:
    sink = sink_for(options.bootstrap_servers, options.client_id, _ABANDON_S)
    sink.abandon(transaction)
    drop_sink(sink)


def _sent(
    batches: Iterable[pa.RecordBatch], producer: IdempotentProducer, options: SinkOptions
) -> int:
    spread = _Spread(producer, options)
    count = 0
    for batch in batches:
        for chunk in _chunks(batch):
            producer.send(spread.runs(chunk), _now_ms())
            count += chunk.num_rows
    producer.flush(_now_ms())
    return count


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
        self._encoders = encoders_for(options)
        self._first_partition = (
            0  # rows without a key go to one partition after the other, a stretch each
        )

    def runs(self, rows: pa.RecordBatch) -> Iterator[tuple[TopicPartition, Run]]:
        for topic, places in self._topics(rows):
            of_topic = rows if places is None else rows.take(places)
            names = rows.schema.names
            columns = Columns(
                key=self._encoded(topic, "key", of_topic) if "key" in names else None,
                value=self._encoded(topic, "value", of_topic),
                headers=encode_headers(of_topic.column("headers")) if "headers" in names else None,
            )
            asked = of_topic.column("partition") if "partition" in names else None
            yield from self._runs_of_topic(topic, columns, asked)

    def _encoded(self, topic: str, name: str, rows: pa.RecordBatch) -> pa.Array:
        column = rows.column(name)
        if name in self._encoders:
            return self._encoders[name].encode(topic, column)
        return column if pt.is_binary(column.type) else column.cast(pa.binary())

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
        numbers: Int64s = (self._first_partition + np.arange(rows) // max(stretch, 1)) % count
        self._first_partition += 1
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


def encoders_for(options: SinkOptions) -> dict[str, ColumnEncoder]:
    """Encoders of the columns that are written with schemas."""
    if options.registry is None:
        return {}
    from headrace.pipelines.columns.encoding import ColumnEncoder

    return {
        each.column: ColumnEncoder(
            each, options.types[each.column], options.registry, options.registration
        )
        for each in (options.key, options.value)
        if each.has_registry and each.column in options.types
    }


def _taken(columns: Columns, places: pa.Array) -> Columns:
    return Columns(
        key=None if columns.key is None else columns.key.take(places),
        value=columns.value.take(places),
        headers=None if columns.headers is None else columns.headers.take(places),
    )
