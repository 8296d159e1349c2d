"""A shard whose core breaks a rule of its own."""

import asyncio
from collections.abc import Iterable

import pytest

from headrace.coordinator.contract import (
    Effect,
    EffectDone,
    Loaded,
    Outcome,
    Reply,
    SetTimer,
    TimerFired,
    Token,
)
from headrace.coordinator.coordinator_type import CoordinatorHost, CoordinatorType, ShardId
from headrace.coordinator.shard import Phase, Shard
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.memory_shard_log import NOW_MS, MemoryLog, on_loop


class Fragile:
    """Counts what is replayed; breaks on "break"."""

    def __init__(self, *, breaks_on_load: bool = False) -> None:
        self.replayed: list[str] = []
        self._breaks_on_load = breaks_on_load

    def handle(
        self, event: tuple[Token, str] | TimerFired | EffectDone | Loaded, now_ms: int
    ) -> Outcome[str]:
        match event:
            case Loaded():
                assert not self._breaks_on_load, "the log says what must not be"
                return Outcome()
            case TimerFired() | EffectDone():
                raise AssertionError("an invariant")
            case token, "break":
                raise AssertionError(token)
            case token, "break later":
                return Outcome(timers=(SetTimer("soon", 1),))
            case token, text:
                return Outcome((text,), (Reply(token, [*self.replayed, text]),))

    def replay(self, record: str) -> None:
        self.replayed.append(record)

    def owed_effects(self) -> Iterable[Effect]:
        return ()

    def check(self) -> None:
        pass


def fragile_shard(
    log: MemoryLog, tasks: asyncio.TaskGroup, *, breaks_on_load: bool = False
) -> Shard[tuple[Token, str], str]:
    return Shard(
        ShardId("fragile", 0, 0),
        log,
        CoordinatorType(
            topic="fragile",
            keys="texts",
            make_machine=lambda: Fragile(breaks_on_load=breaks_on_load),
            encode=lambda text: (text.encode(), None),
            decode=lambda key, _value: key.decode(),
            refuse=lambda _, error: error,
            commit_timeout_ms=1_000,
        ),
        CoordinatorHost(wall_clock_ms=lambda: NOW_MS, spawn=tasks.create_task),
    )


@pytest.mark.parametrize("how", ["break", "break later"])
@on_loop
async def test_a_broken_core_is_loaded_anew_and_loses_nothing_that_was_stored(how: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        shard = fragile_shard(MemoryLog(), tasks)
        await asyncio.sleep(1)
        assert await shard.ask(lambda token: (token, "one")) == ["one"]
        broken = await shard.ask(lambda token: (token, how))
        assert broken is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await asyncio.sleep(1)
        assert await shard.ask(lambda token: (token, "two")) == ["one", "two"]
        shard.close()


@on_loop
async def test_a_core_that_breaks_on_what_the_log_says_fails_and_is_not_tried_for_ever() -> None:
    async with asyncio.TaskGroup() as tasks:
        shard = fragile_shard(MemoryLog(), tasks, breaks_on_load=True)
        await asyncio.sleep(1)
        assert shard.phase is Phase.FAILED
        answer = await shard.ask(lambda token: (token, "one"))
        assert answer is ErrorCode.COORDINATOR_NOT_AVAILABLE
        shard.close()
        answer = await shard.ask(lambda token: (token, "one"))
        assert answer is ErrorCode.NOT_COORDINATOR
