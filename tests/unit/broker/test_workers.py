"""Blocking work in threads: where it runs, in which order it comes back, and what a cancellation waits for."""

import asyncio
import threading
from functools import partial
from pathlib import Path
from time import perf_counter
from uuid import UUID

import pytest

from headrace.broker.workers import Threads, run_to_end
from headrace.ids import TopicPartition
from headrace.log.files.os_disk import OsDisk
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from tests.support.log_samples import NOW_MS, append, make_batch, stored_records

COUNT = 40


def open_dirs(path: Path) -> LogDirs:
    dirs = LogDirs(
        OsDisk(max_open_files=64),
        [str(path)],
        config_for=lambda _: LogConfig(segment_bytes=100),
        new_id=lambda: UUID(int=7),
        open_all=partial(Threads(perf_counter, slow_s=0).map, 3),
    )
    dirs.open(NOW_MS)
    return dirs


@pytest.mark.parametrize("stops_cleanly", [True, False])
def test_several_threads_open_what_one_would(tmp_path: Path, *, stops_cleanly: bool) -> None:
    dirs = open_dirs(tmp_path)
    for number in range(COUNT):
        log = dirs.create(TopicPartition("many", number), UUID(int=1), now_ms=NOW_MS)
        for _ in range(number % 5):
            append(log, make_batch())
    if stops_cleanly:
        dirs.close(NOW_MS)
    else:
        dirs.online[0].release()
    again = open_dirs(tmp_path)
    found = {log.topic_partition.partition: len(stored_records(log)) for log in again}
    assert found == {number: number % 5 for number in range(COUNT)}
    again.close(NOW_MS)


def test_results_keep_their_order_and_more_than_one_thread_works() -> None:
    together = threading.Barrier(2, timeout=10)

    def work(number: int) -> int:
        if number in (50, 51):
            together.wait()
        return -number

    expected = [-number for number in range(100)]
    assert list(Threads(perf_counter, slow_s=0).map(2, work, range(100))) == expected


@pytest.mark.parametrize(("threads", "slow_s"), [(1, 0.0), (4, 60.0)])
def test_one_thread_does_what_is_quick(threads: int, slow_s: float) -> None:
    workers = Threads(lambda: 0.0, slow_s=slow_s)
    idents = workers.map(threads, lambda _: threading.get_ident(), range(100))
    assert set(idents) == {threading.get_ident()}


def test_work_runs_beside_the_event_loop() -> None:
    ident = asyncio.run(Threads(perf_counter).run(threading.get_ident))
    assert ident != threading.get_ident()


def test_a_cancellation_waits_until_the_work_is_done() -> None:
    has_begun, may_end, done = threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        has_begun.set()
        assert may_end.wait(30)
        done.append("done")

    async def story() -> None:
        running = asyncio.create_task(run_to_end(Threads(perf_counter), work))
        await asyncio.to_thread(has_begun.wait)
        running.cancel()
        await asyncio.sleep(0)
        assert not running.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert done == ["done"]

    asyncio.run(story())
