"""Effects under any order of requests, commits, refusals, kills and elections.

No decision is told before it is committed, none is told in two ways, and none is left untold. What the shard has
outstanding is what its core says is owed.
"""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.coordinator.contract import Effect
from headrace.coordinator.coordinator_type import ShardId
from headrace.coordinator.effects import LONGEST_PAUSE_S
from headrace.coordinator.shard import Phase
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.memory_shard_log import MemoryLog, SkippingLoop
from tests.unit.coordinator.transfer_coordinator import (
    TIMEOUT_MS,
    Break,
    Process,
    Step,
    TellTarget,
    decode,
    settle,
)

T = TypeVar("T")
NUMBERS = st.integers(0, 1_000)


class EffectsMachine(RuleBasedStateMachine):
    """One shard, its log, and the targets that hear of decisions; each key is used once."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = SkippingLoop()
        self.key_count = 0
        self.heard: dict[tuple[str, str], Step] = {}
        self.faults: list[str] = []
        self.calls: list[asyncio.Future[None]] = []
        self.ends: dict[str, tuple[Step, asyncio.Future[object]]] = {}
        self.log = MemoryLog()
        self.process = self.run(self._start())

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self.loop.run_until_complete(work)

    async def _start(self) -> Process:
        process = Process(self.log, self._hear)
        await process.loaded()
        return process

    async def _hear(self, shard: ShardId, effect: Effect) -> object:
        assert isinstance(effect, TellTarget)
        committed = [decode(*each) for each in self.log.records[: self.log.high_watermark]]
        decided = {
            each.transfer.step for each in committed if each.key == effect.key and each.transfer
        }
        # Noted, because what a runner raises is taken for a failure that a repetition may mend.
        if effect.step not in decided:
            self.faults.append(f"{effect} was told before it was committed")
        if self.heard.setdefault((effect.key, effect.target), effect.step) is not effect.step:
            self.faults.append(f"{effect} was told in two ways")
        answer = self.loop.create_future()
        self.calls.append(answer)
        return await answer

    @property
    def is_active(self) -> bool:
        return self.process.shard.phase is Phase.ACTIVE

    # ---- requests

    @precondition(lambda self: self.is_active)
    @rule(names=st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]))
    def begin(self, names: tuple[str, ...]) -> None:
        self.key_count += 1

        async def ask() -> None:
            self.process.begin(f"k{self.key_count}", *names)
            await settle()

        self.run(ask())

    @precondition(lambda self: self.is_active and self.process.machine.transfers)
    @rule(number=NUMBERS, step=st.sampled_from([Step.COMMIT, Step.ABORT]))
    def end(self, number: int, step: Step) -> None:
        keys = sorted(self.process.machine.transfers)
        key = keys[number % len(keys)]

        async def ask() -> None:
            answer = self.process.end(key, step)
            if self.process.machine.transfers[key].step is step:
                self.ends.setdefault(key, (step, answer))
            await settle()

        self.run(ask())

    @precondition(lambda self: self.is_active)
    @rule()
    def break_a_rule(self) -> None:
        async def ask() -> None:
            self.process.ask(Break)
            await self.process.loaded()

        self.run(ask())

    # ---- targets

    @precondition(lambda self: self.calls)
    @rule(number=NUMBERS, fails=st.booleans())
    def answer(self, number: int, *, fails: bool) -> None:
        call = self.calls.pop(number % len(self.calls))

        async def answer() -> None:
            if not call.done():
                if fails:
                    call.set_exception(RuntimeError("a defect of the runner"))
                else:
                    call.set_result(None)
            await settle()

        self.run(answer())

    # ---- log and time

    @rule()
    def hold(self) -> None:
        self.log.held = True

    @rule()
    def release(self) -> None:
        async def release() -> None:
            self.log.release()
            await settle()

        self.run(release())

    @rule(refusal=st.sampled_from([None, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def refuse(self, refusal: ErrorCode | None) -> None:
        self.log.refusal = refusal

    @rule(seconds=st.sampled_from([0.5, LONGEST_PAUSE_S, TIMEOUT_MS / 1_000]))
    def wait(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    # ---- processes

    @rule(number=NUMBERS, is_killed=st.booleans())
    def elect_another(self, number: int, *, is_killed: bool) -> None:
        """The next leader has all that is committed, and maybe more."""
        self._elect(number, is_killed=is_killed)

    def _elect(self, number: int, *, is_killed: bool) -> None:
        log = self.log
        uncommitted = len(log.records) - log.high_watermark
        kept = log.high_watermark + number % (uncommitted + 1)

        async def elect() -> None:
            if is_killed:
                self.process.kill()
            else:
                log.lose()
                self.process.shard.close()
            await settle()
            self.log = MemoryLog(log.records[:kept], leader_epoch=log.leader_epoch + 1)
            self.log.high_watermark, self.log.held = log.high_watermark, log.held
            self.process = await self._start()
            if not self.log.held:
                self.log.release()

        self.run(elect())

    # ---- what must hold

    @invariant()
    def nothing_is_told_amiss(self) -> None:
        assert not self.faults

    @invariant()
    def outstanding_is_what_is_owed(self) -> None:
        """All that is owed but for what the core was told and has not stored, because it waits for the other targets."""
        if self.is_active:
            machine = self.process.machine
            owed = set(machine.owed_effects())
            told = {
                effect
                for effect in owed
                if isinstance(effect, TellTarget)
                and effect.target in machine.told.get(effect.key, ())
            }
            outstanding = self.process.shard.effects.outstanding
            assert owed - told <= outstanding <= owed
            # The last target's end is stored, or is still to be stored.
            untold = {effect.key for effect in outstanding if isinstance(effect, TellTarget)}
            decided = {
                key for key, each in machine.transfers.items() if each.step is not Step.ONGOING
            }
            assert untold == decided
            machine.check()

    def teardown(self) -> None:
        """When nothing is in the way any more, every decision is told to every target, and every transfer ends."""
        self.log.refusal = None
        self.release()
        self._elect(0, is_killed=True)
        for _ in range(100):
            self.wait(TIMEOUT_MS / 1_000)
            while self.calls:
                self.answer(0, fails=False)
            if not self.process.machine.transfers:
                break
        assert not self.process.machine.transfers
        assert not self.faults
        for key, (step, answer) in self.ends.items():
            if answer.done() and answer.result() is ErrorCode.NONE:
                assert {told for (each, _), told in self.heard.items() if each == key} == {step}
        self.run(self._stop())
        self.loop.close()

    async def _stop(self) -> None:
        self.process.kill()
        await settle()


TestEffects = EffectsMachine.TestCase
TestEffects.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
