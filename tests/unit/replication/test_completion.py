"""Batches that wait to be committed: when their request is answered, and what is refused."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.append_result import Appended
from headrace.log.log_config import LogConfig
from headrace.log.recovery import open_log
from headrace.replication.completion import Completion
from headrace.replication.partition import Partition
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from tests.support.log_samples import make_batch
from tests.unit.replication.test_partition_roles import NOW_MS, State, fetch


def leading(index: int = 0) -> Partition:
    def on_disk_failed(_: Partition, error: DiskFailed) -> None:
        raise AssertionError(error)

    where = TopicPartition("orders", index)
    log = open_log(MemoryDisk(), f"/d/{where}", where, LogConfig(), now_ms=NOW_MS)
    partition = Partition(where, UUID(int=7), log, high_watermark=0, on_disk_failed=on_disk_failed)
    partition.become_leader(1, State(1, isr=(1, 2), replicas=(1, 2)), now_ms=NOW_MS)
    appended = partition.append([make_batch(timestamp=NOW_MS)], acks=-1, now_ms=NOW_MS)
    assert isinstance(appended, Appended)
    return partition


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_it_is_done_when_the_last_batch_is_committed() -> None:
    async def story() -> None:
        first, second = leading(0), leading(1)
        refused: list[ErrorCode] = []
        done: list[str] = []
        completion = Completion(lambda: "answer", timeout_s=60)
        completion.add(first, 1, refused.append)
        completion.add(second, 1, refused.append)
        completion.when_done(lambda: done.append(completion.answer()))
        fetch(second, 2, 1, epoch=1)
        assert done == []
        fetch(first, 2, 1, epoch=1)
        assert (done, refused) == (["answer"], [])

    run(story())


def test_a_leader_that_resigns_refuses_at_once_and_the_others_are_waited_for() -> None:
    async def story() -> None:
        first, second = leading(0), leading(1)
        refused: list[tuple[str, ErrorCode]] = []
        completion = Completion(lambda: list(refused), timeout_s=60)
        completion.add(first, 1, lambda code: refused.append(("first", code)))
        completion.add(second, 1, lambda code: refused.append(("second", code)))
        first.become_follower(2, 2)
        assert refused == [("first", ErrorCode.NOT_LEADER_OR_FOLLOWER)]
        assert not completion.is_done
        fetch(second, 2, 1, epoch=1)
        assert await completion == [("first", ErrorCode.NOT_LEADER_OR_FOLLOWER)]

    run(story())


def test_the_time_out_refuses_what_is_left_and_later_news_change_nothing() -> None:
    async def story() -> None:
        first, second = leading(0), leading(1)
        refused: list[tuple[str, ErrorCode]] = []
        completion = Completion(lambda: list(refused), timeout_s=0)
        completion.add(first, 1, lambda code: refused.append(("first", code)))
        completion.add(second, 1, lambda code: refused.append(("second", code)))
        fetch(first, 2, 1, epoch=1)
        assert await completion == [("second", ErrorCode.REQUEST_TIMED_OUT)]
        second.become_follower(2, 2)
        assert refused == [("second", ErrorCode.REQUEST_TIMED_OUT)]

    run(story())


def test_a_completion_that_is_done_calls_back_at_once() -> None:
    async def story() -> None:
        partition, called = leading(), []
        completion = Completion(timeout_s=60)
        completion.add(partition, 1, lambda code: None)
        fetch(partition, 2, 1, epoch=1)
        completion.when_done(lambda: called.append(True))
        assert called == [True]

    run(story())


def test_the_answer_passes_the_steps_in_their_order() -> None:
    async def story() -> None:
        partition = leading()
        completion = Completion(lambda: "body")
        completion.add(partition, 1, lambda code: None)
        completion.then(lambda answer: f"encoded {answer}")
        completion.then(lambda answer: f"[{answer}]")
        fetch(partition, 2, 1, epoch=1)
        assert await completion == "[encoded body]"

    run(story())


def test_whoever_no_longer_waits_is_not_told() -> None:
    async def story() -> None:
        partition = leading()
        completion = Completion()
        completion.add(partition, 1, lambda code: None)

        async def wait() -> None:
            await completion

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        fetch(partition, 2, 1, epoch=1)
        assert completion.is_done

    run(story())


def test_what_was_committed_before_it_is_waited_for_is_acknowledged() -> None:
    async def story() -> None:
        first, second = leading(0), leading(1)
        refused: list[ErrorCode] = []
        done: list[str] = []
        epoch = first.leader_epoch
        fetch(first, 2, 1, epoch=1)
        completion = Completion(lambda: "answer", timeout_s=60)
        completion.add(first, 1, refused.append, leader_epoch=epoch)
        completion.add(second, 1, refused.append, leader_epoch=second.leader_epoch)
        completion.when_done(lambda: done.append(completion.answer()))
        assert (done, refused) == ([], [])
        fetch(second, 2, 1, epoch=1)
        assert (done, refused) == (["answer"], [])

    run(story())


def test_a_leadership_that_ended_before_the_batch_is_waited_for_refuses_it() -> None:
    async def story() -> None:
        gone, other_epoch = leading(0), leading(1)
        refused: list[ErrorCode] = []
        epochs = gone.leader_epoch, other_epoch.leader_epoch
        gone.resign()
        other_epoch.resign()
        other_epoch.become_leader(1, State(3, isr=(1,), replicas=(1, 2)), now_ms=NOW_MS)
        completion = Completion(lambda: "answer", timeout_s=60)
        completion.add(gone, 1, refused.append, leader_epoch=epochs[0])
        completion.add(other_epoch, 1, refused.append, leader_epoch=epochs[1])
        assert completion.is_done
        assert refused == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2

    run(story())
