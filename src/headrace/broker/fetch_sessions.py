"""Incremental fetch sessions (KIP-227): what a consumer or follower wants, remembered, so that only changes are sent (pure).

(id, epoch) of a request: (0, -1) no session; (x, 0) forget x and begin a new one; (x, -1) forget x; (x, n > 0) go on with x.
The epoch counts up with each request and wraps to 1. Answers of a session carry only partitions with news.
Of what a follower wants only what is `restless` is looked at: the others are `Standing`, and become restless when they stir.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias
from uuid import UUID

from headrace.replication.partition import Partition
from headrace.replication.standing import Standing, standing
from headrace.wire.error_code import ErrorCode
from headrace.wire.fetch_response_codec import FetchedPartition
from headrace.wire.messages.fetch import FetchPartition, FetchRequest

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_MAX_EPOCH: Final = 2**31 - 1
_EVICT_AFTER_MS: Final = 120_000
MAX_CONSUMER_PARTITIONS: Final = (
    200_000  # in all sessions of consumers; who asks for more is answered without a session
)
_LOOK_AROUND_MS: Final = 1_000  # how often those that stand still are checked for what nobody tells

TopicKey: TypeAlias = tuple[str, UUID]
WantedKey: TypeAlias = tuple[TopicKey, int]


@dataclass(slots=True)
class Wanted:
    """A partition of a session: what was asked, and what was last answered."""

    ask: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1
    error_code: int = 0
    standing: Standing | None = None

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
    """What one consumer or follower wants."""

    session_id: int
    uses_ids: bool
    is_follower: bool = False
    epoch: int = INITIAL_EPOCH
    last_used_ms: int = 0
    wanted: dict[WantedKey, Wanted] = field(default_factory=dict)
    restless: dict[WantedKey, None] = field(default_factory=dict)  # those that do not stand still
    broker_epoch: int = -1  # of a follower
    looked_around_ms: int = 0
    on_growth: Callable[[], None] | None = None  # of one that stood still

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
                self._stir(key)
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                key = ((forgotten.topic, forgotten.topic_id), index)
                self._stir(key)
                self.wanted.pop(key, None)
                self.restless.pop(key, None)

    # ---- those that stand still

    def stand(self, key: WantedKey, partition: Partition, replica: int) -> None:
        """Do not look at a partition again before it stirs, if its follower has all of it and knows it."""
        wanted = self.wanted[key]
        if wanted.standing is None:
            wanted.standing = standing(
                partition,
                replica,
                wanted.ask.fetch_offset,
                told=(wanted.high_watermark, wanted.log_start_offset),
                fetched_ms=self._last_used_ms,
                on_move=partial(self._moved, key),
                on_growth=partial(self._grew, key),
            )
            if wanted.standing is not None:
                del self.restless[key]

    def look_around(self, broker_epoch: int, now_ms: int) -> None:
        """Stir those that no longer stand rightly; all of them if the follower is another incarnation."""
        if self.broker_epoch == broker_epoch:
            if 0 <= now_ms - self.looked_around_ms < _LOOK_AROUND_MS:
                return
        else:
            self.broker_epoch = broker_epoch
            self.close()
        self.looked_around_ms = now_ms
        for key, wanted in self.wanted.items():
            if wanted.standing is not None and not wanted.standing.is_still_right():
                self._stir(key)

    def close(self) -> None:
        """Nobody hears of what stirs any longer."""
        for key in self.wanted:
            self._stir(key)

    def _stir(self, key: WantedKey) -> None:
        wanted = self.wanted.get(key)
        if wanted is not None:
            if wanted.standing is not None:
                wanted.standing.end()
                wanted.standing = None
            self.restless[key] = None

    def _moved(self, key: WantedKey) -> None:
        self.wanted[key].standing = None
        self.restless[key] = None

    def _grew(self, key: WantedKey) -> None:
        self._moved(key)
        if self.on_growth is not None:
            self.on_growth()

    def _last_used_ms(self) -> int:
        return self.last_used_ms

    def put_last(self, keys: list[WantedKey]) -> None:
        """Those that were given records wait behind the others next time."""
        for key in keys:
            self.wanted[key] = self.wanted.pop(key)


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
        before = len(session.wanted)
        session.update(request)
        if (
            len(session.wanted) > before
            and not session.is_follower
            and self._consumer_partitions > MAX_CONSUMER_PARTITIONS
        ):
            self._drop(session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.epoch = 1 if epoch == _MAX_EPOCH else epoch + 1
        session.last_used_ms = now_ms
        if not session.wanted:
            self._drop(session_id)
        return session

    @property
    def _consumer_partitions(self) -> int:
        """Of all sessions of consumers. Few enough sessions to count: no request pays for them but those that add some."""
        return sum(
            len(session.wanted) for session in self._sessions.values() if not session.is_follower
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
        """Whether there is room, if need be for an old session that goes; for a follower, for a consumer's that goes."""
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
    """The follower that asks; negative for a consumer."""
    state = request.replica_state
    return request.replica_id if state is None else state.replica_id
