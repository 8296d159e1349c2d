"""Effects of a core: after the commit, at least once, and again by whoever loads the shard next."""

import asyncio

import pytest

from headrace.coordinator.effects import LONGEST_PAUSE_S
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.memory_shard_log import MemoryLog, on_loop
from tests.unit.coordinator.transfer_coordinator import (
    TIMEOUT_MS,
    Break,
    Process,
    Step,
    Targets,
    decode,
    settle,
)


async def started(log: MemoryLog, targets: Targets) -> Process:
    process = Process(log, targets.run)
    await process.loaded()
    return process


async def with_transfer(log: MemoryLog, targets: Targets, *names: str) -> Process:
    process = await started(log, targets)
    assert await process.begin("k", *names) is ErrorCode.NONE
    return process


def is_forgotten(log: MemoryLog, key: str) -> bool:
    records = [decode(*stored) for stored in log.records]
    return next(each for each in reversed(records) if each.key == key).transfer is None


@on_loop
async def test_an_effect_follows_its_record_and_its_end_is_stored() -> None:
    log, targets = MemoryLog(leader_epoch=7), Targets()
    process = await with_transfer(log, targets, "a", "b")
    assert await process.end("k") is ErrorCode.NONE
    await settle()
    assert targets.names == ["k/a=commit", "k/b=commit"]
    assert {shard.leader_epoch for shard, _ in targets.heard} == {7}
    assert is_forgotten(log, "k")
    assert process.shard.effects.outstanding == frozenset()
    process.kill()


@on_loop
async def test_an_effect_waits_until_its_record_is_committed() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    log.held = True
    ending = process.end("k")
    await settle()
    assert not ending.done()
    assert targets.names == []
    log.release()
    await settle()
    assert ending.result() is ErrorCode.NONE
    assert targets.names == ["k/a=commit"]
    process.kill()


@on_loop
async def test_a_late_commit_refuses_the_reply_and_still_has_the_effect() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    log.held = True
    assert await process.end("k") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    # Another request that comes meanwhile has a time-out of its own.
    assert await process.begin("l", "a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert targets.names == []
    log.release()
    await settle()
    assert targets.names == ["k/a=commit"]
    process.kill()


@on_loop
async def test_killed_between_commit_and_effect_the_next_process_carries_it_out() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a", "b")
    log.held = True
    process.end("k", Step.ABORT)
    log.release()
    process.kill()
    await settle()
    assert targets.names == []  # it was committed, and nobody was told
    successor = await started(MemoryLog(log.records, leader_epoch=1), targets)
    assert targets.names == ["k/a=abort", "k/b=abort"]
    assert {shard.leader_epoch for shard, _ in targets.heard} == {1}
    successor.kill()


@on_loop
async def test_killed_before_the_end_is_stored_the_effect_is_repeated() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    targets.hold()
    await process.end("k")
    await settle()
    process.kill()
    targets.let_go()
    await settle()
    log = MemoryLog(log.records)
    successor = await started(log, targets)
    assert targets.names == ["k/a=commit", "k/a=commit"]
    assert is_forgotten(log, "k")
    successor.kill()


@on_loop
async def test_what_a_failover_undid_has_no_effect() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    log.held = True
    ending = process.end("k")
    await settle()
    log.lose()
    assert await ending is ErrorCode.NOT_COORDINATOR
    successor = await started(MemoryLog(log.records[: log.high_watermark]), targets)
    assert targets.names == []
    assert successor.machine.transfers["k"].step is Step.ONGOING
    successor.kill()
    process.kill()


@on_loop
async def test_what_was_loaded_must_be_committed_before_it_has_effects() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    targets.hold()
    await process.end("k")
    process.kill()
    targets.heard.clear()
    tail = MemoryLog(log.records)
    tail.held, tail.high_watermark = (
        True,
        1,
    )  # the record of the end is not committed under the new leader yet
    successor = await started(tail, targets)
    assert targets.names == []
    tail.release()
    await settle()
    assert targets.names == ["k/a=commit"]
    successor.kill()


@on_loop
async def test_a_runner_that_fails_is_asked_again() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    targets.failures = 3
    await process.end("k")
    await asyncio.sleep(LONGEST_PAUSE_S)
    assert targets.names == ["k/a=commit"]
    assert is_forgotten(log, "k")
    process.kill()


@on_loop
async def test_an_end_that_the_log_refuses_is_stored_later_and_the_effect_not_repeated() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    targets.hold()
    await process.end("k")
    await settle()
    log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    targets.let_go()
    await asyncio.sleep(LONGEST_PAUSE_S)
    assert not is_forgotten(log, "k")
    assert process.shard.effects.outstanding
    log.refusal = None
    await asyncio.sleep(LONGEST_PAUSE_S)
    assert is_forgotten(log, "k")
    assert targets.names == ["k/a=commit"]
    process.kill()


@on_loop
async def test_effects_of_a_refused_append_are_dropped() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert await process.end("k") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    log.refusal = None
    await settle()
    assert targets.names == []
    process.kill()


@on_loop
async def test_a_core_that_is_loaded_anew_owes_what_was_under_way() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    targets.hold()
    await process.end("k")
    await settle()
    assert await process.ask(Break) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    targets.let_go()
    await process.loaded()
    assert targets.names == ["k/a=commit", "k/a=commit"]
    assert is_forgotten(log, "k")
    process.kill()


@pytest.mark.parametrize("is_refused_first", [False, True])
@on_loop
async def test_a_timer_leads_to_an_effect_even_if_the_log_refuses_once(
    is_refused_first: bool,
) -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS if is_refused_first else None
    await asyncio.sleep(TIMEOUT_MS / 1000 + 1)
    assert targets.names == ([] if is_refused_first else ["k/a=abort"])
    log.refusal = None
    await asyncio.sleep(TIMEOUT_MS / 1000 + 1)
    assert targets.names == ["k/a=abort"]
    process.kill()


@on_loop
async def test_timers_run_again_in_the_process_that_loads_the_shard() -> None:
    log, targets = MemoryLog(), Targets()
    (await with_transfer(log, targets, "a")).kill()
    successor = await started(MemoryLog(log.records), targets)
    await asyncio.sleep(TIMEOUT_MS / 1000 + 1)
    assert targets.names == ["k/a=abort"]
    successor.kill()


@on_loop
async def test_a_closed_shard_stops_its_effects() -> None:
    log, targets = MemoryLog(), Targets()
    process = await with_transfer(log, targets, "a")
    targets.hold()
    await process.end("k")
    await settle()
    process.shard.close()
    assert process.shard.effects.outstanding == frozenset()
    await settle()
    assert targets.cut_off == 1
    assert not is_forgotten(log, "k")
