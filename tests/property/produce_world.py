"""A broker's way from Produce requests to logs, in memory, and requests for it: good ones and others."""

import asyncio
from typing import NamedTuple
from uuid import UUID

from headrace.broker.api_table import bind_api
from headrace.broker.apis import produce
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.net.connection import Connection
from headrace.broker.net.frame_buffer import Frame
from headrace.broker.requests.dispatch import Dispatcher
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_metrics import RequestMetrics
from headrace.broker.requests.request_steps import RequestSteps
from headrace.broker.telemetry.traffic import Traffic
from headrace.errors import DiskFailed, MalformedMessage
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.recovery import open_log
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record
from headrace.replication.completion import Completion
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.api_keys import ApiKey
from headrace.wire.codec import encode
from headrace.wire.headers import RequestHeader, encode_request_header
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_place import InPlace
from tests.support.scripted_verification import ScriptedVerification
from tests.unit.broker.apis.one_broker import CLUSTER_ID, NOW_MS

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
    needed_isr: int = 1


class Asked(NamedTuple):
    version: int
    acks: int
    client_id: str | None
    targets: tuple[tuple[str, int], ...]
    values: tuple[bytes, ...]
    codec: int
    producer: tuple[int, int]
    fault: str
    time_ms: int = NOW_MS
    producer_epoch: int = 0

    def frame(self, correlation_id: int) -> bytearray:
        producer_id, sequence = self.producer
        options = BatchOptions(
            codec=self.codec,
            producer_id=producer_id,
            producer_epoch=self.producer_epoch if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
        )
        records = [Record(at, self.time_ms, None, value) for at, value in enumerate(self.values)]
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


def _replicas(place: TopicPartition) -> tuple[int, ...]:
    return (1, 2) if place.topic == FOLLOWED else (1,)


class World:
    """A broker's way from frames to logs, in memory."""

    def __init__(
        self,
        room_bytes: int = 1 << 20,
        config: LogConfig | None = None,
        steps: RequestSteps | None = None,
    ) -> None:
        self.partitions = PartitionTable()
        self.traffic = Traffic()
        self.metrics = RequestMetrics()
        self.disk = MemoryDisk()
        self._config = config or LogConfig()
        for topic, topic_id in TOPICS.items():
            for index in range(2):
                self._host(TopicPartition(topic, index), topic_id)
        parts = {
            "partitions": self.partitions,
            "cluster": ClusterView(1, CLUSTER_ID, tells_dialled_address=False),
            "traffic": self.traffic,
            "clock": lambda: NOW_MS,
            "long_work": LongWork(InPlace(), lambda: 0.0),
            "txn_verification": ScriptedVerification(),
        }
        api = bind_api(ApiKey.PRODUCE, produce, parts)
        self.dispatch = Dispatcher(
            {ApiKey.PRODUCE: api}, self.metrics, lambda: 0.0, steps or RequestSteps()
        )
        self.dispatch.open()
        self.disk.capacity_bytes = self.disk.used_bytes + room_bytes

    def _host(self, place: TopicPartition, topic_id: UUID) -> None:
        def on_disk_failed(_: Partition, error: DiskFailed) -> None:
            raise AssertionError(error)

        log = open_log(self.disk, f"/d/{place}", place, self._config, now_ms=NOW_MS)
        partition = Partition(
            place,
            topic_id,
            log,
            high_watermark=0,
            on_disk_failed=on_disk_failed,
        )
        replicas = _replicas(place)
        partition.become_leader(1, State(replicas, replicas), now_ms=NOW_MS)
        self.partitions.add(partition)

    def ask(self, connection: Connection, frame: Frame) -> "bytes | str | asyncio.Future[bytes]":
        """The answer, "closed", "silent", or the answer to come."""
        try:
            (answer,) = self.dispatch(connection, [frame])
        except MalformedMessage:
            return "closed"
        if isinstance(answer, Completion):
            return asyncio.ensure_future(self._joined(answer))
        assert answer is None or isinstance(answer, list)
        return "silent" if answer is None else b"".join(answer)

    @staticmethod
    async def _joined(answer: Completion) -> bytes:
        return b"".join(await answer or ())

    def change_role(self, *, is_leader: bool) -> None:
        """All partitions are led from here from now on, or from elsewhere; in a new epoch. A full disk has room for that."""
        capacity_bytes, self.disk.capacity_bytes = self.disk.capacity_bytes, None
        for partition in self.partitions:
            epoch = partition.leader_epoch + 1
            if is_leader:
                replicas = _replicas(partition.topic_partition)
                state = State(replicas, replicas, leader_epoch=epoch)
                partition.become_leader(1, state, now_ms=NOW_MS)
            else:
                partition.become_follower(2, epoch)
        self.disk.capacity_bytes = capacity_bytes

    def settle(self) -> None:
        """What waits for the follower is decided: nobody leads any more."""
        self.change_role(is_leader=False)

    def remains(self) -> object:
        """All that a request leaves behind: files with their indexes, producers, counters."""
        self.disk.capacity_bytes = None
        for partition in self.partitions:
            partition.log.segments.active.write_indexes()
        files = {
            (place, file.name): self.disk.read_bytes(f"/d/{place}/{file.name}")
            for place in self.disk.list_directories("/d")
            for file in self.disk.list_files(f"/d/{place}")
        }
        logs = [
            (
                each.topic_partition,
                each.log.log_end_offset,
                each.high_watermark,
                [(entry.producer_id, list(entry.batches)) for entry in each.log.producers],
                [segment.max_timestamp for segment in each.log.segments],
            )
            for each in self.partitions
        ]
        counts = {
            topic: [getattr(traffic, name) for name in traffic.__slots__]
            for topic, traffic in self.traffic.by_topic.items()
        }
        calls = {key: times.calls for key, times in self.metrics.by_api.items()}
        return files, logs, counts, calls
