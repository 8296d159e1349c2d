"""Reads a range of one partition as the bytes of whole batches, blocking, from its leader or the replica that the leader names.

The next fetch is asked for before the last one is handed out, so that the broker works while its reader does. A lost leader is
looked for again until `give_up_after_s` passed without progress. Records are never opened here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from uuid import UUID

from headrace.client.cluster_metadata import NO_LEADER
from headrace.client.exchange import Disconnected, highest_common_version
from headrace.client.leaders import Leaders
from headrace.client.retries import passes_for_reader
from headrace.errors import HeadraceError
from headrace.ids import NO_TOPIC_ID
from headrace.records.batch_view import HEADER_BYTES, read_header
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from headrace.client.connection import Connection
    from headrace.ids import TopicPartition

TOPIC_GONE_AFTER_S = 5.0  # a topic may be unknown for a moment to a broker that just started
READ_UNCOMMITTED = 0
READ_COMMITTED = 1
_EARLIEST = -2


class FetchFailed(HeadraceError):
    """The range could not be read."""


class OffsetGone(FetchFailed):
    """The log does not hold the wanted offset."""

    def __init__(self, partition: TopicPartition, offset: int, log_start_offset: int) -> None:
        self.partition = partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        super().__init__(
            f"offset {offset} of {partition} is not in the log, which begins at {log_start_offset}"
        )


class TopicGone(FetchFailed):
    """The topic was deleted, or another one stands in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How a range is read."""

    isolation_level: int = READ_UNCOMMITTED
    partition_max_bytes: int = 8 * 1024 * 1024
    max_bytes: int = 64 * 1024 * 1024
    max_wait_ms: int = 500
    give_up_after_s: float = 120.0
    rack_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What one fetch brought: whole batches, perhaps a part of one more, and what must be left out of them."""

    records: bytes | memoryview
    aborted: Sequence[AbortedTransaction]
    log_start_offset: int
    high_watermark: int


class PartitionFetch:
    """One reader of one partition. `topic_id`, where given, must be the id of the topic that is read."""

    def __init__(
        self,
        leaders: Leaders,
        partition: TopicPartition,
        *,
        settings: FetchSettings,
        topic_id: UUID | None = None,
    ) -> None:
        self._leaders = leaders
        self._partition = partition
        self._settings = settings
        self._topic_id = topic_id
        self._under_way: Connection | None = None
        self._asks_replica = False  # not the leader, in the fetch under way or the last one
        self._time = leaders.time
        self._patience = self._time.patience(settings.give_up_after_s)
        self._unknown_since: float | None = None

    def chunks(self, start: int, end: int) -> Iterator[Fetched]:
        """Fetches that cover the offsets from `start` up to `end`. Raises FetchFailed."""
        offset = start
        self._progress()
        try:
            while offset < end:
                answer = self._fetch(offset)
                if answer is None:
                    continue
                records = answer.records or b""
                following = next_offset(records)
                if following is None:
                    self._check_deadline(f"no records came from offset {offset} on")
                    continue
                self._progress()
                offset = max(offset, following)
                if offset < end:
                    self._begin(offset)
                yield Fetched(
                    records=records,
                    aborted=answer.aborted_transactions or (),
                    log_start_offset=answer.log_start_offset,
                    high_watermark=answer.high_watermark,
                )
        finally:
            self._abandon()

    def _progress(self) -> None:
        self._patience = self._time.patience(self._settings.give_up_after_s)
        self._unknown_since = None

    def _check_deadline(self, what: str) -> None:
        if self._patience.is_over():
            waited = self._settings.give_up_after_s
            raise FetchFailed(f"{self._partition}: {what}, for {waited:g} s")

    def _abandon(self) -> None:
        """An answer that nobody waits for must not be taken for the next one."""
        if self._under_way is not None:
            self._leaders.brokers.drop(self._under_way)
            self._under_way = None

    def _begin(self, offset: int) -> bool:
        """Send the next fetch. Returns False if no replica could be reached."""
        replica = self._leaders.read_replicas.replica_for(self._partition, self._time.now_s())
        self._asks_replica = replica is not None
        try:
            broker = self._leaders.leader_of(self._partition) if replica is None else replica
            if broker == NO_LEADER:
                return False
            connection = self._leaders.brokers.to(broker)
        except Disconnected:
            return False
        try:
            request = self._request(offset)
            connection.begin(request, highest_common_version(request, connection.negotiate()))
        except Disconnected:
            self._leaders.brokers.drop(connection)
            return False
        self._under_way = connection
        return True

    def _request(self, offset: int) -> FetchRequest:
        settings = self._settings
        replicas, now_s = self._leaders.read_replicas, self._time.now_s()
        view = self._leaders.topic(self._partition.topic)
        known_id = view.topic_id if view is not None else NO_TOPIC_ID
        wanted = FetchPartition(
            partition=self._partition.partition,
            fetch_offset=offset,
            partition_max_bytes=settings.partition_max_bytes,
        )
        topic = FetchTopic(
            topic=self._partition.topic, topic_id=self._topic_id or known_id, partitions=[wanted]
        )
        return FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=1,
            max_bytes=settings.max_bytes,
            isolation_level=settings.isolation_level,
            topics=[topic],
            rack_id="" if replicas.must_leader_serve(self._partition, now_s) else settings.rack_id,
        )

    def _fetch(self, offset: int) -> PartitionData | None:
        """The answer to the fetch under way, or to a new one; None where it has to be tried again."""
        if self._under_way is None and not self._begin(offset):
            return self._look_again("no broker that can serve it can be reached")
        connection = self._under_way
        assert connection is not None
        self._under_way = None
        try:
            answer = cast(FetchResponse, connection.finish())
            if answer.error_code:
                return self._look_again(ErrorCode.of(answer.error_code).name)
            found = answer.responses[0].partitions[0]
            if not found.error_code:
                return self._followed(found)
            error = ErrorCode.of(found.error_code)
            if error == ErrorCode.OFFSET_OUT_OF_RANGE and not self._asks_replica:
                log_start_offset = self._log_start_offset(connection)
                if log_start_offset is not None:
                    raise OffsetGone(self._partition, offset, log_start_offset)
        except Disconnected:
            self._leaders.brokers.drop(connection)
            return self._look_again("the connection to its broker was lost")
        # OFFSET_OUT_OF_RANGE: told by a follower, or by a leader that moved before it said where the log begins.
        passes = error is ErrorCode.OFFSET_OUT_OF_RANGE or passes_for_reader(error)
        if not passes and not self._asks_replica:
            raise FetchFailed(f"{self._partition}: {error.name}: {error.message}")
        return self._look_again(error.name)

    def _followed(self, found: PartitionData) -> PartitionData | None:
        """The records of an answer; None where the leader only names the replica that has them."""
        replica = found.preferred_read_replica
        if replica < 0:
            return found
        if self._asks_replica:
            return self._look_again("the replica that its leader named sends on to another one")
        self._leaders.read_replicas.prefer(self._partition, replica, self._time.now_s())
        return found if found.records else None

    def _log_start_offset(self, connection: Connection) -> int | None:
        """Where the log begins: an answer that refuses an offset does not say it. None where the broker does not know."""
        partition = ListOffsetsPartition(
            partition_index=self._partition.partition, timestamp=_EARLIEST
        )
        topic = ListOffsetsTopic(name=self._partition.topic, partitions=[partition])
        answer = connection.send(ListOffsetsRequest(replica_id=-1, topics=[topic]))
        found = answer.topics[0].partitions[0]
        return None if found.error_code else found.offset

    def _look_again(self, what: str) -> PartitionData | None:
        """Find out anew who leads; there is no answer yet. Raises TopicGone where nobody will ever lead."""
        self._check_deadline(what)
        if self._asks_replica:
            self._leaders.read_replicas.refuse(self._partition, self._time.now_s())
        self._patience.pause()
        self._leaders.forget(self._partition.topic)
        with suppress(Disconnected):
            self._check_topic()
        return None

    def _check_topic(self) -> None:
        name = self._partition.topic
        view = self._leaders.topic(name)
        if view is not None and self._topic_id not in (None, view.topic_id, NO_TOPIC_ID):
            raise TopicGone(f"topic {name} was deleted and created anew: its id has changed")
        if view is not None and self._partition.partition in view.leaders:
            self._unknown_since = None
            return
        now = self._time.now_s()
        self._unknown_since = self._unknown_since or now
        if now - self._unknown_since > TOPIC_GONE_AFTER_S:
            raise TopicGone(f"{self._partition} does not exist any more")


def next_offset(records: bytes | memoryview) -> int | None:
    """The offset behind the last whole batch, or None where there is no whole batch."""
    following = None
    position, end = 0, len(records)
    while end - position >= HEADER_BYTES:
        header = read_header(records, position)
        position += max(header.size, HEADER_BYTES)
        if position > end:
            break
        following = header.next_offset
    return following
