"""Fetch loop of a follower: replicates the partitions that one other broker leads. A rim module.

One connection and one request at a time. `fetch_session` decides the content of a request, which names only what has changed, and
`following` what an answer means for a partition. A partition that cannot be served now waits a little, the
others go on. A leader answers when it has news or the wait is over: a partition that comes meanwhile does not wait for that,
the question is dropped and asked anew with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from headrace.client.async_connection import AsyncConnection
from headrace.client.exchange import Disconnected
from headrace.errors import DiskFailed, LogClosed, MalformedMessage
from headrace.ids import TopicPartition
from headrace.replication.fetch_session import Asked, FollowerSession
from headrace.replication.following import (
    FetchOutcome,
    counts,
    is_taken_whole,
    lag_after,
    take,
    take_start,
)
from headrace.replication.partition import Partition
from headrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
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
_LOOK_AROUND_MS: Final = 1_000
_HURRY_S: Final = 0.02  # partitions mostly come together, and under load an answer has come by then
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
    """Throttle of replication, as a fetch loop uses it."""

    @property
    def is_on(self) -> bool:
        """Whether any replica may be throttled."""

    def holds_back(self, where: TopicPartition, replica: int) -> bool:
        """Whether a replica has to wait now."""

    def passed(self, where: TopicPartition, size: int) -> None:
        """Count bytes that a replica was sent."""


class FetchLoop:
    """The partitions that are followed at one leader."""

    def __init__(
        self,
        broker_id: int,
        connect: Callable[[], Awaitable[AsyncConnection]],
        broker_epoch: Callable[[], int],
        settings: FollowerSettings,
        clock: Callable[[], int],
        on_disk_failed: Callable[[Partition, DiskFailed], None],
        throttle: FetchThrottle | None = None,
        on_broken: Callable[[], None] = lambda: None,
    ) -> None:
        """`connect` opens a connection to the leader at its present address. Raises Disconnected while it is gone.

        `on_broken` is called for every connection that this broker did not close.
        """
        self._broker_id = broker_id
        self._connect = connect
        self._broker_epoch = broker_epoch
        self._settings = settings
        self._clock = clock
        self._on_disk_failed = on_disk_failed
        self._throttle = throttle
        self._on_broken = on_broken
        self.on_log_start_moved: Callable[[], None] = lambda: (
            None
        )  # records were deleted here and would be back after a kill; then `tell_log_starts`
        self._untold_starts: set[Partition] = set()
        self._session = FollowerSession(settings.partition_max_bytes)
        self._looked_ms = 0  # when the log start offsets of all partitions were last compared
        self._partitions: dict[Partition, None] = {}
        self._paused: dict[Partition, int] = {}  # → not before (ms)
        self._held_back: set[Partition] = set()  # by the throttle
        self._backoffs: dict[Partition, int] = {}  # of partitions whose last answer was an error
        self._lags: dict[Partition, int] = {}  # by the latest answers
        self._changed = asyncio.Event()
        self._waiting_on: AsyncConnection | None = None  # for an answer
        self._hurry: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def max_lag(self) -> int:
        """How many committed records the partition that is furthest behind its leader lacks, by the latest answers."""
        return max(self._lags.values(), default=0)

    def add(self, partition: Partition) -> None:
        """Fetch a partition from now on, without waiting for the answer under way."""
        self.remove(partition)
        self._partitions[partition] = None
        self._session.want(partition)
        self._changed.set()
        self._ask_anew_soon()

    def _ask_anew_soon(self) -> None:
        """Drop a fetch that waits for records at the leader, and send another one."""
        if self._waiting_on is not None and self._hurry is None:
            loop = asyncio.get_running_loop()
            self._hurry = loop.call_later(_HURRY_S, self._waiting_on.abort)

    def remove(self, partition: Partition) -> None:
        """Stop fetching a partition."""
        self._session.leave(partition)
        self._partitions.pop(partition, None)
        self._paused.pop(partition, None)
        self._held_back.discard(partition)
        self._backoffs.pop(partition, None)
        self._lags.pop(partition, None)
        self._untold_starts.discard(partition)

    def tell_log_starts(self) -> None:
        """Send log start offsets that have become durable with the next fetch, because DeleteRecords waits for them.

        A fetch that ends soon is not dropped for it, because retention moves log starts, too.
        """
        if self._untold_starts and self._settings.max_wait_ms > _LOOK_AROUND_MS:
            self._ask_anew_soon()
        while self._untold_starts:
            self._session.mark_changed(self._untold_starts.pop())

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            if self._partitions:
                try:
                    connection = await self._connect()
                except _GONE as error:
                    _logger.debug("no connection to the leader: %s", error)
                else:
                    await self._serve(connection)
            await self._pause(self._settings.backoff_ms)

    async def _serve(self, connection: AsyncConnection) -> None:
        try:
            while self._partitions:
                await self._round(connection)
        except _GONE as error:
            _logger.debug("the leader has gone: %s", error)
            if connection.was_broken_off:
                self._on_broken()
        finally:
            self._session.start_over()
            await connection.close()

    async def _pause(self, most_ms: int) -> None:
        """Wait, but not while partitions are added."""
        try:
            async with asyncio.timeout(most_ms / 1000):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    async def _round(self, connection: AsyncConnection) -> None:
        pause_ms = self._take_turns()
        if not self._session:
            await self._pause(pause_ms)
            return
        request = self._request(self._session.ask(), max_wait_ms=pause_ms)
        response = await self._answer(connection, request)
        if not self._session.answered(response):
            _logger.debug("the leader answers %d: all is asked anew", response.error_code)
            await self._pause(_FIRST_BACKOFF_MS)
            return
        for topic in response.responses:
            for data in topic.partitions:
                found = self._session.asked(topic.topic_id, data.partition_index)
                if found is None or found[0] not in self._partitions:
                    continue
                if not is_taken_whole(found[0], data) or not counts(*found):
                    self._session.start_over()
                if counts(*found):
                    await self._take(connection, found[0], data)

    def _take_turns(self) -> int:
        """Put partitions that may be fetched now into the session. Returns how long it is until others may be."""
        now_ms = self._clock()
        # A wait that is longer than the longest pause means that the clock was put back.
        longest_ms = self._settings.backoff_ms
        pause_ms = self._settings.max_wait_ms
        for partition, not_before in list(self._paused.items()):
            if 0 < not_before - now_ms <= longest_ms:
                pause_ms = min(pause_ms, not_before - now_ms)
            else:
                del self._paused[partition]
                self._session.want(partition)
        self._hold_back()
        if not 0 <= now_ms - self._looked_ms < _LOOK_AROUND_MS:
            self._looked_ms = now_ms
            self._session.mark_all_changed()
        return pause_ms

    def _hold_back(self) -> None:
        throttle = self._throttle
        if throttle is None or not (throttle.is_on or self._held_back):
            return
        for partition in self._partitions:
            if partition in self._paused:
                continue
            is_held = throttle.holds_back(partition.topic_partition, self._broker_id)
            if is_held and partition not in self._held_back:
                self._held_back.add(partition)
                self._session.leave(partition)
            elif not is_held and partition in self._held_back:
                self._held_back.discard(partition)
                self._session.want(partition)

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

    def _request(self, asked: Asked, *, max_wait_ms: int) -> FetchRequest:
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._broker_id, replica_epoch=self._broker_epoch()
            ),
            max_wait_ms=max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.response_max_bytes,
            session_id=asked.session_id,
            session_epoch=asked.session_epoch,
            topics=asked.topics,
            forgotten_topics_data=asked.forgotten,
        )

    async def _take(
        self, connection: AsyncConnection, partition: Partition, data: PartitionData
    ) -> None:
        if self._throttle is not None:
            self._throttle.passed(partition.topic_partition, len(data.records or b""))
        try:
            self._session.mark_changed(partition)
            taken = take(partition, data, now_ms=self._clock())
            if taken is FetchOutcome.ASK_FOR_START:
                taken = await self._ask_for_start(connection, partition)
            if taken is FetchOutcome.WAIT:
                self._wait(partition)
            else:
                self._backoffs.pop(partition, None)
                if partition in self._partitions:
                    self._lags[partition] = lag_after(partition, data)
                    if partition.log.durable_start < partition.log.log_start_offset:
                        self._untold_starts.add(partition)
                        self.on_log_start_moved()
        except LogClosed:
            self.remove(partition)
        except DiskFailed as error:
            self.remove(partition)
            self._on_disk_failed(partition, error)

    async def _ask_for_start(
        self, connection: AsyncConnection, partition: Partition
    ) -> FetchOutcome:
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
            return FetchOutcome.GO_ON
        if answer.error_code:
            return FetchOutcome.WAIT
        return take_start(partition, answer.offset, now_ms=self._clock())

    def _wait(self, partition: Partition) -> None:
        """Delay the next fetch: shortly at first, because the leader may not know yet that it leads, then longer and longer."""
        if partition not in self._partitions:
            return
        backoff_ms = self._backoffs.get(partition, _FIRST_BACKOFF_MS)
        self._backoffs[partition] = min(backoff_ms * 2, self._settings.backoff_ms)
        self._paused[partition] = self._clock() + min(backoff_ms, self._settings.backoff_ms)
        self._session.leave(partition)
