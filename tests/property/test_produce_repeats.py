"""The short way of a Produce answers what the long way answers, byte for byte, and leaves the same log behind.

Two worlds get the same requests: in one they come over one connection, so that the next may be known from the last; in
the other each has a connection of its own, so that none is.
"""

import asyncio
from functools import partial
from struct import pack
from typing import NamedTuple
from uuid import UUID

from hypothesis import event, given
from hypothesis import strategies as st

from headrace.broker.apis import produce
from headrace.broker.cluster_view import ClusterView
from headrace.broker.connection import Answer, Connection
from headrace.broker.dispatch import BoundApi, Dispatcher
from headrace.broker.produce_repeats import ProduceRepeats
from headrace.broker.request_metrics import RequestMetrics
from headrace.broker.traffic import Traffic
from headrace.errors import DiskFailed, MalformedMessage
from headrace.ids import TopicPartition
from headrace.log.append_result import Refused
from headrace.log.log_config import LogConfig
from headrace.log.recovery import open_log
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.api_keys import ApiKey
from headrace.wire.codec import encode, message_decoder
from headrace.wire.headers import RequestHeader, encode_request_header, response_tags_from
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.unit.broker.apis.one_broker import CLUSTER_ID, NOW_MS, connection_to

TOPICS = {
    "orders": UUID(int=1),
    "payments-and-more": UUID(int=2),
    "__consumer_offsets": UUID(int=3),
}
FOLLOWED = "payments-and-more"  # with a follower: acks=all waits


class State(NamedTuple):
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader_epoch: int = 4
    partition_epoch: int = 0


class Asked(NamedTuple):
    version: int
    acks: int
    client_id: str | None
    targets: tuple[tuple[str, int], ...]
    values: tuple[bytes, ...]
    codec: int
    producer: tuple[int, int]
    fault: str

    def frame(self, correlation_id: int) -> bytearray:
        producer_id, sequence = self.producer
        options = BatchOptions(
            codec=self.codec,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
        )
        records = [Record(at, NOW_MS, None, value) for at, value in enumerate(self.values)]
        batch = bytearray(build_batch(records, options))
        if self.fault == "checksum":
            batch[-1] ^= 1
        elif self.fault == "magic":
            batch[16] = 1
        elif self.fault == "cut":
            del batch[-1:]
        elif self.fault == "short":
            del batch[20:]
        topics = [
            TopicProduceData(
                name=topic,
                topic_id=TOPICS.get(topic, UUID(int=99)),
                partition_data=[PartitionProduceData(index=index, records=bytes(batch))],
            )
            for topic, index in self.targets
        ]
        request = ProduceRequest(acks=self.acks, timeout_ms=60_000, topic_data=topics)
        header = RequestHeader(ApiKey.PRODUCE, self.version, correlation_id, self.client_id)
        frame = bytearray(encode_request_header(header) + encode(request, self.version))
        if self.fault == "tags" and self.version >= 9:
            frame[-1:] = b"\1\7\3abc"
        elif self.fault == "end":
            del frame[-1:]
        return frame


class World:
    """A broker's way from frames to logs, in memory."""

    def __init__(self, room_bytes: int = 1 << 20) -> None:
        self.partitions = PartitionTable()
        self.traffic = Traffic()
        self.metrics = RequestMetrics()
        self.disk = MemoryDisk()
        self._room_bytes = room_bytes
        for topic, topic_id in TOPICS.items():
            for index in range(2):
                self._host(TopicPartition(topic, index), topic_id)
        api = BoundApi(
            ApiKey.PRODUCE,
            response_tags_from(ApiKey.PRODUCE),
            *ProduceRequest.VERSIONS,
            message_decoder(ProduceRequest),
            partial(
                produce.handle,
                partitions=self.partitions,
                cluster=ClusterView(1, CLUSTER_ID, tells_dialled_address=False),
                traffic=self.traffic,
                clock=lambda: NOW_MS,
            ),
            ProduceResponse,
        )
        repeats = ProduceRepeats(self.partitions, self.traffic, lambda: NOW_MS)
        self.dispatch = Dispatcher({ApiKey.PRODUCE: api}, self.metrics, repeats)
        self.dispatch.open()
        self.disk.capacity_bytes = self.disk.used_bytes + self._room_bytes

    def _host(self, place: TopicPartition, topic_id: UUID) -> None:
        def on_disk_failed(_: Partition, error: DiskFailed) -> None:
            raise AssertionError(error)

        log = open_log(self.disk, f"/d/{place}", place, LogConfig(), now_ms=NOW_MS)
        partition = Partition(
            place,
            topic_id,
            log,
            min_insync_replicas=1,
            high_watermark=0,
            on_disk_failed=on_disk_failed,
        )
        replicas = (1, 2) if place.topic == FOLLOWED else (1,)
        partition.become_leader(1, State(replicas, replicas), now_ms=NOW_MS)
        self.partitions.add(partition)

    def ask(
        self, connection: Connection, frame: bytearray
    ) -> "bytes | str | asyncio.Future[bytes]":
        """The answer, "closed", "silent", or the answer to come."""
        try:
            answer = self.dispatch(connection, frame)
        except MalformedMessage:
            return "closed"
        if isinstance(answer, asyncio.Future):
            return asyncio.ensure_future(self._joined(answer))
        assert answer is None or isinstance(answer, list)
        return "silent" if answer is None else b"".join(answer)

    @staticmethod
    async def _joined(answer: "asyncio.Future[Answer]") -> bytes:
        return b"".join(await answer or ())

    def settle(self) -> None:
        """What waits for the follower is decided: nobody leads any more."""
        for partition in self.partitions:
            partition.become_follower(2, 5)

    @staticmethod
    def _stored(partition: Partition) -> bytes:
        found = partition.log.read(0, 1 << 20, partition.log.log_end_offset)
        assert not isinstance(found, Refused)
        return bytes(found.view())

    def remains(self) -> object:
        logs = [
            (each.topic_partition, each.log.log_end_offset, self._stored(each))
            for each in self.partitions
        ]
        counts = {
            topic: [getattr(traffic, name) for name in traffic.__slots__]
            for topic, traffic in self.traffic.by_topic.items()
        }
        calls = {key: times.calls for key, times in self.metrics.by_api.items()}
        return logs, counts, calls


targets = st.tuples(st.sampled_from([*TOPICS, "nowhere"]), st.integers(0, 2))
usual = st.tuples(st.sampled_from(["orders", FOLLOWED]), st.integers(0, 1))
asks = st.builds(
    Asked,
    version=st.sampled_from([7, 9, 9, 11, 13]),
    acks=st.sampled_from([-1, -1, 1, 1, 0, 5]),
    client_id=st.sampled_from(["a", "another", None]),
    targets=st.one_of(usual.map(lambda one: (one,)), st.lists(targets, max_size=2).map(tuple)),
    values=st.lists(st.binary(max_size=300), min_size=1, max_size=2).map(tuple),
    codec=st.sampled_from([0, 0, 3, 4]),
    producer=st.tuples(st.sampled_from([-1, -1, 9]), st.integers(0, 3)),
    fault=st.sampled_from(["", "", "", "", "checksum", "magic", "cut", "short", "tags", "end"]),
)
# Producers repeat themselves: each request comes a few times, with other records.
stories = st.lists(st.tuples(asks, st.lists(asks, max_size=3)), max_size=8)


@given(stories, st.sampled_from([1 << 20, 1 << 20, 500]))
def test_both_ways_lead_to_the_same(
    story: list[tuple[Asked, list[Asked]]], room_bytes: int
) -> None:
    requests = []
    for first, others in story:
        requests.append(first)
        requests += [
            first._replace(values=other.values, fault=other.fault, producer=other.producer)
            for other in others
        ]
    asyncio.run(play(requests, room_bytes))


async def play(requests: list[Asked], room_bytes: int) -> None:
    short, long = World(room_bytes), World(room_bytes)
    connection = connection_to()
    answers = []
    for number, asked in enumerate(requests):
        if connection.repeat_end:
            event("a request that may be known")
        answers.append(
            (
                short.ask(connection, asked.frame(number)),
                long.ask(connection_to(), asked.frame(number)),
            )
        )
    short.settle()
    long.settle()
    for number, (one, other) in enumerate(answers):
        assert isinstance(one, asyncio.Future) == isinstance(other, asyncio.Future)
        first = await one if isinstance(one, asyncio.Future) else one
        second = await other if isinstance(other, asyncio.Future) else other
        assert first == second, requests[number]
        assert not isinstance(first, bytes) or first[4:8] == pack(">i", number)
    assert short.remains() == long.remains()


def test_the_same_request_again_is_not_decoded() -> None:
    """Or all of the above would compare the long way with itself."""
    world = World()
    connection = connection_to()
    asked = Asked(9, 1, "a", (("orders", 1),), (b"value",), 0, (-1, -1), "")
    world.ask(connection, asked.frame(1))
    assert connection.repeat_end
    frame = asked._replace(values=(b"x" * 200,)).frame(2)
    answer = world.dispatch._repeats.append(frame, connection.repeat_end)
    assert isinstance(answer, list)
    assert world.partitions.get("orders", 1).log.log_end_offset == 2  # type: ignore[union-attr] # it is hosted
