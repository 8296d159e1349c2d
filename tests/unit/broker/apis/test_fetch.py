"""Fetch: error codes for clients of any age, and waiting."""

import asyncio
from collections.abc import Coroutine
from itertools import count
from typing import Any

import pytest

from headrace.broker.apis import fetch
from headrace.broker.fetching.fetch_sessions import FetchSessions
from headrace.broker.replicas.replica_throttle import ReplicaThrottle
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.telemetry.traffic import Traffic
from headrace.records.batch_builder import build_batch
from headrace.records.batch_reader import Record
from headrace.replication.partition import Partition
from headrace.replication.throttle import UNLIMITED
from headrace.wire.api_keys import ApiKey
from headrace.wire.codec import Piece, decode
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tests.unit.broker.apis.one_broker import LOG_DIR, NOW_MS, OneBroker, connection_to, on_broker


def ask_fetch(
    broker: OneBroker, request: FetchRequest, version: int
) -> list[Piece] | Coroutine[Any, Any, list[Piece]]:
    return fetch.handle(
        request,
        RequestContext(ApiKey.FETCH, version, "client", connection_to()),
        partitions=broker.partitions,
        cluster=broker.cluster,
        sessions=FetchSessions(0, count(1).__next__),
        live_settings=broker.live_settings,
        leader_throttle=ReplicaThrottle(
            broker.cluster, lambda: NOW_MS, lambda: UNLIMITED, replicas_key=""
        ),
        traffic=Traffic(),
        clock=lambda: NOW_MS,
        fetch_max_bytes=1000,
    )


@pytest.mark.parametrize(
    ("version", "error"),
    [(5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)],
)
def test_a_failed_disk_is_told_in_a_code_that_the_client_knows(
    version: int, error: ErrorCode
) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("orders")
        partition = broker.partitions.get("orders", 0)
        assert partition is not None
        partition.log.abandon()
        ask = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            max_bytes=1000, topics=[FetchTopic(topic="orders", partitions=[ask])]
        )
        answer = ask_fetch(broker, request, version)
        body = b"".join(answer if isinstance(answer, list) else await answer)
        (topic,) = decode(FetchResponse, version, body).responses
        assert [answer.error_code for answer in topic.partitions] == [error]

    story()


@on_broker()
async def test_a_bad_sector_under_the_records_costs_their_directory(broker: OneBroker) -> None:
    await broker.topic("orders")
    partition = broker.partitions.get("orders", 0)
    assert partition is not None
    batch = memoryview(build_batch([Record(0, NOW_MS, None, bytes(100_000))]))
    partition.append([batch], acks=1, now_ms=NOW_MS)
    # The header can be read, so the batch is found; its end cannot.
    broker.disk.bad_bytes.add((f"{LOG_DIR}/orders-0/00000000000000000000.log", 90_000))
    ask = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(max_bytes=1000, topics=[FetchTopic(topic="orders", partitions=[ask])])
    answer = ask_fetch(broker, request, 12)
    assert isinstance(answer, list)
    (topic,) = decode(FetchResponse, 12, b"".join(answer)).responses
    assert [each.error_code for each in topic.partitions] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert list(broker.log_dirs.offline) == [LOG_DIR]
    assert broker.partitions.get("orders", 0) is None


def test_what_is_written_before_the_wait_has_begun_ends_it() -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("orders")
        ask = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            max_bytes=1000,
            min_bytes=1,
            max_wait_ms=60_000,
            topics=[FetchTopic(topic="orders", partitions=[ask])],
        )
        waiting = ask_fetch(broker, request, 12)
        assert not isinstance(waiting, list)
        partition = broker.partitions.get("orders", 0)
        assert partition is not None
        batch = memoryview(build_batch([Record(0, NOW_MS, None, b"value")]))
        partition.append([batch], acks=1, now_ms=NOW_MS)
        body = b"".join(await asyncio.wait_for(waiting, 5))
        (topic,) = decode(FetchResponse, 12, body).responses
        assert len(topic.partitions[0].records or b"") == len(batch)

    story()


def test_only_what_has_grown_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("orders", partitions=3)
        asks = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)
            for index in range(3)
        ]
        request = FetchRequest(
            max_bytes=1000,
            min_bytes=1,
            max_wait_ms=60_000,
            topics=[FetchTopic(topic="orders", partitions=asks)],
        )
        waiting = ask_fetch(broker, request, 12)
        assert not isinstance(waiting, list)
        task = asyncio.ensure_future(waiting)
        await asyncio.sleep(0)
        looked_at: list[int] = []
        read = Partition.read

        def noted(partition: Partition, *arguments: Any, **named: Any) -> object:
            looked_at.append(partition.topic_partition.partition)
            return read(partition, *arguments, **named)

        monkeypatch.setattr(Partition, "read", noted)
        partition = broker.partitions.get("orders", 1)
        assert partition is not None
        batch = memoryview(build_batch([Record(0, NOW_MS, None, b"value")]))
        partition.append([batch], acks=1, now_ms=NOW_MS)
        (topic,) = decode(FetchResponse, 12, b"".join(await asyncio.wait_for(task, 5))).responses
        assert looked_at == [1]
        assert [len(answer.records or b"") for answer in topic.partitions] == [0, len(batch), 0]
        assert [answer.high_watermark for answer in topic.partitions] == [0, 1, 0]
        assert not len(partition.high_watermark_waiters), "nobody waits any more"

    story()
