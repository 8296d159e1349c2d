"""Sender of transaction markers: carries out the transaction coordinator's effect `WriteMarkers`.

Owns, for each broker, a queue and a connection: markers that are waiting for the same broker share a WriteTxnMarkers request.
A marker goes to whoever leads the partition, this broker included, until the leader has committed it; what fails is repeated after a
pause, for as long as this broker coordinates the transactional id. Which broker leads, and how it is reached, is asked of
`MarkerTargets`. The partitions of a deleted topic need no marker.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from headrace.client.async_connection import AsyncConnection
from headrace.client.exchange import Disconnected, VersionNotOffered
from headrace.coordinator.contract import Effect
from headrace.coordinator.coordinator_type import ShardId, Task
from headrace.coordinator.transaction.markers import WriteMarkers
from headrace.errors import MalformedMessage
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_logger = logging.getLogger(__name__)

_VERSION: Final = 2
_MARKERS_PER_REQUEST: Final = 1_000
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 1.0
NO_LEADER: Final = -1

# The partition needs this marker no more. An epoch that is too low says that the marker, or a later one, is written.
_DONE: Final = (
    ErrorCode.NONE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
)
_UNREACHABLE: Final = (Disconnected, MalformedMessage, OSError, TimeoutError, VersionNotOffered)

Errors = dict[TopicPartition, ErrorCode]
SpawnTask = Callable[[Coroutine[object, object, None]], Task]


class MarkerTargets(Protocol):
    """Where markers go."""

    def leader_of(self, partition: TopicPartition) -> int | None:
        """The broker that leads the partition, `NO_LEADER` for the moment, or None if its topic is gone."""
        ...

    async def connect_to(self, broker_id: int) -> AsyncConnection:
        """A connection to the broker, as another broker."""
        ...


class MarkerSending:
    """The markers that this broker's transaction coordinator has to write. One event loop owns it."""

    def __init__(self, targets: MarkerTargets, spawn: SpawnTask, *, timeout_s: float) -> None:
        """A request that is not answered for `timeout_s` is given up, with its connection."""
        self._targets = targets
        self._spawn = spawn
        self._timeout_s = timeout_s
        self._queues: dict[int, _BrokerQueue] = {}
        self._without_leader: dict[WriteMarkers, int] = {}

    @property
    def without_leader(self) -> int:
        """How many markers wait for their partition to have a leader."""
        return sum(self._without_leader.values())

    async def write(self, shard: ShardId, effect: Effect) -> object:
        """Write the markers of one transaction. Returns when each is committed."""
        assert isinstance(effect, WriteMarkers), effect
        missing = set(effect.partitions)
        pause_s = _FIRST_PAUSE_S
        try:
            while missing := await self._write_once(shard, effect, missing):
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        finally:
            self._without_leader.pop(effect, None)
        return None

    def stop(self) -> None:
        """Close the connections. What is under way is abandoned; the next coordinator finds it in the log."""
        for queue in self._queues.values():
            queue.stop()

    async def _write_once(
        self, shard: ShardId, effect: WriteMarkers, missing: set[TopicPartition]
    ) -> set[TopicPartition]:
        """Try every missing partition once; returns those that are still missing."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in sorted(missing):
            leader = self._targets.leader_of(partition)
            if leader is None:
                _logger.info(
                    "%s: the topic is deleted, so transactional id %s needs no marker there",
                    partition,
                    effect.transactional_id,
                )
                missing.discard(partition)
            else:
                by_leader.setdefault(leader, []).append(partition)
        self._without_leader[effect] = len(by_leader.pop(NO_LEADER, ()))
        answers = await asyncio.gather(
            *(
                self._queue(leader).send(_marker(shard, effect, partitions))
                for leader, partitions in by_leader.items()
            )
        )
        for errors in answers:
            for partition, error in errors.items():
                if error in _DONE:
                    missing.discard(partition)
                elif error is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                    _logger.warning(
                        "%s refuses the marker of transactional id %s, because a later coordinator than"
                        " leader epoch %d of %s has written there",
                        partition,
                        effect.transactional_id,
                        shard.leader_epoch,
                        shard,
                    )
        return missing

    def _queue(self, broker_id: int) -> "_BrokerQueue":
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = _BrokerQueue(
                broker_id, self._targets, self._spawn, self._timeout_s
            )
        return queue


class _Waiting(NamedTuple):
    marker: WritableTxnMarker
    answer: "asyncio.Future[Errors]"


class _BrokerQueue:
    """The markers for one broker: one request under way, and what waits for the next."""

    def __init__(
        self, broker_id: int, targets: MarkerTargets, spawn: SpawnTask, timeout_s: float
    ) -> None:
        self._broker_id = broker_id
        self._targets = targets
        self._spawn = spawn
        self._timeout_s = timeout_s
        self._waiting: list[_Waiting] = []
        self._sending: Task | None = None
        self._connection: AsyncConnection | None = None

    async def send(self, marker: WritableTxnMarker) -> Errors:
        """The error of each partition; none of those that were not answered."""
        answer: asyncio.Future[Errors] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(marker, answer))
        if self._sending is None:
            self._sending = self._spawn(self._send_all())
        return await answer

    def stop(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
        if self._connection is not None:
            self._connection.abort()

    async def _send_all(self) -> None:
        batch: Sequence[_Waiting] = ()
        try:
            while batch := self._next_batch():
                errors = await self._request([each.marker for each in batch])
                for each in batch:
                    if not each.answer.done():
                        each.answer.set_result(errors.get(each.marker.producer_id, {}))
        finally:
            self._sending = None
            for each in (*batch, *self._waiting):
                if not each.answer.done():
                    each.answer.set_result({})
            self._waiting.clear()

    def _next_batch(self) -> Sequence[_Waiting]:
        """One marker for each producer id, because the answer names markers by it. Who has given up is left out."""
        batch: dict[int, _Waiting] = {}
        left: list[_Waiting] = []
        for each in self._waiting:
            if each.answer.done():
                continue
            if each.marker.producer_id in batch or len(batch) == _MARKERS_PER_REQUEST:
                left.append(each)
            else:
                batch[each.marker.producer_id] = each
        self._waiting = left
        return tuple(batch.values())

    async def _request(self, markers: Sequence[WritableTxnMarker]) -> dict[int, Errors]:
        connection = None
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = await self._open_connection()
                response = await connection.send(WriteTxnMarkersRequest(markers=markers), _VERSION)
        except _UNREACHABLE as error:
            _logger.info(
                "%d transaction markers did not reach broker %d, and are sent again: %s",
                len(markers),
                self._broker_id,
                error or "no answer in time",
            )
            if connection is not None:
                connection.abort()
            return {}
        return _errors(response)

    async def _open_connection(self) -> AsyncConnection:
        if self._connection is None or not self._connection.is_open:
            self._connection = await self._targets.connect_to(self._broker_id)
        return self._connection


def _marker(
    shard: ShardId, effect: WriteMarkers, partitions: Iterable[TopicPartition]
) -> WritableTxnMarker:
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return WritableTxnMarker(
        producer_id=effect.producer_id,
        producer_epoch=effect.producer_epoch,
        transaction_result=effect.commit,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in by_topic.items()
        ],
        coordinator_epoch=shard.leader_epoch,
        transaction_version=effect.transaction_version,
    )


def _errors(response: WriteTxnMarkersResponse) -> dict[int, Errors]:
    return {
        result.producer_id: {
            TopicPartition(topic.name, partition.partition_index): ErrorCode.of(
                partition.error_code
            )
            for topic in result.topics
            for partition in topic.partitions
        }
        for result in response.markers
    }
