"""Follows one broker: fetches what it leads and this broker replicates, and brings the logs to agreement. A rim module.

One connection and one request at a time. What is asked, and what an answer means for a partition, is decided by
`following`; a partition that cannot be served now waits a little, the others go on. A leader answers when it has news or the
wait is over: a partition that comes meanwhile does not wait for that, the question is dropped and asked anew with it.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from headrace.client.async_connection import AsyncConnection, connect
from headrace.client.exchange import Disconnected
from headrace.errors import DiskFailed, LogClosed, MalformedMessage
from headrace.ids import TopicPartition
from headrace.replication.following import Taken, counts, question, take, take_start
from headrace.replication.partition import Partition
from headrace.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

_logger = logging.getLogger(__name__)

_FETCH_VERSION: Final = 17
_LIST_OFFSETS_VERSION: Final = 9
_EARLIEST: Final = -2
_FIRST_BACKOFF_MS: Final = 25
_HURRY_S: Final = (
    0.02  # partitions mostly come together, and under load there is an answer by then anyway
)
_GONE: Final = (Disconnected, OSError, TimeoutError, MalformedMessage)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerSettings:
    """Kafka's `replica.fetch.*` settings."""

    max_wait_ms: int
    min_bytes: int
    partition_max_bytes: int
    response_max_bytes: int
    backoff_ms: int
    socket_timeout_ms: int


class FetchThrottle(Protocol):
    """Replicas that are copied slowly."""

    def holds_back(self, where: TopicPartition, replica: int) -> bool:
        """Whether a replica gets nothing now."""

    def passed(self, where: TopicPartition, size: int) -> None:
        """A replica got so many bytes."""


class FetchLoop:
    """The partitions that are followed at one leader."""

    def __init__(
        self,
        broker_id: int,
        address: Callable[[], tuple[str, int] | None],
        broker_epoch: Callable[[], int],
        settings: FollowerSettings,
        clock: Callable[[], int],
        on_disk_failed: Callable[[Partition, DiskFailed], None],
        throttle: FetchThrottle | None = None,
    ) -> None:
        """`address` is where the leader is now, None while it is gone."""
        self._broker_id = broker_id
        self._address = address
        self._broker_epoch = broker_epoch
        self._settings = settings
        self._clock = clock
        self._on_disk_failed = on_disk_failed
        self._throttle = throttle
        self._partitions: dict[Partition, int] = {}  # → not before (ms)
        self._backoffs: dict[Partition, int] = {}  # of those whose last answer was a refusal
        self._changed = asyncio.Event()
        self._waiting_on: AsyncConnection | None = None  # for an answer
        self._hurry: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, partition: Partition) -> None:
        """Follow a partition, from now on and at once."""
        self._partitions[partition] = 0
        self._backoffs.pop(partition, None)
        self._changed.set()
        if self._waiting_on is not None and self._hurry is None:
            loop = asyncio.get_running_loop()
            self._hurry = loop.call_later(_HURRY_S, self._waiting_on.abort)

    def remove(self, partition: Partition) -> None:
        """No longer follow it."""
        self._partitions.pop(partition, None)
        self._backoffs.pop(partition, None)

    async def run(self) -> None:
        """Fetch, again and again, until cancelled."""
        while True:
            address = self._address()
            if address is not None and self._partitions:
                try:
                    connection = await connect(*address, client_id=f"replica-{self._broker_id}")
                except _GONE as error:
                    _logger.debug("no connection to %s:%d: %s", *address, error)
                else:
                    await self._serve(connection)
            await self._pause(self._settings.backoff_ms)

    async def _serve(self, connection: AsyncConnection) -> None:
        try:
            while self._partitions:
                await self._round(connection)
        except _GONE as error:
            _logger.debug("the leader has gone: %s", error)
        finally:
            await connection.close()

    async def _pause(self, most_ms: int) -> None:
        """Wait, unless there has been or comes something new to follow."""
        try:
            async with asyncio.timeout(most_ms / 1000):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    async def _round(self, connection: AsyncConnection) -> None:
        now_ms = self._clock()
        # Longer than the longest pause is a clock that was put back.
        pause_ms = self._settings.backoff_ms
        asked: list[Partition] = []
        pauses_ms: list[int] = []  # of those that wait
        for partition, not_before in self._partitions.items():
            if 0 < not_before - now_ms <= pause_ms:
                pauses_ms.append(not_before - now_ms)
            else:
                asked.append(partition)
        if not asked:
            await self._pause(min(pauses_ms))
            return
        asked = self._without_held_back(asked)
        if not asked:
            await self._pause(pause_ms)
            return
        epochs = {partition: partition.leader_epoch for partition in asked}
        wait_ms = min([self._settings.max_wait_ms, *pauses_ms])
        response = await self._answer(connection, self._request(asked, max_wait_ms=wait_ms))
        by_place = {
            (partition.topic_id, partition.topic_partition.partition): partition
            for partition in asked
        }
        for topic in response.responses:
            for data in topic.partitions:
                found = by_place.get((topic.topic_id, data.partition_index))
                if found is not None and found in self._partitions and counts(found, epochs[found]):
                    await self._take(connection, found, data)

    async def _answer(self, connection: AsyncConnection, request: FetchRequest) -> FetchResponse:
        self._waiting_on = connection
        try:
            async with asyncio.timeout(self._settings.socket_timeout_ms / 1000):
                return await connection.send(request, _FETCH_VERSION)
        finally:
            self._waiting_on = None
            if self._hurry is not None:
                self._hurry.cancel()
                self._hurry = None

    def _without_held_back(self, asked: list[Partition]) -> list[Partition]:
        throttle = self._throttle
        if throttle is None:
            return asked
        return [
            partition
            for partition in asked
            if not throttle.holds_back(partition.topic_partition, self._broker_id)
        ]

    def _request(self, asked: list[Partition], *, max_wait_ms: int) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        by_topic: dict[str, list[FetchPartition]] = {}
        for partition in asked:
            name = partition.topic_partition.topic
            if name not in topics:
                by_topic[name] = []
                topics[name] = FetchTopic(
                    topic=name, topic_id=partition.topic_id, partitions=by_topic[name]
                )
            by_topic[name].append(question(partition, max_bytes=self._settings.partition_max_bytes))
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._broker_id, replica_epoch=self._broker_epoch()
            ),
            max_wait_ms=max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.response_max_bytes,
            topics=list(topics.values()),
        )

    async def _take(
        self, connection: AsyncConnection, partition: Partition, data: PartitionData
    ) -> None:
        if self._throttle is not None:
            self._throttle.passed(partition.topic_partition, len(data.records or b""))
        try:
            taken = take(partition, data, now_ms=self._clock())
            if taken is Taken.ASK_FOR_START:
                taken = await self._ask_for_start(connection, partition)
            if taken is Taken.WAIT:
                self._wait(partition)
            else:
                self._backoffs.pop(partition, None)
        except LogClosed:
            self.remove(partition)
        except DiskFailed as error:
            self.remove(partition)
            self._on_disk_failed(partition, error)

    async def _ask_for_start(self, connection: AsyncConnection, partition: Partition) -> Taken:
        name, index = partition.topic_partition
        epoch = partition.leader_epoch
        ask = ListOffsetsPartition(
            partition_index=index, current_leader_epoch=epoch, timestamp=_EARLIEST
        )
        request = ListOffsetsRequest(
            replica_id=self._broker_id, topics=[ListOffsetsTopic(name=name, partitions=[ask])]
        )
        async with asyncio.timeout(self._settings.socket_timeout_ms / 1000):
            response = await connection.send(request, _LIST_OFFSETS_VERSION)
        answer = response.topics[0].partitions[0]
        if not counts(partition, epoch):
            return Taken.GO_ON
        if answer.error_code:
            return Taken.WAIT
        return take_start(partition, answer.offset, now_ms=self._clock())

    def _wait(self, partition: Partition) -> None:
        """Ask again soon, for the leader may only not have heard yet that it leads; then less and less often."""
        if partition not in self._partitions:
            return
        backoff_ms = self._backoffs.get(partition, _FIRST_BACKOFF_MS)
        self._backoffs[partition] = min(backoff_ms * 2, self._settings.backoff_ms)
        self._partitions[partition] = self._clock() + min(backoff_ms, self._settings.backoff_ms)
