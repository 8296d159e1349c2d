"""The sink: rows of a query as records of topics, at least once or exactly once (`deliveryGuarantee`).

Columns are those of Spark's Kafka connector: `value`, and where wanted `key`, `topic`, `partition`, `headers`. At least once, a task
writes its rows through an idempotent producer and returns when they are acknowledged; a batch that Spark repeats after a failure is
written again. Exactly once, a task leaves its rows in an open transaction, and the commit decides the batch (`exactly_once`). It
must know which batch is written: a streaming query's id and batch id, or the options txnAppId and txnVersion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from headrace.pipelines.options.known_options import OptionError
from headrace.pipelines.options.sink_options import SinkOptions, parse_sink_options
from headrace.pipelines.spark.frozen_imports import freeze_imports

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.client.transaction_coordinator import OpenTransaction
    from headrace.pipelines.writing.exactly_once import BatchIdentity, TransactionalSink

# Local properties of Spark's tasks. They are not documented: where they are missing, exactly once is refused.
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_RUN_ID: Final = "spark.jobGroup.id"


class Written(WriterCommitMessage):
    """What a task has written. `batch` is None where nothing has to be committed."""

    def __init__(
        self,
        record_count: int,
        *,
        batch: BatchIdentity | None = None,
        transaction: OpenTransaction | None = None,
        attempt: int = 0,
    ) -> None:
        self.record_count = record_count
        self.batch = batch
        self.transaction = transaction
        self.attempt = attempt


class SinkWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = parse_sink_options(options, schema)
        if self._options.exactly_once and self._options.txn_version is None:
            raise OptionError(
                "deliveryGuarantee=exactly-once in a batch write needs the options txnAppId and txnVersion, which name the batch:"
                " in foreachBatch, an id of the query and the batch id"
            )
        self._run_id = uuid4().hex
        _prepare_schemas(self._options)

    # Spark gives Arrow batches to a writer of this class, and declares rows.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        if not self._options.exactly_once:
            return _written(iterator, self._options)
        return _written_in_transaction(iterator, self._options, self._named_batch())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _commit(messages, self._options)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _abort(messages, self._options)

    def _named_batch(self) -> BatchIdentity:
        from headrace.pipelines.writing.exactly_once import BatchIdentity

        assert self._options.txn_version is not None, "checked when the writer was made"
        # Within a streaming query's run, batches share their transactional ids: brokers keep each for a week.
        is_streaming = _local_property(_QUERY_ID) is not None
        run_id = _local_property(_RUN_ID) if is_streaming else None
        return BatchIdentity(
            sink_id=self._options.txn_app_id,
            batch_id=self._options.txn_version,
            run_id=run_id or self._run_id,
            older_is_done=True,
        )


class StreamSinkWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a streaming query."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = parse_sink_options(options, schema)
        if self._options.txn_app_id:
            raise OptionError(
                "txnAppId and txnVersion are for batch writes: a streaming query names its batches itself"
            )
        _prepare_schemas(self._options)

    # Spark gives Arrow batches to a writer of this class, and declares rows.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        if not self._options.exactly_once:
            return _written(iterator, self._options)
        return _written_in_transaction(iterator, self._options, _streaming_batch())

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _commit(messages, self._options)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _abort(messages, self._options)


def _written(batches: Iterator[pa.RecordBatch], options: SinkOptions) -> Written:
    from headrace.pipelines.writing.row_writing import write_rows

    written = Written(write_rows(batches, options))
    freeze_imports()
    return written


def _written_in_transaction(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, batch: BatchIdentity
) -> Written:
    from pyspark import TaskContext

    from headrace.pipelines.writing.row_writing import write_rows_in_transaction

    task = TaskContext.get()
    assert task is not None, "in a task"
    attempt = task.attemptNumber()
    result = write_rows_in_transaction(
        batches, options, batch, batch.transactional_id(task.partitionId(), attempt)
    )
    freeze_imports()
    is_empty = result.transaction is None and not result.was_decided
    return Written(
        result.record_count,
        batch=None if is_empty else batch,
        transaction=result.transaction,
        attempt=attempt,
    )


def _streaming_batch() -> BatchIdentity:
    from headrace.pipelines.writing.exactly_once import BatchIdentity

    query_id, batch_id = _local_property(_QUERY_ID), _local_property(_BATCH_ID)
    run_id = _local_property(_RUN_ID)
    if query_id is None or batch_id is None or run_id is None:
        raise OptionError(
            "deliveryGuarantee=exactly-once needs to know the batch, and this Spark does not tell a task"
            f" {_QUERY_ID}, {_BATCH_ID} and {_RUN_ID}: use at-least-once"
        )
    return BatchIdentity(
        sink_id=query_id, batch_id=int(batch_id), run_id=run_id, older_is_done=False
    )


def _local_property(name: str) -> str | None:
    from pyspark import TaskContext

    task = TaskContext.get()
    return None if task is None else task.getLocalProperty(name)


def _commit(messages: Sequence[WriterCommitMessage | None], options: SinkOptions) -> None:
    written = _with_batches(messages)
    if not written:
        return
    batch = written[0].batch
    assert batch is not None
    sink = _sink(options)
    try:
        sink.commit(
            batch,
            _transactions(written),
            fail_on_data_loss=options.fail_on_data_loss,
            has_failed_attempts=any(each.attempt for each in written),
        )
    except BaseException:
        _drop(sink)
        raise
    freeze_imports()


def _abort(messages: Sequence[WriterCommitMessage | None], options: SinkOptions) -> None:
    written = [each for each in _with_batches(messages) if each.transaction is not None]
    if not written:
        return
    batch = written[0].batch
    assert batch is not None
    sink = _sink(options)
    try:
        sink.abort(batch, _transactions(written))
    except BaseException:
        _drop(sink)
        raise


def _with_batches(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [each for each in messages if isinstance(each, Written) and each.batch is not None]


def _transactions(written: Sequence[Written]) -> list[OpenTransaction]:
    return [each.transaction for each in written if each.transaction is not None]


def _sink(options: SinkOptions) -> TransactionalSink:
    from headrace.pipelines.writing.exactly_once import sink_for

    return sink_for(options.bootstrap_servers, options.client_id, options.settings.give_up_after_s)


def _drop(sink: TransactionalSink) -> None:
    from headrace.pipelines.writing.exactly_once import drop_sink

    drop_sink(sink)


def _prepare_schemas(options: SinkOptions) -> None:
    """Register or look up the schemas where the topic is known: what the registry refuses is told before anything is written."""
    if options.registry is None or not options.topic:
        return
    from headrace.pipelines.writing.row_writing import encoders_for

    for encoder in encoders_for(options).values():
        encoder.prepare(options.topic)
