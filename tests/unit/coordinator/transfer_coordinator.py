"""A small coordinator with everything that a core can use: records, replies, timers, effects, replay.

A transfer is begun with the targets that it concerns, and ended by a request or by the clock. What was decided is stored
(PREPARED), then told to every target (an effect each), then forgotten (a tombstone). It is a transaction in miniature.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from enum import Enum
from typing import NamedTuple

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
from headrace.coordinator.coordinator_type import (
    CoordinatorHost,
    CoordinatorType,
    RunEffect,
    ShardId,
)
from headrace.coordinator.shard import Shard
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.memory_shard_log import NOW_MS, MemoryLog

TIMEOUT_MS = 60_000


class Step(Enum):
    ONGOING = "ongoing"
    COMMIT = "commit"
    ABORT = "abort"


class Begin(NamedTuple):
    token: Token
    key: str
    targets: tuple[str, ...]


class End(NamedTuple):
    token: Token
    key: str
    step: Step


class Break(NamedTuple):
    """Makes the core break a rule of its own."""

    token: Token


Event = Begin | End | Break


class Transfer(NamedTuple):
    step: Step
    targets: tuple[str, ...]


class TransferRecord(NamedTuple):
    """Without a transfer: a tombstone."""

    key: str
    transfer: Transfer | None


class TellTarget(NamedTuple):
    """Effect: a target is to hear what was decided."""

    key: str
    target: str
    step: Step


def encode(record: TransferRecord) -> tuple[bytes, bytes | None]:
    if record.transfer is None:
        return record.key.encode(), None
    return record.key.encode(), ",".join(
        (record.transfer.step.value, *record.transfer.targets)
    ).encode()


def decode(key: bytes, value: bytes | None) -> TransferRecord:
    if value is None:
        return TransferRecord(key.decode(), None)
    step, *targets = value.decode().split(",")
    return TransferRecord(key.decode(), Transfer(Step(step), tuple(targets)))


class TransferMachine:
    """`told` is soft: after loading, every target of a decided transfer is told again."""

    def __init__(self) -> None:
        self.transfers: dict[str, Transfer] = {}
        self.told: dict[str, set[str]] = {}

    def handle(
        self, event: Event | TimerFired | EffectDone | Loaded, now_ms: int
    ) -> Outcome[TransferRecord]:
        match event:
            case Begin(token, key, targets):
                if key in self.transfers:
                    return Outcome(replies=(Reply(token, ErrorCode.CONCURRENT_TRANSACTIONS),))
                record = TransferRecord(key, Transfer(Step.ONGOING, targets))
                timer = SetTimer(key, TIMEOUT_MS)
                return Outcome((record,), (Reply(token, ErrorCode.NONE),), (timer,))
            case End(token, key, step):
                return self._end(key, step, token)
            case TimerFired(key):
                assert isinstance(key, str)
                return self._end(key, Step.ABORT, None)
            case EffectDone(TellTarget() as effect, _):
                return self._told(effect)
            case Loaded():
                ongoing = (k for k, each in self.transfers.items() if each.step is Step.ONGOING)
                return Outcome(timers=[SetTimer(key, TIMEOUT_MS) for key in ongoing])
            case _:
                raise AssertionError(event)

    def _end(self, key: str, step: Step, token: Token | None) -> Outcome[TransferRecord]:
        transfer = self.transfers.get(key)
        if transfer is None or transfer.step is not Step.ONGOING:
            error = ErrorCode.INVALID_TXN_STATE
            return Outcome(replies=() if token is None else (Reply(token, error),))
        return Outcome(
            (TransferRecord(key, Transfer(step, transfer.targets)),),
            () if token is None else (Reply(token, ErrorCode.NONE),),
            # If the log refuses the abort of an overdue transfer, it is tried again.
            (SetTimer(key, TIMEOUT_MS),),
            effects=[TellTarget(key, target, step) for target in transfer.targets],
        )

    def _told(self, effect: TellTarget) -> Outcome[TransferRecord]:
        transfer = self.transfers[effect.key]
        told = self.told.setdefault(effect.key, set())
        told.add(effect.target)
        if told == set(transfer.targets):
            return Outcome((TransferRecord(effect.key, None),))
        return Outcome()

    def replay(self, record: TransferRecord) -> None:
        if record.transfer is None:
            self.transfers.pop(record.key, None)
            self.told.pop(record.key, None)
        else:
            self.transfers[record.key] = record.transfer

    def owed_effects(self) -> Iterable[Effect]:
        for key, transfer in self.transfers.items():
            if transfer.step is not Step.ONGOING:
                for target in transfer.targets:
                    yield TellTarget(key, target, transfer.step)

    def check(self) -> None:
        for key, told in self.told.items():
            assert told <= set(self.transfers[key].targets)


def transfer_coordinator(run_effect: RunEffect) -> CoordinatorType[Event, TransferRecord]:
    return CoordinatorType(
        topic="transfers",
        keys="transfers",
        make_machine=TransferMachine,
        encode=encode,
        decode=decode,
        refuse=lambda _, error: error,
        commit_timeout_ms=5_000,
        run_effect=run_effect,
    )


class Targets:
    """Hears effects. `hold` keeps the answers back until `let_go`."""

    def __init__(self) -> None:
        self.heard: list[tuple[ShardId, TellTarget]] = []
        self.cut_off = 0
        self.failures = 0  # so many calls fail for no reason
        self._may_answer = asyncio.Event()
        self._may_answer.set()

    def hold(self) -> None:
        self._may_answer.clear()

    def let_go(self) -> None:
        self._may_answer.set()

    async def run(self, shard: ShardId, effect: Effect) -> object:
        assert isinstance(effect, TellTarget)
        if self.failures:
            self.failures -= 1
            raise RuntimeError("a defect of the runner")
        self.heard.append((shard, effect))
        try:
            await self._may_answer.wait()
        except asyncio.CancelledError:
            self.cut_off += 1
            raise
        return None

    @property
    def names(self) -> list[str]:
        return [f"{effect.key}/{effect.target}={effect.step.value}" for _, effect in self.heard]


class Process:
    """A broker's process with one shard. `kill` ends it between two steps of the event loop, without a word to anybody."""

    def __init__(self, log: MemoryLog, run_effect: RunEffect) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self.shard: Shard[Event, TransferRecord] = Shard(
            ShardId("transfers", 0, log.leader_epoch),
            log,
            transfer_coordinator(run_effect),
            CoordinatorHost(wall_clock_ms=lambda: NOW_MS, spawn=self._spawn),
        )

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.append(task)
        return task

    @property
    def machine(self) -> TransferMachine:
        assert isinstance(self.shard.machine, TransferMachine)
        return self.shard.machine

    def ask(self, event_for: Callable[[Token], Event]) -> "asyncio.Future[object]":
        return self.shard.ask(event_for)

    def begin(self, key: str, *targets: str) -> "asyncio.Future[object]":
        return self.ask(lambda token: Begin(token, key, targets))

    def end(self, key: str, step: Step = Step.COMMIT) -> "asyncio.Future[object]":
        return self.ask(lambda token: End(token, key, step))

    async def loaded(self) -> None:
        await self.shard.loaded()
        await settle()

    def kill(self) -> None:
        for task in self._tasks:
            task.cancel()
        self.shard.close()  # so that its timer does not ring any more; nobody listens to its answers


async def settle() -> None:
    """Until every task that can run now has run."""
    for _ in range(20):
        await asyncio.sleep(0)
