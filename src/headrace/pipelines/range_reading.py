"""What a task of the source does: reads a range of one partition and yields its rows as Arrow batches.

Whether missing records are a failure or are passed over is decided here, because only here is it known that they are missing.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
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
from headrace.pipelines.arrow_columns import HEADERS_TYPE
from headrace.pipelines.batch_encoding import Columns, encode_headers, runs_of
from headrace.pipelines.dead_letters import letter_headers
from headrace.pipelines.key_partitions import partitions_of_keys
from headrace.pipelines.record_opening import Opener, Undecodable
from headrace.pipelines.record_spans import Aborted, Wanted, spans_in
from headrace.pipelines.source_options import SourceOptions
from headrace.pipelines.task_clients import drop_producer, leaders_for, producer_for

_log = logging.getLogger(__name__)


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
    task: TaskRange, schema: pa.Schema, options: SourceOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of a range. Raises DataLost, DecodeFailed, FetchFailed."""
    opener = Opener(schema, options.opening)
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
        wanted = Wanted(start=start, end=task.end)
        try:
            for fetched in fetch.chunks(start, task.end):
                aborted = [Aborted(each.producer_id, each.first_offset) for each in fetched.aborted]
                for spans in spans_in(fetched.records, wanted, aborted):
                    opened = opener.open(spans, task.partition)
                    if opened.undecodable:
                        send_dead_letters(opened.undecodable, task.topic_id, options)
                    if opened.rows.num_rows:
                        yield opened.rows
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
