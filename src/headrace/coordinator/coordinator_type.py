"""Description of a kind of coordinator, and what every coordinator gets from the broker that runs it.

A kind of coordinator (groups, transactions) is one internal topic, one core for each of its partitions, and the form in
which the core's records and refusals are written.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from headrace.coordination.lease import ENDLESS, SessionLease
from headrace.coordinator.contract import Effect, Machine, StoredRecord
from headrace.records.control_batch import TxnMarker
from headrace.wire.error_code import ErrorCode

EventT = TypeVar("EventT")
RecordT = TypeVar("RecordT")


class Task(Protocol):
    """Work that was started; `asyncio.Task` is one."""

    def cancel(self) -> object: ...


Spawn = Callable[[Coroutine[object, object, None]], Task]
"""Starts a task that someone owns: `TaskGroup.create_task`."""


class ShardId(NamedTuple):
    """A partition of an internal topic, in the leader epoch in which this broker coordinates its keys."""

    topic: str
    partition: int
    leader_epoch: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


RunEffect = Callable[[ShardId, Effect], Awaitable[object]]
"""Carries out an effect of a shard, and returns what its core is to be told.

An expected failure is a result, which the core decides upon. What is raised is taken for a defect: the effect is tried
again after a pause.
"""


async def refuse_effect(shard: ShardId, effect: Effect) -> object:
    """The runner for cores that have no effects."""
    raise AssertionError(f"{shard}: nobody carries out {effect!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorType(Generic[EventT, RecordT]):
    """A kind of coordinator, the same for each partition of its topic."""

    topic: str
    keys: str  # what its keys name, in a log line: "groups"
    make_machine: Callable[[], Machine[EventT, RecordT]]
    encode: Callable[[RecordT], StoredRecord]
    decode: Callable[[bytes, bytes | None], RecordT | None]
    # The answer to an event that could not be decided, or whose records were not stored.
    refuse: Callable[[EventT, ErrorCode], object]
    commit_timeout_ms: int
    # A record that was written in a transaction (by its producer id), and the marker of one, as the core replays them.
    in_transaction: Callable[[RecordT, int], RecordT] | None = None
    marker_record: Callable[[TxnMarker], RecordT] | None = None
    run_effect: RunEffect = refuse_effect


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorHost:
    """What a broker lends to its coordinators.

    Past the end of the `lease` nobody is answered, because another broker may coordinate the same key.
    """

    wall_clock_ms: Callable[[], int]
    spawn: Spawn
    lease: SessionLease = ENDLESS
