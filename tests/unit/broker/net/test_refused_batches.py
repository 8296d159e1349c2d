"""Batches in flight behind one that was refused: none of them is appended before it, and none finds a gap.

librdkafka answers OUT_OF_ORDER_SEQUENCE_NUMBER with a new producer epoch, under which batches that are in the log already are
written once more; and it takes the acknowledgement of a later batch for that of the earlier ones.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headrace.broker.net.connection import Connection
from headrace.broker.net.refused_batches import RefusedBatches
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record
from headrace.records.batch_view import BatchHeader, read_header, stamp
from headrace.replication.partition import Partition
from headrace.wire.codec import decode
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.produce import ProduceResponse
from headrace.wire.refusal import Refusal
from tests.property.produce_world import FOLLOWED, Asked, World
from tests.unit.broker.apis.one_broker import NOW_MS, connection_to

PRODUCER = 9
NOT_LEADER = Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, "")


def batch(sequence: int, records: int = 1, epoch: int = 0) -> bytearray:
    options = BatchOptions(
        producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, codec=0
    )
    values = [Record(at, NOW_MS, None, b"%d" % (sequence + at)) for at in range(records)]
    return bytearray(build_batch(values, options))


def header(sequence: int, records: int = 1, epoch: int = 0) -> BatchHeader:
    return read_header(batch(sequence, records, epoch))


class Producer:
    """A producer with one connection; answers are (error code, base offset)."""

    def __init__(self, world: World, topic: str, version: int, partition: int = 0) -> None:
        self._world = world
        self._target = (topic, partition)
        self._version = version
        self._sent = 0
        self.connection: Connection = connection_to()

    async def send(self, sequence: int) -> tuple[int, int]:
        answer = self.begin(sequence)
        return await answer

    def begin(self, sequence: int) -> Awaitable[tuple[int, int]]:
        self._sent += 1
        value = b"%d" % sequence
        asked = Asked(
            self._version, -1, "a", (self._target,), (value,), 0, (PRODUCER, sequence), ""
        )
        answer = self._world.ask(self.connection, asked.frame(self._sent))
        return self._decoded(answer)

    async def _decoded(self, answer: "bytes | str | asyncio.Future[bytes]") -> tuple[int, int]:
        frame = await answer if isinstance(answer, asyncio.Future) else answer
        assert isinstance(frame, bytes)
        body = bytearray(frame[9 if self._version >= 9 else 8 :])
        result = decode(ProduceResponse, self._version, body).responses[0].partition_responses[0]
        return result.error_code, result.base_offset


def partition_of(world: World, topic: str) -> Partition:
    partition = world.partitions.get(topic, 0)
    assert partition is not None
    return partition


def sequences_in(partition: Partition) -> list[int]:
    return [
        found.base_sequence for segment in partition.log.segments for _, found in segment.batches(0)
    ]


Story = Callable[[int], Awaitable[None]]


def in_versions(story: Story) -> Callable[[int], None]:
    """By name, by id, and not flexible, which never takes the short way."""

    @pytest.mark.parametrize("version", [7, 9, 13])
    def test(version: int) -> None:
        asyncio.run(story(version))  # type: ignore[arg-type] # a coroutine

    test.__doc__ = story.__doc__
    return test


@in_versions
async def test_a_batch_of_the_former_leader_is_not_written_again(version: int) -> None:
    """It was replicated here; its retry and the next batch come before this broker knows that it leads."""
    world = World()
    producer = Producer(world, "orders", version)
    orders = partition_of(world, "orders")
    assert await producer.send(0) == (ErrorCode.NONE, 0)
    world.change_role(is_leader=False)
    replicated = batch(1)
    stamp(replicated, 0, 1, orders.leader_epoch)
    orders.append_as_follower(
        bytes(replicated), high_watermark=1, log_start_offset=0, now_ms=NOW_MS
    )
    refused = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert [await producer.send(1), await producer.send(2)] == [refused, refused]
    world.change_role(is_leader=True)
    assert [await producer.send(3), await producer.send(4)] == [refused, refused]
    answers = [await producer.send(sequence) for sequence in (1, 2, 3, 4)]
    assert answers == [(ErrorCode.NONE, offset) for offset in (1, 2, 3, 4)]
    assert sequences_in(orders) == [0, 1, 2, 3, 4]


@in_versions
async def test_the_second_batch_of_a_new_producer_waits_for_the_first(version: int) -> None:
    world = World()
    producer = Producer(world, "orders", version)
    world.change_role(is_leader=False)
    assert (await producer.send(0))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.change_role(is_leader=True)
    assert (await producer.send(1))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await producer.send(0) == (ErrorCode.NONE, 0)
    assert await producer.send(1) == (ErrorCode.NONE, 1)


@in_versions
async def test_nor_does_it_overtake_where_the_partition_was_not_hosted_yet(version: int) -> None:
    world = World()
    producer = Producer(world, "orders", version)
    hosted = [each for each in world.partitions if each.topic_partition.topic == "orders"]
    for partition in hosted:
        world.partitions.remove(partition.topic_partition)
    first = await producer.send(0)
    assert first[0] in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
    for partition in hosted:
        world.partitions.add(partition)
    assert await producer.send(1) == first
    assert await producer.send(0) == (ErrorCode.NONE, 0)


@in_versions
async def test_batches_behind_uncommitted_ones_of_a_leader_that_resigned(version: int) -> None:
    """The second was cut off before the broker led again: the third would find a gap."""
    world = World()
    producer = Producer(world, FOLLOWED, version)
    followed = partition_of(world, FOLLOWED)
    waiting = [asyncio.ensure_future(producer.begin(sequence)) for sequence in (0, 1)]
    world.change_role(is_leader=False)
    refused = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert [await answer for answer in waiting] == [refused, refused]
    followed.truncate_as_follower(1, now_ms=NOW_MS)
    world.change_role(is_leader=True)
    assert await producer.send(2) == refused
    again = [asyncio.ensure_future(producer.begin(sequence)) for sequence in (0, 1, 2)]
    assert sequences_in(followed) == [0, 1, 2]
    world.settle()
    await asyncio.gather(*again)


@in_versions
async def test_another_partition_does_not_wait(version: int) -> None:
    world = World()
    producer = Producer(world, "orders", version)
    partition_of(world, "orders").become_follower(2, 5)
    assert (await producer.send(0))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    elsewhere = Producer(world, "orders", version, partition=1)
    elsewhere.connection = producer.connection
    assert await elsewhere.send(0) == (ErrorCode.NONE, 0)


@in_versions
async def test_new_batches_that_overtake_those_of_the_former_leader(version: int) -> None:
    """librdkafka may send a new batch first; the ones before it come as soon as it is told to try again."""
    world = World()
    producer = Producer(world, "orders", version)
    assert await producer.send(0) == (ErrorCode.NONE, 0)
    world.change_role(is_leader=True)
    refused = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert [await producer.send(sequence) for sequence in (3, 4)] == [refused, refused]
    answers = [await producer.send(sequence) for sequence in range(1, 7)]
    assert answers == [(ErrorCode.NONE, offset) for offset in range(1, 7)]
    assert (await producer.send(8))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@in_versions
async def test_a_new_batch_that_overtakes_only_the_last_one_of_the_former_leader(
    version: int,
) -> None:
    world = World()
    producer = Producer(world, "orders", version)
    assert await producer.send(0) == (ErrorCode.NONE, 0)
    world.change_role(is_leader=True)
    answers = [await producer.send(sequence) for sequence in (1, 2, 4)]
    refused = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert answers == [(ErrorCode.NONE, 1), (ErrorCode.NONE, 2), refused]
    answers = [await producer.send(sequence) for sequence in (3, 4)]
    assert answers == [(ErrorCode.NONE, 3), (ErrorCode.NONE, 4)]


@in_versions
async def test_a_new_batch_that_overtakes_the_very_first_one(version: int) -> None:
    """The leader knows nothing of the producer: it would acknowledge the second batch without the first."""
    world = World()
    producer = Producer(world, "orders", version)
    refused = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert [await producer.send(sequence) for sequence in (1, 2)] == [refused, refused]
    answers = [await producer.send(sequence) for sequence in (0, 1, 2)]
    assert answers == [(ErrorCode.NONE, offset) for offset in (0, 1, 2)]


@in_versions
async def test_a_producer_that_was_forgotten_goes_on_where_it_was(version: int) -> None:
    """Its batches have expired, and it has no earlier ones to send."""
    producer = Producer(World(), "orders", version)
    for _ in range(2):
        assert (await producer.send(17))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await producer.send(17) == (ErrorCode.NONE, 0)
    assert await producer.send(18) == (ErrorCode.NONE, 1)


@in_versions
async def test_a_batch_may_overtake_in_each_leader_epoch(version: int) -> None:
    world = World()
    producer = Producer(world, "orders", version)
    await producer.send(0)
    for _ in range(3):
        world.change_role(is_leader=True)
        assert (await producer.send(2))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER


@in_versions
async def test_the_first_leader_of_a_partition_tells_a_gap_at_once(version: int) -> None:
    world = World()
    producer = Producer(world, "orders", version)
    partition_of(world, "orders").leader_epoch = 0
    assert await producer.send(17) == (ErrorCode.NONE, 0)
    assert (await producer.send(19))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@in_versions
async def test_a_gap_that_stays_is_told(version: int) -> None:
    world = World()
    producer = Producer(world, "orders", version)
    assert await producer.send(0) == (ErrorCode.NONE, 0)
    world.change_role(is_leader=True)
    answers = [(await producer.send(3))[0] for _ in range(3)]
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answers == [refused, refused, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert sequences_in(partition_of(world, "orders")) == [0]


@in_versions
async def test_a_batch_from_long_ago_is_told_at_once(version: int) -> None:
    """It is no longer known which offset it got."""
    world = World()
    producer = Producer(world, "orders", version)
    for sequence in range(7):
        await producer.send(sequence)
    world.change_role(is_leader=True)
    assert (await producer.send(0))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_no_more_are_refused_than_can_be_in_flight() -> None:
    """Of a producer that never sends the first one again."""
    refused = RefusedBatches()
    refused.add("orders", 0, header(0), NOT_LEADER)
    found = [refused.refusal_of("orders", 0, header(sequence)) for sequence in range(1, 7)]
    assert found == [NOT_LEADER] * 4 + [None, None]
    assert not refused


@pytest.mark.parametrize(
    "later", [header(10, records=2), header(5), header(17), header(12, epoch=1)]
)
def test_a_batch_that_was_not_sent_directly_behind_is_no_concern(later: BatchHeader) -> None:
    """The retry itself, an earlier one, one sent when the leadership came back after a while, one of another epoch."""
    refused = RefusedBatches()
    refused.add("orders", 0, header(10, records=2), NOT_LEADER)
    assert refused.refusal_of("orders", 0, later) is None
    assert refused.refusal_of("orders", 0, header(12)) is None


def test_sequences_that_start_again_at_zero() -> None:
    refused = RefusedBatches()
    refused.add("orders", 0, header(2**31 - 2, records=2), NOT_LEADER)
    assert refused.refusal_of("orders", 0, header(0)) == NOT_LEADER


@pytest.mark.parametrize(
    "error", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_RECORD]
)
def test_errors_that_are_final_are_not_remembered(error: ErrorCode) -> None:
    refused = RefusedBatches()
    refused.add("orders", 0, header(0), Refusal(error, ""))
    assert not refused


def test_a_connection_remembers_a_bounded_number() -> None:
    refused = RefusedBatches()
    for partition in range(3000):
        refused.add("orders", partition, header(0), NOT_LEADER)
    refused.add("o" * 250, 0, header(0), NOT_LEADER)
    assert len(refused) == 1024
    assert refused.refusal_of("orders", 2999, header(1)) == NOT_LEADER
