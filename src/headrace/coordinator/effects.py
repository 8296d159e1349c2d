"""Effects of one shard: waits until the records behind them are committed, carries them out, and tells the core.

Owns the effects that wait and those that are under way. Which effects there are is the core's to say. An effect that is
under way is not started a second time. What `cancel` cuts off (the shard is closed, or loads again) is still owed: whoever
loads the shard next hears of it from the core.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from headrace.coordinator.contract import Effect, EffectDone, ShardLog
from headrace.coordinator.coordinator_type import RunEffect, ShardId, Spawn, Task
from headrace.wire.refusal import Refused

log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 10.0


class _Held(NamedTuple):
    """Effects that may start once the offset is committed, however long that takes."""

    next_offset: int
    effects: Sequence[Effect]


class ShardEffects:
    """One event loop owns it."""

    def __init__(
        self,
        shard: ShardId,
        shard_log: ShardLog,
        *,
        run: RunEffect,
        tell: Callable[[EffectDone], bool],
        on_lost: Callable[[], None],
        spawn: Spawn,
    ) -> None:
        """`tell` hands the event to the core; False if the log refused the records that it led to.

        `on_lost` hears that the leadership of the log is gone.
        """
        self._shard = shard
        self._log = shard_log
        self._run = run
        self._tell = tell
        self._on_lost = on_lost
        self._spawn = spawn
        self._held: deque[_Held] = deque()
        self._waiting: Task | None = None
        self._under_way: dict[Effect, Task] = {}

    @property
    def outstanding(self) -> frozenset[Effect]:
        """The effects that wait or are under way: those of which the core has not been told yet."""
        held = (effect for each in self._held for effect in each.effects)
        return frozenset((*held, *self._under_way))

    def release(self, effects: Sequence[Effect], next_offset: int) -> None:
        """Carry out effects once everything before `next_offset` is committed."""
        if not self._held and self._log.high_watermark >= next_offset:
            self._start(effects)
            return
        self._held.append(_Held(next_offset, effects))
        if self._waiting is None:
            self._waiting = self._spawn(self._start_when_committed())

    def cancel(self) -> None:
        """Stop all of them, wherever they are."""
        current = asyncio.current_task()
        for task in (self._waiting, *self._under_way.values()):
            if task is not None and task is not current:
                task.cancel()
        self._waiting = None
        self._under_way.clear()
        self._held.clear()

    async def _start_when_committed(self) -> None:
        while self._held:
            try:
                await self._log.wait_committed(self._held[0].next_offset)
            except Refused as refused:
                log.warning("shard %s: not committed: %s; closing", self._shard, refused)
                self._on_lost()
                return
            self._start(self._held.popleft().effects)
        self._waiting = None

    def _start(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if effect not in self._under_way:
                self._under_way[effect] = self._spawn(self._carry_out(effect))

    async def _carry_out(self, effect: Effect) -> None:
        pauses = _Pauses()
        while True:
            try:
                result = await self._run(self._shard, effect)
                break
            except Exception:
                # A defect of the runner costs a repetition, never the shard: the effect is owed until it is done.
                log.exception("%s: %r failed and is tried again", self._shard, effect)
            await pauses.wait()
        pauses = _Pauses()
        while not self._hand_over(effect, result):
            await pauses.wait()

    def _hand_over(self, effect: Effect, result: object) -> bool:
        task = self._under_way.pop(
            effect
        )  # first, because the core may call for the same work again
        if self._tell(EffectDone(effect, result)):
            return True
        self._under_way[effect] = task
        return False


class _Pauses:
    """Pauses between attempts: each twice as long as the one before, up to a limit."""

    def __init__(self) -> None:
        self._next_s = FIRST_PAUSE_S

    async def wait(self) -> None:
        pause_s = self._next_s
        self._next_s = min(2 * pause_s, LONGEST_PAUSE_S)
        await asyncio.sleep(pause_s)
