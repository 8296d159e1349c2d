"""The shards of one kind of coordinator: who is asked for a key, and who answers when nobody leads."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from headrace.coordination.lease import SessionLease
from headrace.coordinator.contract import LogEntry
from headrace.coordinator.coordinator_type import CoordinatorHost
from headrace.coordinator.partitioning import coordinator_partition
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.memory_shard_log import NOW_MS, MemoryLog, on_loop
from tests.unit.coordinator.transfer_coordinator import (
    Begin,
    Event,
    Targets,
    TransferRecord,
    transfer_coordinator,
)

PARTITIONS = 50
Runtime = CoordinatorRuntime[Event, TransferRecord]


class LeaseClock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0


@asynccontextmanager
async def running(clock: LeaseClock | None = None) -> AsyncIterator[Runtime]:
    time = clock or LeaseClock()
    lease = SessionLease(lambda: time.now_s, until=math.inf if clock is None else 10.0)
    async with asyncio.TaskGroup() as tasks:
        host = CoordinatorHost(wall_clock_ms=lambda: NOW_MS, spawn=tasks.create_task, lease=lease)
        runtime = CoordinatorRuntime(
            transfer_coordinator(Targets().run), host, partition_count=lambda: PARTITIONS
        )
        yield runtime
        runtime.stop()


async def begin(runtime: Runtime, key: str) -> object:
    return await runtime.ask(key, lambda token: Begin(token, key, ("a",)))


@on_loop
async def test_a_key_is_answered_by_the_shard_of_its_partition() -> None:
    async with running() as runtime:
        assert runtime.partition_for("k") == coordinator_partition("k", PARTITIONS)
        log = MemoryLog()
        runtime.elected(runtime.partition_for("k"), log)
        await runtime.loaded()
        assert await begin(runtime, "k") is ErrorCode.NONE
        assert [key for key, _ in log.records] == [b"k"]
        assert await begin(runtime, "another") is ErrorCode.NOT_COORDINATOR


@on_loop
async def test_a_new_election_replaces_the_shard_of_the_old_one() -> None:
    async with running() as runtime:
        partition = runtime.partition_for("k")
        runtime.elected(partition, MemoryLog(leader_epoch=1))
        await runtime.loaded()
        assert await begin(runtime, "k") is ErrorCode.NONE
        runtime.elected(partition, MemoryLog(leader_epoch=2))
        assert runtime.loading_partitions == {partition}
        await runtime.loaded()
        assert await begin(runtime, "k") is ErrorCode.NONE  # of the first one nothing is known
        runtime.resigned(partition)
        assert await begin(runtime, "k") is ErrorCode.NOT_COORDINATOR


@on_loop
async def test_past_the_end_of_the_lease_nobody_is_answered() -> None:
    clock = LeaseClock()
    async with running(clock) as runtime:
        log = MemoryLog()
        runtime.elected(runtime.partition_for("k"), log)
        await runtime.loaded()
        clock.now_s = 10.0
        assert await begin(runtime, "k") is ErrorCode.NOT_COORDINATOR
        assert log.records == []


@on_loop
async def test_all_shards_are_asked_but_those_that_failed() -> None:
    class Damaged(MemoryLog):
        def read_from_start(self) -> Iterator[Sequence[LogEntry]]:
            raise OSError("damaged")

    async with running() as runtime:
        runtime.elected(1, MemoryLog())
        runtime.elected(2, Damaged())
        runtime.elected(3, MemoryLog())
        await runtime.loaded()
        assert runtime.failed_partitions == {2: "damaged"}
        answers = runtime.ask_all(lambda token: Begin(token, "k", ("a",)))
        assert [await answer for answer in answers] == [ErrorCode.NONE] * 2
        assert len(list(runtime.machines())) == 3
