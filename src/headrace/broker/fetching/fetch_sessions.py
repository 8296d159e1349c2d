"""Incremental fetch sessions (KIP-227): remember the partitions of a consumer or follower, so that only changes are sent (pure).

(id, epoch) of a request: (0, -1) no session; (x, 0) forget x and begin a new one; (x, -1) forget x; (x, n > 0) go on with x.
The epoch counts up with each request and wraps to 1. Answers of a session carry only partitions with news.
Of a follower's partitions only the `active` ones are read: the others have an `IdleFollower` and become active when they change.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias
from uuid import UUID

from headrace.replication.idle_follower import IdleFollower, idle_follower
from headrace.replication.partition import Partition
from headrace.wire.error_code import ErrorCode
from headrace.wire.fetch_response_codec import FetchedPartition
from headrace.wire.messages.fetch import FetchPartition, FetchRequest

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_MAX_EPOCH: Final = 2**31 - 1
_EVICT_AFTER_MS: Final = 120_000
MAX_CONSUMER_PARTITIONS: Final = (
    200_000  # in all sessions of consumers; a fetch that would exceed it gets no session
)
_CHECK_IDLE_MS: Final = (
    1_000  # how often idle partitions are checked for changes that notify nobody
)

TopicKey: TypeAlias = tuple[str, UUID]
SessionPartitionKey: TypeAlias = tuple[TopicKey, int]


@dataclass(slots=True)
class SessionPartition:
    """A partition of a session: the last request and the last answer."""

    ask: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1
    error_code: int = 0
    idle: IdleFollower | None = None

    def has_news(self, answer: FetchedPartition) -> bool:
        """Whether the answer differs from the last one and must be sent. Remembers it as sent."""
        is_news = (
            len(answer.records) > 0
            or answer.error_code != 0
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or answer.preferred_read_replica != -1
            or (answer.details is not None and answer.details.diverging_epoch is not None)
        )
        # The answer after an error is always sent.
        self.high_watermark = -1 if answer.error_code else answer.high_watermark
        self.log_start_offset = -1 if answer.error_code else answer.log_start_offset
        self.error_code = answer.error_code
        return is_news


@dataclass(slots=True)
class FetchSession:
    """The partitions that one consumer or follower fetches."""

    session_id: int
    uses_ids: bool
    is_follower: bool = False
    epoch: int = INITIAL_EPOCH
    last_used_ms: int = 0
    partitions: dict[SessionPartitionKey, SessionPartition] = field(default_factory=dict)
    active: dict[SessionPartitionKey, None] = field(default_factory=dict)  # those that are not idle
    broker_epoch: int = -1  # of a follower
    idle_checked_ms: int = 0
    on_append: Callable[[], None] | None = None  # called when an idle partition is appended to

    def update(self, request: FetchRequest) -> None:
        """Add, change and forget partitions as the request says."""
        for topic in request.topics:
            for ask in topic.partitions:
                key = ((topic.topic, topic.topic_id), ask.partition)
                known = self.partitions.get(key)
                if known is None:
                    self.partitions[key] = SessionPartition(ask)
                else:
                    known.ask = ask
                self._wake(key)
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                key = ((forgotten.topic, forgotten.topic_id), index)
                self._wake(key)
                self.partitions.pop(key, None)
                self.active.pop(key, None)

    # ---- idle partitions

    def mark_idle(self, key: SessionPartitionKey, partition: Partition, replica: int) -> None:
        """Skip a partition until it changes, if its follower has all of it and was told so."""
        known = self.partitions[key]
        if known.idle is None:
            known.idle = idle_follower(
                partition,
                replica,
                known.ask.fetch_offset,
                told=(known.high_watermark, known.log_start_offset),
                fetched_ms=self._last_used_ms,
                on_high_watermark=partial(self._became_active, key),
                on_append=partial(self._appended, key),
            )
            if known.idle is not None:
                del self.active[key]

    def wake_expired(self, broker_epoch: int, now_ms: int) -> None:
        """Wake the idle partitions that are no longer valid; all of them if the follower has another broker epoch."""
        if self.broker_epoch == broker_epoch:
            if 0 <= now_ms - self.idle_checked_ms < _CHECK_IDLE_MS:
                return
        else:
            self.broker_epoch = broker_epoch
            self.close()
        self.idle_checked_ms = now_ms
        for key, known in self.partitions.items():
            if known.idle is not None and not known.idle.is_valid():
                self._wake(key)

    def close(self) -> None:
        """End every subscription."""
        for key in self.partitions:
            self._wake(key)

    def _wake(self, key: SessionPartitionKey) -> None:
        known = self.partitions.get(key)
        if known is not None:
            if known.idle is not None:
                known.idle.end()
                known.idle = None
            self.active[key] = None

    def _became_active(self, key: SessionPartitionKey) -> None:
        self.partitions[key].idle = None
        self.active[key] = None

    def _appended(self, key: SessionPartitionKey) -> None:
        self._became_active(key)
        if self.on_append is not None:
            self.on_append()

    def _last_used_ms(self) -> int:
        return self.last_used_ms

    def put_last(self, keys: list[SessionPartitionKey]) -> None:
        """Move partitions whose records were sent behind the others, so that the next fetch begins with others."""
        for key in keys:
            self.partitions[key] = self.partitions.pop(key)


class FetchSessions:
    """The sessions of this broker, a bounded number of them."""

    def __init__(self, max_sessions: int, new_id: Callable[[], int]) -> None:
        """`new_id` makes positive numbers by chance: a client that knew an earlier run of this broker closes a session
        by a number of that run, which must not be another client's."""
        self._max_sessions = max_sessions
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(
        self, request: FetchRequest, *, uses_ids: bool, now_ms: int
    ) -> FetchSession | ErrorCode | None:
        """The session a request belongs to, None if it is complete in itself, or an error for the whole request."""
        session_id, epoch = request.session_id, request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._drop(session_id)
            if epoch == FINAL_EPOCH:
                return None
            return self._begin(request, uses_ids=uses_ids, now_ms=now_ms)
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_ids != uses_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        before = len(session.partitions)
        session.update(request)
        if (
            len(session.partitions) > before
            and not session.is_follower
            and self._consumer_partitions > MAX_CONSUMER_PARTITIONS
        ):
            self._drop(session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.epoch = 1 if epoch == _MAX_EPOCH else epoch + 1
        session.last_used_ms = now_ms
        if not session.partitions:
            self._drop(session_id)
        return session

    @property
    def _consumer_partitions(self) -> int:
        """Number of partitions in all sessions of consumers."""
        return sum(
            len(session.partitions)
            for session in self._sessions.values()
            if not session.is_follower
        )

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _begin(self, request: FetchRequest, *, uses_ids: bool, now_ms: int) -> FetchSession | None:
        is_follower = replica_id_of(request) >= 0
        if not any(topic.partitions for topic in request.topics):
            return None
        if not self._make_room(now_ms, for_follower=is_follower):
            return None
        count = sum(len(topic.partitions) for topic in request.topics)
        if not is_follower and self._consumer_partitions + count > MAX_CONSUMER_PARTITIONS:
            return None
        session_id = self._new_id()
        while session_id in self._sessions:
            session_id = self._new_id()
        session = FetchSession(session_id, uses_ids, is_follower, last_used_ms=now_ms)
        session.update(request)
        session.epoch = 1
        self._sessions[session.session_id] = session
        return session

    def _make_room(self, now_ms: int, *, for_follower: bool) -> bool:
        """Whether there is room for one more session. Evicts a session that was not used for long, or for a follower the oldest of a consumer."""
        if len(self._sessions) < self._max_sessions:
            return True
        by_age = sorted(self._sessions.values(), key=lambda session: session.last_used_ms)
        for session in by_age:
            is_old = now_ms - session.last_used_ms >= _EVICT_AFTER_MS
            if is_old or (for_follower and not session.is_follower):
                self._drop(session.session_id)
                self.evictions += 1
                return True
        return False


def replica_id_of(request: FetchRequest) -> int:
    """The broker id of the follower that fetches; negative for a consumer."""
    state = request.replica_state
    return request.replica_id if state is None else state.replica_id
