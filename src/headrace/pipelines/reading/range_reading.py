"""Reads ranges of partitions as rows, in Arrow batches: one range in a task of Spark, all of a small batch beside the driver.

Whether missing records are a failure or are passed over is decided here, because only here is it known that they are missing.
"""

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import pyarrow as pa

from headrace.client.idempotent_producer import ProduceSettings
from headrace.client.partition_fetch import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FetchFailed,
    FetchSettings,
    OffsetGone,
    PartitionFetch,
    TopicGone,
)
from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.pipelines.cluster.task_clients import drop_producer, leaders_for, producer_for
from headrace.pipelines.dead_letters import letter_headers
from headrace.pipelines.options.source_options import SourceOptions
from headrace.pipelines.reading.record_opening import (
    DecodeFailed,
    Opened,
    Opener,
    SourceColumns,
    Undecodable,
)
from headrace.pipelines.records.arrow_columns import HEADERS_TYPE
from headrace.pipelines.records.batch_encoding import Columns, encode_headers, runs_of
from headrace.pipelines.records.key_partitions import partitions_of_keys
from headrace.pipelines.records.record_spans import Aborted, RecordRange, spans_in

_log = logging.getLogger(__name__)

_SOON_MS: Final = 10_000  # longer than it takes to be certain that a topic was deleted
_REGISTRY_SOON_S: Final = 2.0  # the driver waits for the schema registry no longer than this


class DataLost(HeadraceError):
    """Records that should be read are not there any more, and failOnDataLoss=true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRange:
    """What one task reads."""

    partition: TopicPartition
    start: int
    end: int
    topic_id: str | None


def read_range(
    task: TaskRange, columns: SourceColumns, options: SourceOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of a range. Raises DataLost, DecodeFailed, FetchFailed."""
    for opened in _open_range(task, columns, options):
        if opened.undecodable:
            send_dead_letters(opened.undecodable, task.topic_id, options)
        if opened.rows.num_rows:
            yield opened.rows


def read_now(
    tasks: Iterable[TaskRange], columns: SourceColumns, options: SourceOptions, *, most_bytes: int
) -> list[pa.RecordBatch] | None:
    """All rows of some ranges; None where they are larger than that, or where brokers or the schema registry do not answer soon.

    Raises DataLost, DecodeFailed: what no second attempt would change. Any other failure is left to a task, because Spark repeats
    a task that fails, and does not repeat the planning of a query.
    """
    options = _impatient(options)
    rows: list[pa.RecordBatch] = []
    undecodable: list[tuple[tuple[Undecodable, ...], str | None]] = []
    size = 0
    try:
        for task in tasks:
            for opened in _open_range(task, columns, options):
                size += opened.rows.nbytes
                if size > most_bytes:
                    return None
                rows.append(opened.rows)
                undecodable.append((opened.undecodable, task.topic_id))
        # Not before it is certain that nobody else will read these records and send them, too.
        for letters, topic_id in undecodable:
            if letters:
                send_dead_letters(letters, topic_id, options)
    except (DataLost, DecodeFailed):
        raise
    except HeadraceError as error:
        _log.warning(
            "a small batch could not be read by the driver and is left to a task: %s", error
        )
        return None
    return [each for each in rows if each.num_rows]


def _impatient(options: SourceOptions) -> SourceOptions:
    """The options with short time-outs, for reading within the driver, where a wait holds up the whole query."""
    opening = options.opening
    if opening.registry is not None:
        registry = replace(
            opening.registry,
            request_timeout_s=min(opening.registry.request_timeout_s, _REGISTRY_SOON_S),
            total_timeout_s=min(opening.registry.total_timeout_s, _REGISTRY_SOON_S),
        )
        opening = replace(opening, registry=registry)
    return replace(options, opening=opening, poll_timeout_ms=min(options.poll_timeout_ms, _SOON_MS))


def _open_range(
    task: TaskRange, columns: SourceColumns, options: SourceOptions
) -> Iterator[Opened]:
    opener = Opener(columns, options.opening)
    leaders = leaders_for(options.bootstrap_servers, options.client_id)
    settings = FetchSettings(
        isolation_level=READ_COMMITTED if options.read_committed else READ_UNCOMMITTED,
        partition_max_bytes=options.partition_max_bytes,
        max_bytes=options.fetch_max_bytes,
        max_wait_ms=options.fetch_max_wait_ms,
        give_up_after_s=options.poll_timeout_ms / 1000,
        rack_id=options.rack_id,
    )
    topic_id = None if task.topic_id is None else UUID(task.topic_id)
    fetch = PartitionFetch(leaders, task.partition, settings=settings, topic_id=topic_id)
    start: int | None = task.start
    while start is not None and start < task.end:
        wanted = RecordRange(start=start, end=task.end)
        try:
            for fetched in fetch.chunks(start, task.end):
                aborted = [Aborted(each.producer_id, each.first_offset) for each in fetched.aborted]
                for spans in spans_in(fetched.records, wanted, aborted):
                    yield opener.open(spans, task.partition)
            start = None
        except (OffsetGone, TopicGone) as gone:
            start = _after_loss(gone, options)


def _after_loss(gone: FetchFailed, options: SourceOptions) -> int | None:
    """Where to go on after records were found missing; None where there is nothing more."""
    if options.fail_on_data_loss:
        raise DataLost(
            f"{gone}. Records may have been lost, because retention removed them or the topic was deleted"
            " before they were read (failOnDataLoss=false goes on with what is there)"
        ) from gone
    _log.warning("%s; going on without it, because failOnDataLoss=false", gone)
    if isinstance(gone, OffsetGone) and gone.log_start_offset > gone.offset:
        return gone.log_start_offset
    return None


def send_dead_letters(
    undecodable: tuple[Undecodable, ...], topic_id: str | None, options: SourceOptions
) -> None:
    """Put records that cannot be decoded where they can be looked at. Returns when they are safe."""
    topic = options.opening.dead_letter_topic
    producer = producer_for(options.bootstrap_servers, options.client_id, ProduceSettings())
    headers = [
        [
            {"key": name, "value": value}
            for name, value in letter_headers(
                each.headers,
                partition=each.partition,
                offset=each.offset,
                error=each.error,
                topic_id=topic_id,
            )
        ]
        for each in undecodable
    ]
    now_ms = time.time_ns() // 1_000_000
    try:
        count = len(producer.topic(topic).leaders)
        for each, its_headers in zip(undecodable, headers, strict=True):
            columns = Columns(
                key=pa.array([each.key], pa.binary()),
                value=pa.array([each.value], pa.binary()),
                headers=encode_headers(pa.array([its_headers], HEADERS_TYPE)),
            )
            assert columns.key is not None
            by_key = each.key is not None
            number = (
                int(partitions_of_keys(columns.key, count)[0]) if by_key else each.offset % count
            )
            place = TopicPartition(topic, number)
            producer.send([(place, run) for run in runs_of(columns)], now_ms)
        producer.flush(now_ms)
    except HeadraceError:
        drop_producer(producer)
        raise
