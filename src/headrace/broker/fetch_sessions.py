"""Incremental fetch sessions (KIP-227): what a consumer wants, remembered, so that it need only send changes (pure).

(id, epoch) of a request: (0, -1) no session; (x, 0) forget x and begin a new one; (x, -1) forget x; (x, n > 0) go on with x.
The epoch counts up with each request and wraps to 1. Answers of a session carry only partitions with news.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from headrace.wire.error_code import ErrorCode
from headrace.wire.fetch_response_codec import FetchedPartition
from headrace.wire.messages.fetch import FetchPartition, FetchRequest

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_MAX_EPOCH: Final = 2**31 - 1
_EVICT_AFTER_MS: Final = 120_000

TopicKey: TypeAlias = tuple[str, UUID]
WantedKey: TypeAlias = tuple[TopicKey, int]


@dataclass(slots=True)
class Wanted:
    """A partition of a session: what was asked, and what was last answered."""

    ask: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1
    error_code: int = 0

    def has_news(self, answer: FetchedPartition) -> bool:
        """Whether an answer must be sent; remembers it as sent."""
        is_news = (
            len(answer.records) > 0
            or answer.error_code != 0
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or answer.preferred_read_replica != -1
            or (answer.details is not None and answer.details.diverging_epoch is not None)
        )
        # After an error everything counts as news again.
        self.high_watermark = -1 if answer.error_code else answer.high_watermark
        self.log_start_offset = -1 if answer.error_code else answer.log_start_offset
        self.error_code = answer.error_code
        return is_news


@dataclass(slots=True)
class FetchSession:
    """What one consumer wants."""

    session_id: int
    uses_ids: bool
    epoch: int = INITIAL_EPOCH
    last_used_ms: int = 0
    wanted: dict[WantedKey, Wanted] = field(default_factory=dict)

    def update(self, request: FetchRequest) -> None:
        """Take in what a request adds, changes and forgets."""
        for topic in request.topics:
            for ask in topic.partitions:
                key = ((topic.topic, topic.topic_id), ask.partition)
                known = self.wanted.get(key)
                if known is None:
                    self.wanted[key] = Wanted(ask)
                else:
                    known.ask = ask
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                self.wanted.pop(((forgotten.topic, forgotten.topic_id), index), None)

    def put_last(self, keys: list[WantedKey]) -> None:
        """Those that were given records wait behind the others next time."""
        for key in keys:
            self.wanted[key] = self.wanted.pop(key)


class FetchSessions:
    """The sessions of this broker, a bounded number of them."""

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max_sessions
        self._sessions: dict[int, FetchSession] = {}
        self._next_id = 1
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
                self._sessions.pop(session_id, None)
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
        session.update(request)
        session.epoch = 1 if epoch == _MAX_EPOCH else epoch + 1
        session.last_used_ms = now_ms
        if not session.wanted:
            del self._sessions[session_id]
        return session

    def _begin(self, request: FetchRequest, *, uses_ids: bool, now_ms: int) -> FetchSession | None:
        if not any(topic.partitions for topic in request.topics) or not self._make_room(now_ms):
            return None
        session = FetchSession(self._next_id, uses_ids, last_used_ms=now_ms)
        self._next_id = 1 if self._next_id == _MAX_EPOCH else self._next_id + 1
        session.update(request)
        session.epoch = 1
        self._sessions[session.session_id] = session
        return session

    def _make_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self._max_sessions:
            return True
        oldest = min(
            self._sessions.values(), key=lambda session: session.last_used_ms, default=None
        )
        if oldest is None or now_ms - oldest.last_used_ms < _EVICT_AFTER_MS:
            return False
        del self._sessions[oldest.session_id]
        self.evictions += 1
        return True
