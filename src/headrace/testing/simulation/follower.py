"""How a simulated broker follows others, and answers those that follow it.

As `replication.fetch_loop` and `broker.apis.fetch` do, without sockets: one request at a time to each leader, parked there until
there is something new. What is asked and what an answer means is decided by the real `replication.following`.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.errors import DiskFailed, LogClosed
from headrace.ids import TopicPartition
from headrace.log.append_result import Refused
from headrace.replication.following import Taken, counts, question, take, take_start
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch, PartitionRead
from headrace.testing.virtual_network import Reply
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import EpochEndOffset, FetchPartition, PartitionData

if TYPE_CHECKING:
    from headrace.testing.simulation.broker import SimulatedBroker

_MAX_WAIT_MS: Final = 150
_BACKOFF_MS: Final = 50
_MAX_BYTES: Final = 300  # a few batches at a time


class ReplicaFetch(NamedTuple):
    """A follower's request."""

    replica_id: int
    broker_epoch: int
    asks: list[tuple[TopicPartition, FetchPartition]]


class SimulatedFollowers:
    """What one broker follows: `broker.roles.Following`."""

    def __init__(self, broker: "SimulatedBroker") -> None:
        self._broker = broker
        self._partitions: dict[int, dict[Partition, int]] = {}  # by leader → not before (ms)

    def follow(
        self,
        partition: Partition,
        leader_id: int,
        on_disk_failed: Callable[[Partition, DiskFailed], None],
    ) -> None:
        """Follow a partition at its leader; -1 is nobody."""
        self.leave(partition)
        if leader_id < 0:
            return
        if leader_id not in self._partitions:
            self._partitions[leader_id] = {}
            self._broker.run(self._fetch_from(leader_id))
        self._partitions[leader_id][partition] = 0

    def leave(self, partition: Partition) -> None:
        """No longer follow it."""
        for followed in self._partitions.values():
            followed.pop(partition, None)

    async def _fetch_from(self, leader_id: int) -> None:
        broker, followed = self._broker, self._partitions[leader_id]
        while True:
            now_ms = broker.around.clock.now_ms
            asked = [
                partition for partition, not_before in followed.items() if not_before <= now_ms
            ]
            if not asked or broker.lags_until_ms > now_ms:
                await broker.sleep(_BACKOFF_MS)
                continue
            epochs = {partition: partition.leader_epoch for partition in asked}
            asks = [
                (partition.topic_partition, question(partition, max_bytes=_MAX_BYTES))
                for partition in asked
            ]
            fetch = ReplicaFetch(broker.broker_id, broker.epoch, asks)
            answers = await broker.call(leader_id, partial(answer_fetch, fetch))
            if not isinstance(answers, list):
                await broker.sleep(_BACKOFF_MS)
                continue
            for partition, answer in zip(asked, answers, strict=True):
                if partition in followed and counts(partition, epochs[partition]):
                    try:
                        await self._take(leader_id, partition, answer)
                    except LogClosed:
                        self.leave(partition)  # this broker has been relieved of it meanwhile

    async def _take(self, leader_id: int, partition: Partition, answer: PartitionData) -> None:
        broker = self._broker
        taken = take(partition, answer, now_ms=broker.now_ms())
        if taken is Taken.ASK_FOR_START:
            epoch, where = partition.leader_epoch, partition.topic_partition
            start = await broker.call(
                leader_id, lambda other, reply: answer_start(other, where, epoch, reply)
            )
            if not counts(partition, epoch):
                return
            taken = Taken.WAIT
            if isinstance(start, int):
                taken = take_start(partition, start, now_ms=broker.now_ms())
        if taken is Taken.WAIT and partition in self._partitions[leader_id]:
            self._partitions[leader_id][partition] = broker.around.clock.now_ms + _BACKOFF_MS


def answer_start(
    broker: "SimulatedBroker", where: TopicPartition, epoch: int, reply: Reply
) -> None:
    """Where the log of a partition starts (ListOffsets, earliest); None if that is not ours to say."""
    partition = broker.partitions.get(*where)
    if partition is None or partition.fence(epoch) is not None:
        reply(None)
    else:
        reply(partition.log.log_start_offset)


def answer_fetch(fetch: ReplicaFetch, broker: "SimulatedBroker", reply: Reply) -> None:
    """Answer a follower: at once if there is anything to say, else when there is, or after a while."""
    waiting = [
        partition
        for where, _ in fetch.asks
        if (partition := broker.partitions.get(*where)) is not None
    ]
    is_over = False

    def look(*, at_last: bool = False) -> None:
        nonlocal is_over
        if is_over:
            return
        answers = [_read(broker, fetch, where, ask) for where, ask in fetch.asks]
        if at_last or any(map(_is_news, answers)):
            is_over = True
            timeout.call_off()
            for partition in waiting:
                partition.appended.remove(look)
            reply(answers)

    timeout = broker.deliver(_MAX_WAIT_MS, lambda: look(at_last=True))
    look()
    if not is_over:
        for partition in waiting:
            partition.appended.add(look)


def _is_news(answer: PartitionData) -> bool:
    return bool(answer.error_code or answer.records) or answer.diverging_epoch is not None


def _read(
    broker: "SimulatedBroker", fetch: ReplicaFetch, where: TopicPartition, ask: FetchPartition
) -> PartitionData:
    partition = broker.partitions.get(*where)
    if partition is None:
        return PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    follower = FollowerFetch(
        fetch.replica_id,
        fetch.broker_epoch,
        ask.fetch_offset,
        ask.last_fetched_epoch,
        ask.current_leader_epoch,
        ask.log_start_offset,
    )
    found = partition.read_as_leader(follower, ask.partition_max_bytes, now_ms=broker.now_ms())
    return fetched(where.partition, found)


def fetched(index: int, found: PartitionRead | Refused) -> PartitionData:
    """What a read yields, as an answer on the wire."""
    if isinstance(found, Refused):
        return PartitionData(partition_index=index, error_code=found.error_code)
    diverging = found.diverging
    return PartitionData(
        partition_index=index,
        high_watermark=found.high_watermark,
        log_start_offset=found.log_start_offset,
        diverging_epoch=None
        if diverging is None
        else EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset),
        records=found.records.copy() if found.records.length else b"",
    )
