"""A partition as leader and as follower: tails that the other never had, and leadership that is suspended for a while."""

import logging
from typing import NamedTuple
from uuid import UUID

import pytest

from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.append_result import Appended
from headrace.log.leader_epochs import EpochEnd
from headrace.log.log_config import LogConfig
from headrace.log.recovery import open_log
from headrace.records.batch_builder import build_batch
from headrace.records.batch_reader import Record
from headrace.records.batch_view import read_header
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch, PartitionRead
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=7)
NOW_MS = 1_000


class State(NamedTuple):
    leader_epoch: int
    isr: tuple[int, ...] = (1, 2, 3)
    partition_epoch: int = 0
    needed_isr: int = 1
    replicas: tuple[int, ...] = (1, 2, 3)


def partition() -> Partition:
    def on_disk_failed(_: Partition, error: DiskFailed) -> None:
        raise AssertionError(error)

    log = open_log(
        MemoryDisk(), f"/d/{ORDERS}", ORDERS, LogConfig(), now_ms=NOW_MS, topic_id=TOPIC_ID
    )
    return Partition(
        ORDERS,
        TOPIC_ID,
        log,
        high_watermark=0,
        on_disk_failed=on_disk_failed,
    )


def leading(leader_epoch: int, isr: tuple[int, ...] = (1, 2, 3)) -> Partition:
    made = partition()
    made.become_leader(1, State(leader_epoch, isr), now_ms=NOW_MS)
    return made


def append(leader: Partition, count: int = 1) -> None:
    for _ in range(count):
        batch = build_batch([Record(0, NOW_MS, None, b"value")])
        assert isinstance(leader.append([memoryview(batch)], acks=1, now_ms=NOW_MS), Appended)


def fetch(
    leader: Partition, replica: int, offset: int, *, epoch: int, broker_epoch: int = 100
) -> PartitionRead | Refusal:
    question = FollowerFetch(replica, broker_epoch, offset, epoch, leader.leader_epoch)
    return leader.read_as_leader(question, 1 << 20, now_ms=NOW_MS)


def test_a_follower_with_a_longer_log_is_told_where_to_cut() -> None:
    leader = leading(1)
    append(leader, 3)
    leader.become_leader(1, State(4), now_ms=NOW_MS)
    for offset in (4, 5, 50):
        answer = fetch(leader, 2, offset, epoch=1)
        assert isinstance(answer, PartitionRead), f"{offset} is past the end, but not out of range"
        assert answer.diverging == EpochEnd(1, 3)
        assert answer.records.length == 0
    assert leader.leader is not None
    assert leader.leader.progress_of(2) is not None
    assert leader.high_watermark == 0, "who diverges has nothing yet"


def test_a_consumer_ahead_of_a_shortened_log_is_told_where_it_parted() -> None:
    leader = leading(1, isr=(1,))
    append(leader, 3)
    leader.become_leader(1, State(2, isr=(1,)), now_ms=NOW_MS)
    answer = leader.read(10, 1 << 20, last_fetched_epoch=1)
    assert isinstance(answer, PartitionRead)
    assert answer.diverging == EpochEnd(1, 3)


def test_past_the_end_without_an_epoch_is_out_of_range() -> None:
    leader = leading(1)
    append(leader, 3)
    for answer in (fetch(leader, 2, 4, epoch=-1), leader.read(4, 1 << 20)):
        assert isinstance(answer, Refusal)
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_diverging_reader_before_the_start_is_out_of_range_all_the_same() -> None:
    leader = leading(1, isr=(1,))
    append(leader, 5)
    leader.become_leader(1, State(4, isr=(1,)), now_ms=NOW_MS)
    assert leader.delete_records(4) == 4
    answer = fetch(leader, 2, 2, epoch=3)
    assert isinstance(answer, Refusal)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_suspended_leader_takes_and_serves_nothing_and_tells_those_who_wait() -> None:
    leader = leading(1)
    append(leader)
    told: list[bool] = []
    leader.committed.add(1, told.append)
    leader.suspend()
    assert told == [False]
    assert not leader.is_leader
    batch = memoryview(build_batch([Record(0, NOW_MS, None, b"value")]))
    for answer in (
        leader.append([batch], acks=-1, now_ms=NOW_MS),
        fetch(leader, 2, 1, epoch=1),
        leader.read(0, 1 << 20),
    ):
        assert isinstance(answer, Refusal)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_that_resumes_knows_its_followers_and_its_proposal_is_still_in_force() -> None:
    leader = leading(1, isr=(1, 2))
    append(leader)
    fetch(leader, 2, 1, epoch=1)
    fetch(leader, 3, 1, epoch=1)
    assert leader.leader is not None
    leader.leader.propose((1, 2, 3))
    leader.suspend()
    assert leader.resume(now_ms=NOW_MS)
    append(leader)
    fetch(leader, 2, 2, epoch=1)
    assert leader.high_watermark == 1, "the controller may have taken the third by now"
    fetch(leader, 3, 2, epoch=1)
    assert leader.high_watermark == 2


def test_the_controllers_word_counts_for_a_suspended_leader_too() -> None:
    leader = leading(1)
    append(leader)
    fetch(leader, 2, 1, epoch=1)
    leader.suspend()
    leader.isr_decided(State(1, isr=(1, 2), partition_epoch=1), now_ms=NOW_MS)
    assert leader.high_watermark == 0, "it does not act on it yet"
    assert leader.resume(now_ms=NOW_MS)
    assert leader.high_watermark == 1


def test_whoever_became_a_follower_meanwhile_has_nothing_to_resume() -> None:
    leader = leading(1)
    leader.suspend()
    leader.become_follower(2, 2)
    assert not leader.resume(now_ms=NOW_MS)
    assert not leader.is_leader
    assert not leading(1).resume(now_ms=NOW_MS), "never suspended"


def test_the_minimum_changes_while_suspended() -> None:
    leader = leading(1, isr=(1,))
    leader.suspend()
    leader.isr_decided(State(1, isr=(1,), partition_epoch=1, needed_isr=2), now_ms=NOW_MS)
    leader.resume(now_ms=NOW_MS)
    append(leader)
    assert leader.high_watermark == 0


def test_the_minimum_and_the_isr_change_in_one_step() -> None:
    """A smaller ISR must not commit by the minimum that held for the larger one."""
    leader = leading(1, isr=(1, 2))
    append(leader)
    leader.isr_decided(State(1, isr=(1,), partition_epoch=1, needed_isr=2), now_ms=NOW_MS)
    assert leader.high_watermark == 0
    leader.isr_decided(State(1, isr=(1,), partition_epoch=2, needed_isr=1), now_ms=NOW_MS)
    assert leader.high_watermark == 1


def test_a_full_disk_is_told_of_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    leader = leading(1)
    disk = leader.log.disk
    assert isinstance(disk, MemoryDisk)
    append(leader)
    batches = [memoryview(build_batch([Record(0, NOW_MS, None, b"value")])) for _ in range(2)]
    headers = [read_header(batch) for batch in batches]
    for number in range(2):
        disk.capacity_bytes = disk.used_bytes
        for asked in (batches, batches[:1]):
            refused = leader.append(asked, headers[: len(asked)], acks=1, now_ms=NOW_MS)
            assert isinstance(refused, Refusal)
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.capacity_bytes = None
        if number == 0:
            append(leader, 2)
        else:
            appended = leader.append(batches, headers, acks=1, now_ms=NOW_MS)
            assert appended == Appended(3, 4, batches=2)
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"] * 2
