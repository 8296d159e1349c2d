"""Sends dead letters back to the topics they came from, each once. Needs no Spark.

Which letters are copies of each other is told by their identity, also when the first of them was sent back by an earlier run: the
topic is read from its beginning for that. How far it came is committed to a group after the letters are safe; a crash in between
sends some again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.client.admin.admin import Admin
from headrace.client.admin.group_offsets import alter_offsets, committed_offsets
from headrace.client.admin.partitions import OffsetSpec, list_offsets
from headrace.client.idempotent_producer import IdempotentProducer, ProduceSettings
from headrace.client.key_partition import partition_of_key
from headrace.client.leaders import Leaders
from headrace.client.partition_fetch import FetchSettings, PartitionFetch
from headrace.ids import TopicPartition
from headrace.pipelines.dead_letters import (
    Headers,
    Identity,
    Origin,
    origin_of,
    redriven_headers,
)
from headrace.records.batch_builder import append_record
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import HEADER_BYTES, read_header, read_size
from headrace.wire.refusal import Refusal, Refused


@dataclass(slots=True)
class Redriven:
    """What became of the letters."""

    sent: dict[str, int] = field(default_factory=dict)  # by topic
    given_up: int = 0  # tried too often
    foreign: int = 0  # no letters of ours
    copies: int = 0  # of letters that were sent back, by this run or an earlier one


@dataclass(frozen=True, slots=True)
class _OneRecord:
    """`client.idempotent_producer.RecordRun` of one record."""

    payload: bytes
    record_count: int = 1

    def halves(self) -> list[_OneRecord]:
        return [self]


def redrive(
    bootstrap_servers: str,
    dead_letter_topic: str,
    *,
    max_attempts: int | None = None,
    dry_run: bool = False,
) -> Redriven:
    """Send back every letter that was not sent back yet. With `dry_run`, only count."""
    group = f"headrace-redrive-{dead_letter_topic}"
    found = Redriven()
    leaders = Leaders(bootstrap_servers, client_id="headrace-redrive")
    producer = IdempotentProducer(Leaders(bootstrap_servers), ProduceSettings())
    now_ms = time.time_ns() // 1_000_000
    try:
        with Admin(bootstrap_servers) as admin:
            ranges = _ranges(admin, dead_letter_topic, group)
            seen: set[Identity] = set()
            for partition, (first, start, _) in ranges.items():
                for record in _records(leaders, partition, first, start):
                    known = origin_of(record.headers)
                    if known is not None:
                        seen.add(known.identity)
            for partition, (_, start, end) in ranges.items():
                for record in _records(leaders, partition, start, end):
                    origin = _wanted(record.headers, found, seen, max_attempts)
                    if origin is None:
                        continue
                    topic = origin.partition.topic
                    found.sent[topic] = found.sent.get(topic, 0) + 1
                    if not dry_run:
                        _send_back(producer, record, origin, now_ms)
            if not dry_run:
                producer.flush(now_ms)
                alter_offsets(admin, group, {each: end for each, (_, _, end) in ranges.items()})
    finally:
        leaders.close()
        producer.close()
    return found


def _ranges(admin: Admin, topic: str, group: str) -> dict[TopicPartition, tuple[int, int, int]]:
    """By partition: where it begins, the first letter that was not looked at yet, where it ends."""
    partitions = [
        TopicPartition(topic, each.partition_index)
        for found in admin.metadata([topic]).topics
        for each in found.partitions
    ]
    committed = committed_offsets(admin, group)
    places = [
        list_offsets(admin, partitions, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
    ]
    ranges = {}
    for each in partitions:
        first, last = places[0][each], places[1][each]
        if isinstance(first, Refusal):
            raise Refused.of(first)
        if isinstance(last, Refusal):
            raise Refused.of(last)
        start = max(first.offset, committed[each].offset if each in committed else 0)
        ranges[each] = (first.offset, min(start, last.offset), last.offset)
    return ranges


def _records(leaders: Leaders, partition: TopicPartition, start: int, end: int) -> Iterator[Record]:
    fetch = PartitionFetch(leaders, partition, settings=FetchSettings())
    for fetched in fetch.chunks(start, end):
        for batch in _whole_batches(memoryview(fetched.records)):
            if not read_header(batch).is_control:
                yield from (each for each in read_batch(batch) if start <= each.offset < end)


def _whole_batches(records: memoryview) -> Iterator[memoryview]:
    position = 0
    while len(records) - position >= HEADER_BYTES:
        size = read_size(records, position)
        if position + size > len(records):
            return
        yield records[position : position + size]
        position += size


def _wanted(
    headers: Headers, found: Redriven, seen: set[Identity], max_attempts: int | None
) -> Origin | None:
    """Where a letter has to go; None where it stays. Its identity is added to `seen`."""
    origin = origin_of(headers)
    if origin is None:
        found.foreign += 1
        return None
    if origin.identity in seen:
        found.copies += 1
        return None
    seen.add(origin.identity)
    if max_attempts is not None and origin.attempt >= max_attempts:
        found.given_up += 1
        return None
    return origin


def _send_back(producer: IdempotentProducer, record: Record, origin: Origin, now_ms: int) -> None:
    topic = origin.partition.topic
    count = len(producer.topic(topic).leaders)
    number = origin.partition.partition
    if number >= count:
        number = partition_of_key(record.key, count) if record.key is not None else 0
    payload = bytearray()
    append_record(payload, record._replace(headers=redriven_headers(record.headers)), 0, 0)
    producer.send([(TopicPartition(topic, number), _OneRecord(bytes(payload)))], now_ms)
