"""Fetch (1), versions 4-18: record batches, as they are stored, from partitions.

v5 log start offset · v7 sessions (KIP-227) · v9 leader epoch · v11 rack · v12 flexible, diverging epoch · v13 topic ids ·
v15 replica state · v16 node endpoints · v17 directory id · v18 high watermark of the asker.
Waits until `min_bytes` are there or `max_wait_ms` are over; any error answers at once. Batches are never opened.
A consumer that tells its rack is sent to a replica there (KIP-392), if `replica.selector.class` says so.
Errors, per partition: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER,
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE; for all: FETCH_SESSION_ID_NOT_FOUND,
INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.fetching.fetch_readers import Reader, reader_of
from headrace.broker.fetching.fetch_sessions import FetchSession, FetchSessions, SessionPartitionKey
from headrace.broker.fetching.nearest_replica import LEADER_ITSELF, RACK_AWARE, NearestReplica
from headrace.broker.replicas.partition_lookup import missing
from headrace.broker.replicas.replica_throttle import ReplicaThrottle
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.telemetry.traffic import UNKNOWN_TOPIC, Traffic
from headrace.clock import Clock
from headrace.errors import DiskFailed
from headrace.replication.partition import Partition
from headrace.replication.partition_read import PartitionRead
from headrace.replication.partition_table import PartitionTable
from headrace.replication.waiting import ChangeWaiters
from headrace.settings.live_settings import LiveSettings
from headrace.wire.codec import Piece
from headrace.wire.error_code import ErrorCode
from headrace.wire.fetch_response_codec import (
    FetchDetails,
    FetchedPartition,
    FetchedTopic,
    encode_fetch_response,
)
from headrace.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    LeaderIdAndEpoch,
)
from headrace.wire.refusal import Refusal

_READ_COMMITTED: Final = 1
_FIRST_WITH_STORAGE_ERROR: Final = 6
_FIRST_WITH_RACK: Final = 11
_FIRST_WITH_IDS: Final = 13


def handle(
    request: FetchRequest,
    context: RequestContext,
    *,
    partitions: PartitionTable,
    cluster: ClusterView,
    sessions: FetchSessions,
    live_settings: LiveSettings,
    leader_throttle: ReplicaThrottle,
    traffic: Traffic,
    clock: Clock,
    fetch_max_bytes: int,
) -> list[Piece] | Coroutine[Any, Any, list[Piece]]:
    version = context.version
    session = sessions.resolve(request, uses_ids=version >= _FIRST_WITH_IDS, now_ms=clock())
    if isinstance(session, ErrorCode):
        return encode_fetch_response(version, [], error_code=session)
    reader = reader_of(request, version, clock, leader_throttle)
    fetch = _Fetch(
        request,
        version,
        session,
        partitions,
        cluster,
        reader,
        min(fetch_max_bytes, request.max_bytes),
    )
    if request.rack_id and live_settings.current.replica_selector_class == RACK_AWARE:
        fetch.nearest = NearestReplica(cluster, request.rack_id, context.connection.listener_name)
    fetch.read_all()
    if fetch.is_satisfied or request.max_wait_ms <= 0 or not fetch.wants_anything:
        return fetch.answer(traffic)
    waiters = fetch.waiters
    return _wait(fetch, waiters, _change_count(waiters), request.max_wait_ms, traffic)


async def _wait(
    fetch: "_Fetch",
    waiters: dict[int, ChangeWaiters],
    changes_seen: int,
    max_wait_ms: int,
    traffic: Traffic,
) -> list[Piece]:
    """Look again at partitions that grow, until there is enough or the time is up."""
    woken = asyncio.Event()
    grown: set[int] = set()

    def note(place: int) -> None:
        grown.add(place)
        woken.set()

    notes = [(each, partial(note, place)) for place, each in waiters.items()]
    for each, waiter in notes:
        each.add(waiter)
    fetch.wake_by(woken.set)
    if _change_count(waiters) != changes_seen:
        fetch.read_all()  # something came before anybody was told to wake us
    fetch.read_woken()
    try:
        async with asyncio.timeout(max_wait_ms / 1000):
            while not fetch.is_satisfied:
                await woken.wait()
                woken.clear()
                fetch.read_again(grown)
                grown.clear()
                fetch.read_woken()
    except TimeoutError:
        fetch.read_all()
    finally:
        fetch.wake_by(None)
        for each, waiter in notes:
            each.remove(waiter)
    fetch.refresh()
    return fetch.answer(traffic)


def _change_count(waiters: dict[int, ChangeWaiters]) -> int:
    return sum(each.times for each in waiters.values())


class _Fetch:
    """One request: what it wants, what was found the last time it looked."""

    __slots__ = (
        "_answers",
        "_bytes",
        "_cluster",
        "_is_urgent",
        "_max_bytes",
        "_min_bytes",
        "_partitions",
        "_session",
        "_version",
        "nearest",
        "reader",
        "wanted",
    )

    def __init__(
        self,
        request: FetchRequest,
        version: int,
        session: FetchSession | None,
        partitions: PartitionTable,
        cluster: ClusterView,
        reader: Reader,
        max_bytes: int,
    ) -> None:
        self._version = version
        self._session = session
        self._partitions = partitions
        self._cluster = cluster
        self._max_bytes = max_bytes
        self._min_bytes = request.min_bytes
        self.reader = reader
        self.nearest: NearestReplica | None = None  # for a consumer that may be sent elsewhere
        self.wanted: list[tuple[SessionPartitionKey, FetchPartition]] = (
            reader.wanted(session)
            if session is not None
            else [
                (((topic.topic, topic.topic_id), ask.partition), ask)
                for topic in request.topics
                for ask in topic.partitions
            ]
        )
        self._answers: list[tuple[SessionPartitionKey, str, FetchedPartition]] = []
        self._bytes = 0
        self._is_urgent = False

    @property
    def is_satisfied(self) -> bool:
        """Whether the answer need not wait."""
        return self._bytes >= self._min_bytes or self._is_urgent

    @property
    def wants_anything(self) -> bool:
        """Whether there is anything to wait for."""
        return bool(self.wanted if self._session is None else self._session.partitions)

    def wake_by(self, wake: Callable[[], None] | None) -> None:
        """What to call when a partition of the session gets records that this fetch did not read, because it was inactive."""
        if self._session is not None:
            self._session.on_append = wake

    def read_woken(self) -> None:
        """Read the partitions that became active after this fetch began to wait."""
        session = self._session
        # While a follower's fetch waits, partitions become active and none becomes inactive: equal numbers mean no new ones.
        if session is None or not session.is_follower or len(session.active) == len(self.wanted):
            return
        known = {key for key, _ in self.wanted}
        for key in [key for key in session.active if key not in known]:
            self.wanted.append((key, session.partitions[key].ask))
            self._answers.append(self._look_at(*self.wanted[-1]))

    @property
    def waiters(self) -> dict[int, ChangeWaiters]:
        """Where to wait for the wanted partitions that are here, by their place among the wanted."""
        found = (self._partitions.get(self._name(key), ask.partition) for key, ask in self.wanted)
        return {
            place: self.reader.waiters(partition)
            for place, partition in enumerate(found)
            if partition is not None
        }

    def read_all(self) -> None:
        """Look at every wanted partition, from scratch."""
        self._answers.clear()
        self._bytes = 0
        self._is_urgent = False
        for key, ask in self.wanted:
            self._answers.append(self._look_at(key, ask))

    def read_again(self, places: set[int]) -> None:
        """Look at some of them again, by their place among the wanted."""
        for place in sorted(places):
            self._bytes -= len(self._answers[place][2].records)
            self._answers[place] = self._look_at(*self.wanted[place])

    def _look_at(
        self, key: SessionPartitionKey, ask: FetchPartition
    ) -> tuple[SessionPartitionKey, str, FetchedPartition]:
        name = self._name(key)
        answer = self._read(name, key, ask)
        self._bytes += len(answer.records)
        if (
            answer.error_code
            or answer.details is not None
            or answer.preferred_read_replica != LEADER_ITSELF
            or self._tells_of_deleted_records(key, answer)
        ):
            self._is_urgent = True
        return key, name, answer

    def _tells_of_deleted_records(self, key: SessionPartitionKey, answer: FetchedPartition) -> bool:
        """Whether a follower has to delete records that it was not told of yet: DeleteRecords waits for that."""
        session = self._session
        wanted = (
            session.partitions.get(key) if session is not None and session.is_follower else None
        )
        return wanted is not None and -1 < wanted.log_start_offset < answer.log_start_offset

    def refresh(self) -> None:
        """Bring up to date what is told beside records: it moves also where nothing was read again."""
        for _, name, answer in self._answers:
            partition = self._partitions.get(name, answer.partition_index)
            if partition is not None and not answer.error_code:
                answer.high_watermark = partition.high_watermark
                answer.last_stable_offset = partition.last_stable_offset
                answer.log_start_offset = partition.log.log_start_offset

    def _name(self, key: SessionPartitionKey) -> str:
        (name, topic_id), _ = key
        if self._version < _FIRST_WITH_IDS:
            return name
        known = self._partitions.topic_name(topic_id)
        if known is None:
            topic = self._cluster.state.topics_by_id.get(topic_id)
            return "" if topic is None else topic.name
        return known

    def _read(self, topic: str, key: SessionPartitionKey, ask: FetchPartition) -> FetchedPartition:
        partition = self._partitions.get(topic, ask.partition)
        if partition is None:
            return self._missing(topic, ask.partition)
        if self.nearest is not None and partition.fence(ask.current_leader_epoch) is None:
            replica = self.nearest.choose(partition, ask.fetch_offset)
            if replica != LEADER_ITSELF:
                return _elsewhere(ask.partition, partition, replica)
        left = self._max_bytes - self._bytes
        found = self.reader.read(
            partition, ask, min(ask.partition_max_bytes, left), at_least_one=self._bytes == 0
        )
        if isinstance(found, Refusal):
            return self._refused(topic, ask.partition, found.error_code)
        try:
            records = self.reader.content(found.records) if found.records.length else b""
        except DiskFailed as error:
            refused = partition.refuse_for_disk(error)
            return self._refused(topic, ask.partition, refused.error_code)
        return _fetched(ask.partition, found, records)

    def _missing(self, topic: str, index: int) -> FetchedPartition:
        if not topic and self._version >= _FIRST_WITH_IDS:
            return FetchedPartition(index, ErrorCode.UNKNOWN_TOPIC_ID, aborted_transactions=())
        answer = self._refused(topic, index, missing(self._cluster, topic, index).error_code)
        if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            answer.aborted_transactions = ()  # none, where other errors say nothing: as Kafka has it
        return answer

    def _refused(self, topic: str, index: int, error_code: ErrorCode) -> FetchedPartition:
        if (
            error_code == ErrorCode.KAFKA_STORAGE_ERROR
            and self._version < _FIRST_WITH_STORAGE_ERROR
        ):
            error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # what a client of that age tries again
        answer = FetchedPartition(index, error_code)
        if error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            known = self._cluster.state.partition(topic, index)
            if known is not None:
                leader = LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.leader_epoch)
                answer.details = FetchDetails(current_leader=leader)
        return answer

    def _note_told(self, session: FetchSession) -> None:
        for key, name, answer in self._answers:
            if key in session.partitions and not (
                answer.error_code or answer.records or answer.details
            ):
                partition = self._partitions.get(name, answer.partition_index)
                if partition is not None:
                    self.reader.told(session, key, partition)

    def answer(self, traffic: Traffic) -> list[Piece]:
        """The response, with the partitions that have news for a session, or all of them."""
        session = self._session
        answers = self._answers
        if session is not None:
            is_first = session.epoch == 1
            answers = [
                entry
                for entry in answers
                if entry[0] in session.partitions
                and (session.partitions[entry[0]].has_news(entry[2]) or is_first)
            ]
            session.put_last([key for key, _, answer in answers if len(answer.records)])
            if session.is_follower:
                self._note_told(session)
        topics: dict[tuple[str, Any], list[FetchedPartition]] = {}
        for (topic_key, _), name, answer in answers:
            topics.setdefault(topic_key, []).append(answer)
            is_here = self._partitions.of_topic(name) is not None
            counters = traffic.of(name if is_here else UNKNOWN_TOPIC)
            counters.fetch_requests += 1
            size = len(answer.records)
            counters.bytes_out += self.reader.sent(name, answer.partition_index, size)
            if answer.error_code:
                counters.failed_fetch_requests += 1
        return encode_fetch_response(
            self._version,
            [FetchedTopic(name, topic_id, found) for (name, topic_id), found in topics.items()],
            session_id=0 if session is None else session.session_id,
        )


def _elsewhere(index: int, partition: Partition, replica: int) -> FetchedPartition:
    """No records, but whom to ask for them."""
    return FetchedPartition(
        index,
        0,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log.log_start_offset,
        preferred_read_replica=replica,
    )


def _fetched(index: int, found: PartitionRead, records: bytes | memoryview) -> FetchedPartition:
    answer = FetchedPartition(
        index,
        0,
        found.high_watermark,
        found.last_stable_offset,
        found.log_start_offset,
        records,
    )
    if found.aborted is not None:
        answer.aborted_transactions = [
            AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset)
            for txn in found.aborted
        ]
    if found.diverging is not None:
        diverging = EpochEndOffset(
            epoch=found.diverging.epoch, end_offset=found.diverging.end_offset
        )
        answer.details = FetchDetails(diverging_epoch=diverging)
    return answer
