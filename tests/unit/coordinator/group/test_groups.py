"""The group coordinator over logs in memory: loading, commit, leadership, timers, forms of requests."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count

import pytest

from headrace.coordinator.contract import LogEntry
from headrace.coordinator.coordinator_type import CoordinatorHost
from headrace.coordinator.group.events import Client, DeletedTopic
from headrace.coordinator.group.groups import GroupRuntime, Groups, group_coordinator
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.state import GroupState
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.errors import CorruptBatch
from headrace.ids import NO_TOPIC_ID
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest
from headrace.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.unit.coordinator.memory_shard_log import NOW_MS, MemoryLog, on_loop

CLIENT = Client(id="c", host="/127.0.0.1")
SETTINGS = GroupSettings(initial_rebalance_delay_ms=0)


@asynccontextmanager
async def coordinator(
    settings: GroupSettings = SETTINGS, *, partitions: int = 1
) -> AsyncIterator[tuple[Groups, GroupRuntime]]:
    numbers = count(1)
    async with asyncio.TaskGroup() as tasks:
        host = CoordinatorHost(wall_clock_ms=lambda: NOW_MS, spawn=tasks.create_task)
        runtime = CoordinatorRuntime(
            group_coordinator(settings), host, partition_count=lambda: partitions
        )
        yield Groups(runtime, new_uuid=lambda: f"uuid{next(numbers)}"), runtime
        runtime.stop()


async def until_loaded(runtime: GroupRuntime) -> None:
    for _ in range(10_000):
        if not runtime.loading_partitions:
            return
        await asyncio.sleep(0)
    raise AssertionError("still loading")


def join_request(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def commit_request(offset: int, group_id: str = "g", partition: int = 0) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name="t",
                partitions=[
                    OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
                ],
            )
        ],
    )


FETCH = OffsetFetchRequest(
    group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
)


async def commit(groups: Groups, offset: int) -> int:
    response = await groups.commit_offsets(9, commit_request(offset))
    return response.topics[0].partitions[0].error_code


async def fetch(groups: Groups) -> int:
    response = await groups.fetch_offsets(7, FETCH)
    assert response.error_code == 0
    return response.topics[0].partitions[0].committed_offset


@on_loop
async def test_a_round_from_join_to_share_over_the_log_and_its_successor() -> None:
    log = MemoryLog()
    async with coordinator() as (groups, runtime):
        runtime.elected(0, log)
        await until_loaded(runtime)
        joined = await groups.join(CLIENT, 3, join_request())
        assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, "c-uuid1")
        synced = await groups.sync(
            3, SyncGroupRequest(group_id="g", generation_id=1, member_id="c-uuid1")
        )
        assert synced.error_code == 0
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="c-uuid1")
        assert (await groups.heartbeat(heartbeat)).error_code == 0
        assert groups.groups_by_state[GroupState.STABLE] == 1
    async with coordinator() as (groups, runtime):
        runtime.elected(0, MemoryLog(log.records))
        await until_loaded(runtime)
        assert (await groups.heartbeat(heartbeat)).error_code == 0


@on_loop
async def test_while_loading_requests_are_told_so_and_heartbeats_are_let_be() -> None:
    async with coordinator() as (groups, runtime):
        runtime.elected(0, MemoryLog())
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (await groups.join(CLIENT, 9, join_request())).error_code == loading
        assert (await groups.fetch_offsets(7, FETCH)).error_code == loading
        oldest = await groups.fetch_offsets(1, FETCH)
        assert oldest.topics[0].partitions[0].error_code == loading
        assert await commit(groups, 1) == loading
        assert (await groups.list_groups(ListGroupsRequest())).error_code == loading
        assert (await groups.heartbeat(HeartbeatRequest(group_id="g"))).error_code == 0


@on_loop
async def test_without_leadership_every_request_is_sent_elsewhere() -> None:
    async with coordinator() as (groups, _):
        elsewhere = ErrorCode.NOT_COORDINATOR
        joined = await groups.join(CLIENT, 9, join_request("m"))
        assert (joined.error_code, joined.member_id) == (elsewhere, "m")
        answers: list[
            SyncGroupResponse
            | HeartbeatResponse
            | LeaveGroupResponse
            | OffsetDeleteResponse
            | OffsetFetchResponse
            | DescribedGroup
            | DeletableGroupResult
        ] = [
            await groups.sync(5, SyncGroupRequest(group_id="g")),
            await groups.heartbeat(HeartbeatRequest(group_id="g")),
            await groups.leave(5, LeaveGroupRequest(group_id="g")),
            await groups.delete_offsets(OffsetDeleteRequest(group_id="g")),
            await groups.fetch_offsets(7, FETCH),
            (await groups.describe_groups(6, DescribeGroupsRequest(groups=["g"]))).groups[0],
            (await groups.delete_groups(DeleteGroupsRequest(groups_names=["g"]))).results[0],
        ]
        assert [answer.error_code for answer in answers] == [elsewhere] * len(answers)
        assert await commit(groups, 1) == elsewhere
        listed = await groups.list_groups(ListGroupsRequest())
        assert (listed.error_code, list(listed.groups)) == (0, [])


@on_loop
async def test_a_reply_waits_until_its_records_and_all_before_them_are_committed() -> None:
    log = MemoryLog()
    async with coordinator() as (groups, runtime):
        runtime.elected(0, log)
        await until_loaded(runtime)
        log.held = True
        committing = asyncio.create_task(commit(groups, 5))
        reading = asyncio.create_task(fetch(groups))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not committing.done()
        assert not reading.done()  # it has seen 5, which a failover could still undo
        log.release()
        assert await committing == 0
        assert await reading == 5


@on_loop
async def test_losing_leadership_answers_who_waits() -> None:
    log = MemoryLog()
    settings = GroupSettings(initial_rebalance_delay_ms=60_000)
    async with coordinator(settings) as (groups, runtime):
        runtime.elected(0, log)
        await until_loaded(runtime)
        joining = asyncio.create_task(groups.join(CLIENT, 3, join_request()))
        await asyncio.sleep(0)
        log.held = True
        committing = asyncio.create_task(groups.commit_offsets(9, commit_request(5, "other")))
        await asyncio.sleep(0)
        runtime.resigned(0)
        assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
        refused = (await committing).topics[0].partitions[0]
        assert refused.error_code == ErrorCode.NOT_COORDINATOR


@on_loop
async def test_a_log_that_lost_its_leadership_closes_the_shard() -> None:
    log = MemoryLog()
    async with coordinator() as (groups, runtime):
        runtime.elected(0, log)
        await until_loaded(runtime)
        log.held = True
        committing = asyncio.create_task(commit(groups, 5))
        await asyncio.sleep(0)
        log.lose()
        assert await committing == ErrorCode.NOT_COORDINATOR
        assert await commit(groups, 6) == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("refusal", "seen"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
@on_loop
async def test_a_refused_append_is_told_and_changes_nothing(
    refusal: ErrorCode, seen: ErrorCode
) -> None:
    log = MemoryLog()
    async with coordinator() as (groups, runtime):
        runtime.elected(0, log)
        await until_loaded(runtime)
        assert await commit(groups, 1) == 0
        log.refusal = refusal
        assert await commit(groups, 2) == seen
        log.refusal = None
        assert await fetch(groups) == 1


@on_loop
async def test_a_group_id_too_long_for_a_record_costs_only_itself() -> None:
    async with coordinator() as (groups, runtime):
        runtime.elected(0, MemoryLog())
        await until_loaded(runtime)
        response = await groups.commit_offsets(9, commit_request(1, "g" * 40_000))
        error = response.topics[0].partitions[0].error_code
        assert error == ErrorCode.UNKNOWN_SERVER_ERROR
        assert await commit(groups, 1) == 0


@on_loop
async def test_what_is_not_committed_in_time_is_reported_and_may_still_happen() -> None:
    log = MemoryLog()
    async with coordinator() as (groups, runtime):
        runtime.elected(0, log)
        await until_loaded(runtime)
        log.held = True
        assert await commit(groups, 5) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        log.release()
        assert await fetch(groups) == 5


@on_loop
async def test_timers_run_on_the_loop_and_a_silent_member_is_dropped() -> None:
    async with coordinator() as (groups, runtime):
        runtime.elected(0, MemoryLog())
        await until_loaded(runtime)
        member_id = (await groups.join(CLIENT, 3, join_request())).member_id
        await groups.sync(3, SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id))
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
        for _ in range(3):
            await asyncio.sleep(9)
            assert (await groups.heartbeat(heartbeat)).error_code == ErrorCode.NONE
        await asyncio.sleep(10.1)
        assert groups.groups_by_state[GroupState.EMPTY] == 1
        assert (await groups.heartbeat(heartbeat)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@on_loop
async def test_before_version_7_a_null_protocol_is_an_empty_one() -> None:
    async with coordinator() as (groups, runtime):
        runtime.elected(0, MemoryLog())
        await until_loaded(runtime)
        await groups.join(CLIENT, 3, join_request())
        old = await groups.join(CLIENT, 6, join_request("ghost"))
        new = await groups.join(CLIENT, 7, join_request("ghost"))
        assert (old.protocol_name, new.protocol_name) == ("", None)


@on_loop
async def test_offset_fetch_in_both_forms() -> None:
    async with coordinator() as (groups, runtime):
        runtime.elected(0, MemoryLog())
        await until_loaded(runtime)
        await commit(groups, 5)
        everything = OffsetFetchRequest(group_id="g", topics=None)
        old = await groups.fetch_offsets(7, everything)
        assert old.topics[0].partitions[0].committed_offset == 5
        asked = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "nobody")]
        new = await groups.fetch_offsets(8, OffsetFetchRequest(groups=asked))
        assert [(group.group_id, len(group.topics)) for group in new.groups] == [
            ("g", 1),
            ("nobody", 0),
        ]


@on_loop
async def test_many_tombstones_are_split_over_batches() -> None:
    log = MemoryLog()
    async with coordinator() as (groups, runtime):
        runtime.elected(0, log)
        await until_loaded(runtime)
        for partition in range(2_500):
            await groups.commit_offsets(9, commit_request(1, partition=partition))
        assert groups.offset_count == 2_500
        log.batch_sizes.clear()
        await groups.topics_deleted([DeletedTopic("t", NO_TOPIC_ID)])
        assert log.batch_sizes == [1_000, 1_000, 500]
        assert groups.offset_count == 0


@on_loop
async def test_topics_that_are_deleted_while_a_shard_loads_are_forgotten_when_it_has() -> None:
    log = MemoryLog()
    async with coordinator() as (groups, runtime):
        runtime.elected(0, log)
        await until_loaded(runtime)
        await commit(groups, 5)
    async with coordinator() as (groups, runtime):
        runtime.elected(0, MemoryLog(log.records))
        assert runtime.loading_partitions
        await groups.topics_deleted([DeletedTopic("t", NO_TOPIC_ID)])
        assert not runtime.loading_partitions
        assert groups.offset_count == 0


@on_loop
async def test_a_shard_that_is_closed_while_it_loads_keeps_nobody_waiting() -> None:
    async with coordinator() as (groups, runtime):
        runtime.elected(0, MemoryLog())
        deletion = asyncio.create_task(groups.topics_deleted([DeletedTopic("t", NO_TOPIC_ID)]))
        await asyncio.sleep(0)
        runtime.resigned(0)
        await deletion


@on_loop
async def test_records_that_cannot_be_read_do_not_stop_a_load() -> None:
    log = MemoryLog()
    async with coordinator() as (groups, runtime):
        runtime.elected(0, log)
        await until_loaded(runtime)
        await commit(groups, 5)
    strange = [(b"\0\1\0\1", b"cut"), (b"\0\x03\0\1g", b"\0\0new protocol"), *log.records]
    async with coordinator() as (groups, runtime):
        runtime.elected(0, MemoryLog(strange))
        await until_loaded(runtime)
        assert await fetch(groups) == 5


# -- a core that breaks its own rules ------------------------------------------------------------


class DamagedLog(MemoryLog):
    """A log whose first batch can be read, and no other."""

    def read_from_start(self) -> Iterator[Sequence[LogEntry]]:
        yield []
        raise CorruptBatch("the checksum of the batch at offset 7 does not fit")


@on_loop
async def test_a_damaged_batch_costs_its_shard_and_no_other() -> None:
    async with coordinator(partitions=50) as (groups, runtime):
        shards = [runtime.partition_for(group) for group in ("damaged", "sound")]
        assert shards[0] != shards[1]
        runtime.elected(shards[0], DamagedLog())
        runtime.elected(shards[1], MemoryLog())
        await asyncio.sleep(1)
        failed = "the checksum of the batch at offset 7 does not fit"
        assert runtime.failed_partitions == {shards[0]: failed}
        request = HeartbeatRequest(group_id="damaged", member_id="m", generation_id=1)
        refused = await groups.heartbeat(request)
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        request.group_id = "sound"
        assert (await groups.heartbeat(request)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        listed = await groups.list_groups(ListGroupsRequest())
        assert listed.error_code == 0
        # Another leader epoch is another chance: the copy may have been repaired.
        runtime.elected(shards[0], MemoryLog())
        await asyncio.sleep(1)
        assert runtime.failed_partitions == {}
        request.group_id = "damaged"
        assert (await groups.heartbeat(request)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
