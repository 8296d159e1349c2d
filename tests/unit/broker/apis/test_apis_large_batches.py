"""Batches that take long to open, and batches with garbage inside: what Produce and ListOffsets answer."""

import asyncio

import pytest

from headrace.broker.apis import list_offsets, produce
from headrace.broker.net.connection import Connection
from headrace.log.record_check import AT_ONCE_RECORDS
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import read_header, renew_crc
from headrace.records.compression import Codec
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.unit.broker.apis.one_broker import NOW_MS, OneBroker, connection_to, on_broker

MANY = 50 * AT_ONCE_RECORDS


def batch_of(count: int, *, key: bytes | None = b"", codec: Codec = Codec.ZSTD) -> bytes:
    records = [Record(n, NOW_MS + n, key, None) for n in range(count)]
    return bytes(build_batch(records, BatchOptions(codec=codec)))


def garbage(codec: Codec) -> bytes:
    """A batch with the right checksum over records that are none."""
    batch = build_batch([Record(0, NOW_MS + 1, None, bytes(100))], BatchOptions(codec=codec))
    batch[61:] = b"\x99" * (len(batch) - 61)
    renew_crc(batch)
    return bytes(batch)


async def send(
    broker: OneBroker, *batches: bytes, connection: Connection | None = None
) -> list[PartitionProduceResponse]:
    data = [PartitionProduceData(index=n, records=batch) for n, batch in enumerate(batches)]
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )
    answer = await broker.ask(produce, request, 9, connection=connection)
    return list(answer.responses[0].partition_responses)


async def find(broker: OneBroker, timestamp: int) -> ListOffsetsPartitionResponse:
    asks = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=asks)])
    return (await broker.ask(list_offsets, request, 7)).topics[0].partitions[0]


def stored(broker: OneBroker, index: int) -> bytes:
    partition = broker.partitions.get("t", index)
    assert partition is not None
    found = partition.log.read(0, 1 << 30, partition.log.log_end_offset)
    return bytes(found.copy())  # type: ignore[union-attr]  # the log is not empty


async def others_are_served(task: "asyncio.Task[object]") -> int:
    """How often somebody else had the loop before the task was done."""
    rounds = 0
    while not task.done():
        await asyncio.sleep(0)
        rounds += 1
    return rounds


def test_a_batch_of_very_many_records_is_taken_while_others_are_served() -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("t", 3, cleanup_policy="compact")
        sent = asyncio.create_task(
            send(broker, batch_of(MANY), batch_of(MANY, key=None), batch_of(2))
        )
        assert await others_are_served(sent) > 5
        good, keyless, small = sent.result()
        assert (good.error_code, good.base_offset) == (0, 0)
        assert (small.error_code, small.base_offset) == (0, 0)
        assert keyless.error_code == ErrorCode.INVALID_RECORD
        assert read_header(stored(broker, 0)).record_count == MANY

    story()


def test_a_large_batch_is_packed_anew_while_others_are_served() -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("t", 1, compression_type="lz4")
        batch = batch_of(MANY)
        sent = asyncio.create_task(send(broker, batch))
        assert await others_are_served(sent) > 5
        assert sent.result()[0].error_code == 0
        packed = stored(broker, 0)
        assert read_header(packed).codec == Codec.LZ4
        assert read_batch(packed) == read_batch(batch)

    story()


def test_a_time_is_found_among_very_many_records_while_others_are_served() -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("t")
        assert (await send(broker, batch_of(MANY)))[0].error_code == 0
        asked = asyncio.create_task(find(broker, NOW_MS + MANY - 3))
        assert await others_are_served(asked) > 5
        assert (asked.result().error_code, asked.result().offset) == (0, MANY - 3)
        newest = await find(broker, list_offsets.MAX_TIMESTAMP)
        assert newest.offset == MANY - 1

    story()


@pytest.mark.parametrize("codec", Codec)
def test_garbage_under_a_valid_checksum_costs_a_lookup_an_error_code(codec: Codec) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("t")
        connection = connection_to()
        for batch in (batch_of(1), garbage(codec)):
            assert (await send(broker, batch, connection=connection))[0].error_code == 0
        for timestamp in (NOW_MS + 1, list_offsets.MAX_TIMESTAMP):
            assert (await find(broker, timestamp)).error_code == ErrorCode.CORRUPT_MESSAGE
        assert (await find(broker, list_offsets.LATEST)).offset == 2

    story()


@pytest.mark.parametrize("codec", Codec)
def test_garbage_in_the_first_request_of_a_connection_is_refused(codec: Codec) -> None:
    damaged = bytearray(garbage(codec))
    damaged[-1] ^= 1

    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("t", 4)
        good, bad, more, broken = await send(
            broker, batch_of(3, codec=codec), garbage(codec), batch_of(600), bytes(damaged)
        )
        assert [good.error_code, more.error_code] == [0, 0]
        assert bad.error_code == ErrorCode.INVALID_RECORD
        assert "in topic partition t-1" in (bad.error_message or "")
        assert broken.error_code == ErrorCode.CORRUPT_MESSAGE

    story()


@on_broker()
async def test_only_the_first_records_of_a_connection_are_opened(broker: OneBroker) -> None:
    await broker.topic("t", 2)
    batch = bytearray(batch_of(501, codec=Codec.NONE))
    batch[-1] = 9  # the last record claims headers
    renew_crc(batch)
    late, later = await send(broker, bytes(batch), garbage(Codec.NONE))
    assert [late.error_code, later.error_code] == [0, 0]


@pytest.mark.parametrize("codec", Codec)
def test_a_topic_that_is_compacted_refuses_garbage(codec: Codec) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        await broker.topic("t", 1, cleanup_policy="compact")
        assert (await send(broker, garbage(codec)))[0].error_code == ErrorCode.INVALID_RECORD

    story()
