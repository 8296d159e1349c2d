"""Readers of a fetch: what a consumer and what a follower may read of a partition, and what each is told about it.

Which partitions are read, and how long a fetch waits, is left to `apis.fetch` and the fetch session.
"""

from typing import Final, NamedTuple, Protocol

from headrace.broker.fetching.fetch_sessions import FetchSession, SessionPartitionKey, replica_id_of
from headrace.broker.replicas.replica_throttle import ReplicaThrottle
from headrace.clock import Clock
from headrace.ids import TopicPartition
from headrace.log.files.file_slice import FileSlice
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch, PartitionRead
from headrace.replication.waiting import ChangeWaiters
from headrace.wire.messages.fetch import FetchPartition, FetchRequest
from headrace.wire.refusal import Refusal

_READ_COMMITTED: Final = 1
_FIRST_WITH_RACK: Final = 11


class Reader(Protocol):
    """Reads partitions for one fetch; implemented for consumers and for followers."""

    def read(
        self, partition: Partition, ask: FetchPartition, max_bytes: int, *, at_least_one: bool
    ) -> PartitionRead | Refusal: ...
    def waiters(self, partition: Partition) -> ChangeWaiters: ...
    def content(self, records: FileSlice) -> bytes | memoryview: ...
    def sent(self, topic: str, index: int, size: int) -> int: ...
    def wanted(self, session: FetchSession) -> list[tuple[SessionPartitionKey, FetchPartition]]: ...
    def told(
        self, session: FetchSession, key: SessionPartitionKey, partition: Partition
    ) -> None: ...


class ConsumerReader(NamedTuple):
    """Reads committed records; from a follower too, if the request's version allows it (KIP-392)."""

    read_committed: bool
    by_follower: bool

    def read(
        self, partition: Partition, ask: FetchPartition, max_bytes: int, *, at_least_one: bool
    ) -> PartitionRead | Refusal:
        return partition.read(
            ask.fetch_offset,
            max_bytes,
            current_leader_epoch=ask.current_leader_epoch,
            last_fetched_epoch=ask.last_fetched_epoch,
            read_committed=self.read_committed,
            at_least_one=at_least_one,
            by_follower=self.by_follower,
        )

    def waiters(self, partition: Partition) -> ChangeWaiters:
        return partition.high_watermark_waiters

    def content(self, records: FileSlice) -> bytes | memoryview:
        # No copy is needed, because nothing is truncated below the high watermark.
        return records.view()

    def sent(self, topic: str, index: int, size: int) -> int:
        return size

    def wanted(self, session: FetchSession) -> list[tuple[SessionPartitionKey, FetchPartition]]:
        return [(key, wanted.ask) for key, wanted in session.partitions.items()]

    def told(self, session: FetchSession, key: SessionPartitionKey, partition: Partition) -> None:
        pass


class FollowerReader(NamedTuple):
    """Reads up to the log's end, and tells the leader how far it has come."""

    replica_id: int
    broker_epoch: int
    clock: Clock
    throttle: ReplicaThrottle

    def read(
        self, partition: Partition, ask: FetchPartition, max_bytes: int, *, at_least_one: bool
    ) -> PartitionRead | Refusal:
        follower = FollowerFetch(
            self.replica_id,
            self.broker_epoch,
            ask.fetch_offset,
            ask.last_fetched_epoch,
            ask.current_leader_epoch,
            ask.log_start_offset,
        )
        if self.throttle.holds_back(partition.topic_partition, self.replica_id):
            # The leader still notes the follower's fetch offset; only the records are held back.
            max_bytes, at_least_one = 0, False
        return partition.read_as_leader(
            follower, max_bytes, now_ms=self.clock(), at_least_one=at_least_one
        )

    def waiters(self, partition: Partition) -> ChangeWaiters:
        return partition.append_waiters

    def content(self, records: FileSlice) -> bytes | memoryview:
        # A truncation above the high watermark could remove the pages of a view, so the records are copied.
        return records.copy()

    def sent(self, topic: str, index: int, size: int) -> int:
        self.throttle.passed(TopicPartition(topic, index), size)
        return 0  # the traffic of replication is not counted as bytes out to consumers

    def wanted(self, session: FetchSession) -> list[tuple[SessionPartitionKey, FetchPartition]]:
        session.wake_expired(self.broker_epoch, self.clock())
        return [(key, session.partitions[key].ask) for key in session.active]

    def told(self, session: FetchSession, key: SessionPartitionKey, partition: Partition) -> None:
        session.mark_idle(key, partition, self.replica_id)


def reader_of(
    request: FetchRequest, version: int, clock: Clock, throttle: ReplicaThrottle
) -> Reader:
    """The reader for this request: a follower's if it names a replica id."""
    replica_id = replica_id_of(request)
    if replica_id >= 0:
        state = request.replica_state
        epoch = -1 if state is None else state.replica_epoch
        return FollowerReader(replica_id, epoch, clock, throttle)
    return ConsumerReader(request.isolation_level == _READ_COMMITTED, version >= _FIRST_WITH_RACK)
