"""Rim: one coordinator core on one partition of an internal topic.

A `Shard` loads its machine by replay, runs one event at a time, appends what the machine decides,
replays it, and holds every reply and every effect until all that was appended before it is committed (so neither
shows, or rests on, what a failover could undo). It owns the futures behind tokens, the loop's timer and the effects that are
under way. After loading, it starts the effects that the machine says are owed.

Everything but loading and waiting is synchronous: between `handle` and the last `replay` there is no
await, which is what makes "one event at a time" true without a lock.

If a machine breaks one of its own rules, the shard drops it and loads again from the log: hard state is
only what the log says, so nothing is lost but the requests under way. A log that cannot be read costs this
shard only: it fails, and answers COORDINATOR_NOT_AVAILABLE until the partition gets another leader epoch.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple

from headrace.coordinator.contract import (
    EffectDone,
    Loaded,
    LogEntry,
    MarkerEntry,
    Outcome,
    Reply,
    SetTimer,
    ShardLog,
    TimerFired,
    Token,
    TxnEntry,
)
from headrace.coordinator.coordinator_type import (
    CoordinatorHost,
    CoordinatorType,
    EventT,
    RecordT,
    ShardId,
    Task,
)
from headrace.coordinator.effects import ShardEffects
from headrace.coordinator.timers import Deadlines
from headrace.errors import HeadraceError
from headrace.records.control_batch import TxnMarker
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused

log = logging.getLogger(__name__)

# Tombstones of an expiry run may be many; one batch holds no more than this.
_RECORDS_PER_BATCH = 1_000

# How a log's refusal looks to a client of the coordinator.
_SEEN_BY_CLIENTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Phase(Enum):
    """Whether a shard answers."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


_REFUSED_WHILE = {
    Phase.LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    # Kafka says NOT_COORDINATOR, with which a client would report that it asked the wrong broker.
    Phase.FAILED: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    Phase.CLOSED: ErrorCode.NOT_COORDINATOR,
}


@dataclass(slots=True)
class _Waiting(Generic[EventT]):
    event: EventT
    answer: "asyncio.Future[object]"


class _Held(NamedTuple):
    """Replies that may leave once the offset is committed."""

    next_offset: int
    deadline_s: float
    replies: Sequence[Reply]


class Shard(Generic[EventT, RecordT]):
    """One machine, one log, one owner."""

    def __init__(
        self,
        shard_id: ShardId,
        shard_log: ShardLog,
        coordinator: CoordinatorType[EventT, RecordT],
        host: CoordinatorHost,
    ) -> None:
        self.id = shard_id
        self.phase = Phase.LOADING
        self.failure = ""  # why it is FAILED
        self.machine = coordinator.make_machine()
        self._log = shard_log
        self._coordinator = coordinator
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Token, _Waiting[EventT]] = {}
        self._last_token = 0
        self._next_offset = 0
        self._held: deque[_Held] = deque()
        self._deadlines = Deadlines()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0  # when it rings; uvloop's handle does not say once the moment has passed
        self._left_loading = asyncio.Event()
        self.effects = ShardEffects(
            shard_id,
            shard_log,
            run=coordinator.run_effect,
            tell=self._effect_done,
            on_lost=self.close,
            spawn=host.spawn,
        )
        self._tasks: dict[str, Task] = {"load": host.spawn(self._load())}

    # -- requests --------------------------------------------------------------------------------

    def ask(self, event_for: Callable[[Token], EventT]) -> "asyncio.Future[object]":
        """Put an event to the machine. The future is done at once if nothing must be waited for."""
        self._last_token += 1
        token = Token(self._last_token)
        event = event_for(token)
        answer = self._loop.create_future()
        if self.phase is not Phase.ACTIVE:
            answer.set_result(self._coordinator.refuse(event, _REFUSED_WHILE[self.phase]))
            return answer
        self._waiting[token] = _Waiting(event, answer)
        self._run(event)
        return answer

    async def loaded(self) -> None:
        """Wait until the shard answers, or is closed."""
        while self.phase is Phase.LOADING:
            await self._left_loading.wait()

    def close(self) -> None:
        """Leadership is gone: everyone who waits is sent to look for the new coordinator."""
        if self.phase is not Phase.CLOSED:
            self.phase = Phase.CLOSED
            self._left_loading.set()
            self._drop_machine(ErrorCode.NOT_COORDINATOR)

    # -- one event -------------------------------------------------------------------------------

    def _run(self, event: EventT | TimerFired | EffectDone | Loaded) -> bool:
        """Have the machine decide, and do what it decided. False if the log refused the records."""
        now_ms = self._host.wall_clock_ms()
        try:
            outcome = self.machine.handle(event, now_ms)
            refusal = self._store(outcome, now_ms)
            owed = outcome.effects if refusal is None else ()
            if isinstance(event, Loaded):
                owed = tuple(self.machine.owed_effects())
        except Exception as error:
            log.exception("shard %s broke a rule of its own on %r", self.id, event)
            if isinstance(event, Loaded):
                # What the log says leads straight back here; trying again would only burn time.
                self._fail(error)
            else:
                self._reload()
            return True
        if refusal is not None:
            self._refuse(outcome.replies, refusal)
        else:
            self._release(outcome.replies)
        if owed:
            self.effects.release(owed, self._next_offset)
        self._set_timers(outcome)
        return refusal is None

    def _effect_done(self, event: EffectDone) -> bool:
        return self.phase is not Phase.ACTIVE or self._run(event)

    def _store(self, outcome: Outcome[RecordT], now_ms: int) -> ErrorCode | None:
        """Append and replay. A refusal by the log leaves the hard state as it was."""
        assert outcome.atomic or not outcome.effects, (
            "half of the records cannot call for an effect"
        )
        for records in _batches(outcome):
            try:
                stored = [self._coordinator.encode(record) for record in records]
                self._next_offset = self._log.append(stored, now_ms, outcome.writer)
            except Refused as refused:
                log.warning("shard %s: %d records refused: %s", self.id, len(records), refused)
                return refused.error_code
            for record in records:
                self._replay(record, outcome.writer and outcome.writer.producer_id)
        return None if outcome.marker is None else self._end_transaction(outcome.marker, now_ms)

    def _end_transaction(self, marker: TxnMarker, now_ms: int) -> ErrorCode | None:
        try:
            self._next_offset = self._log.append_marker(marker, now_ms)
        except Refused as refused:
            log.warning("shard %s: %r refused: %s", self.id, marker, refused)
            return refused.error_code
        self._replay_marker(marker)
        return None

    def _replay(self, record: RecordT, producer_id: int | None) -> None:
        in_transaction = self._coordinator.in_transaction
        if producer_id is not None and in_transaction is not None:
            record = in_transaction(record, producer_id)
        self.machine.replay(record)

    def _replay_marker(self, marker: TxnMarker) -> None:
        marker_record = self._coordinator.marker_record
        if marker_record is not None:
            self.machine.replay(marker_record(marker))

    def _set_timers(self, outcome: Outcome[RecordT]) -> None:
        if not outcome.timers:
            return
        now_ms = self._monotonic_ms()
        for timer in outcome.timers:
            if isinstance(timer, SetTimer):
                self._deadlines.set(timer.key, now_ms + timer.after_ms)
            else:
                self._deadlines.cancel(timer.key)
        self._arm_timer()

    # -- replies ---------------------------------------------------------------------------------

    def _release(self, replies: Sequence[Reply]) -> None:
        if not replies:
            return
        if not self._held and self._log.high_watermark >= self._next_offset:
            for reply in replies:
                self._answer(reply.token, reply.response)
            return
        deadline_s = self._loop.time() + self._coordinator.commit_timeout_ms / 1_000
        self._held.append(_Held(self._next_offset, deadline_s, replies))
        if "commit" not in self._tasks:
            self._tasks["commit"] = self._host.spawn(self._release_when_committed())

    async def _release_when_committed(self) -> None:
        while self._held:
            held = self._held[0]
            try:
                async with asyncio.timeout_at(held.deadline_s):
                    await self._log.wait_committed(held.next_offset)
            except TimeoutError:
                self._held.popleft()
                self._refuse(held.replies, ErrorCode.REQUEST_TIMED_OUT)
            except Refused as refused:
                log.warning("shard %s: not committed: %s; closing", self.id, refused)
                del self._tasks["commit"]
                self.close()
                return
            else:
                self._held.popleft()
                for reply in held.replies:
                    self._answer(reply.token, reply.response)
        del self._tasks["commit"]

    def _refuse(self, replies: Iterable[Reply], error: ErrorCode) -> None:
        seen = _SEEN_BY_CLIENTS.get(error, error)
        for reply in replies:
            waiting = self._waiting.get(reply.token)
            if waiting is not None:
                self._answer(reply.token, self._coordinator.refuse(waiting.event, seen))

    def _answer(self, token: Token, response: object) -> None:
        waiting = self._waiting.pop(token, None)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(response)

    # -- timers ----------------------------------------------------------------------------------

    def _monotonic_ms(self) -> int:
        """Sessions must not end because someone set the wall clock.

        Rounded, not cut: a timer that rings a hair early must find its deadline due.
        """
        return round(self._loop.time() * 1_000)

    def _arm_timer(self) -> None:
        next_ms = self._deadlines.next_ms()
        if self._timer is not None:
            if next_ms is not None and self._timer_ms <= next_ms:
                # It will ring in time, find nothing due, and be set again. Cheaper than moving it.
                return
            self._timer.cancel()
            self._timer = None
        if next_ms is not None:
            self._timer_ms = next_ms
            self._timer = self._loop.call_at(next_ms / 1_000, self._fire_due)

    def _fire_due(self) -> None:
        self._timer = None
        now_ms = self._monotonic_ms()
        while self.phase is Phase.ACTIVE:
            key = self._deadlines.pop_due(now_ms)
            if key is None:
                break
            self._run(TimerFired(key))
        self._arm_timer()

    # -- life ------------------------------------------------------------------------------------

    async def _load(self) -> None:
        started_s = self._loop.time()
        count = 0
        try:
            for chunk in self._log.read_from_start():
                for entry in chunk:
                    self._replay_entry(entry)
                    self._next_offset = entry[0] + 1
                count += len(chunk)
                await asyncio.sleep(0)
                if self.phase is not Phase.LOADING:
                    return
        except Refused as refused:
            log.warning("shard %s: not loaded: %s", self.id, refused)
            self.close()
            return
        except Exception as error:
            log.exception(
                "%s cannot be loaded: its %s answer COORDINATOR_NOT_AVAILABLE, all others are served;"
                " docs/operating/README.md says how to repair it",
                self.id,
                self._coordinator.keys,
            )
            self._fail(error)
            return
        self.phase = Phase.ACTIVE
        self._left_loading.set()
        self._run(Loaded())
        if self.phase is not Phase.ACTIVE:
            return
        took_ms = round((self._loop.time() - started_s) * 1_000)
        level = logging.INFO if count else logging.DEBUG
        log.log(level, "%s: loaded %d records in %d ms", self.id, count, took_ms)

    def _replay_entry(self, entry: LogEntry) -> None:
        if isinstance(entry, MarkerEntry):
            self._replay_marker(entry.marker)
            return
        producer_id = entry.producer_id if isinstance(entry, TxnEntry) else None
        self._replay_stored(entry[0], entry[1], entry[2], producer_id)

    def _replay_stored(
        self, offset: int, key: bytes | None, value: bytes | None, producer_id: int | None
    ) -> None:
        if key is None:
            return
        try:
            record = self._coordinator.decode(key, value)
        except HeadraceError as malformed:
            # One unreadable record must not cost the others; a later one may replace it anyway.
            log.warning("shard %s: record at offset %d skipped: %s", self.id, offset, malformed)
            return
        if record is not None:
            self._replay(record, producer_id)

    def _reload(self) -> None:
        if self.phase is Phase.CLOSED:
            return
        self.phase = Phase.LOADING
        self._left_loading.clear()
        self._drop_machine(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._tasks["load"] = self._host.spawn(self._load())

    def _fail(self, error: Exception) -> None:
        self.phase = Phase.FAILED
        self._left_loading.set()
        self.failure = str(error) or repr(error)
        self._drop_machine(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _drop_machine(self, error: ErrorCode) -> None:
        for token in list(self._waiting):
            waiting = self._waiting[token]
            self._answer(token, self._coordinator.refuse(waiting.event, error))
        self._held.clear()
        self.effects.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._tasks.values():
            if task is not asyncio.current_task():
                task.cancel()
        self._tasks.clear()
        self._deadlines = Deadlines()
        self.machine = self._coordinator.make_machine()


def _batches(outcome: Outcome[RecordT]) -> Iterable[Sequence[RecordT]]:
    records = outcome.records
    if outcome.atomic or len(records) <= _RECORDS_PER_BATCH:
        return (records,) if records else ()
    return (
        records[start : start + _RECORDS_PER_BATCH]
        for start in range(0, len(records), _RECORDS_PER_BATCH)
    )
