"""Logs are opened by several threads, and the log tells how far that has come."""

import logging
import threading
from pathlib import Path
from uuid import UUID

import pytest

from headrace.broker.log_opening import InThreads, RecoveryProgress
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.log.os_disk import OsDisk
from tests.support.log_samples import NOW_MS, append, make_batch, stored_records

COUNT = 40


def open_dirs(path: Path) -> LogDirs:
    dirs = LogDirs(
        OsDisk(max_open_files=64),
        [str(path)],
        config_for=lambda _: LogConfig(segment_bytes=100),
        new_id=lambda: UUID(int=7),
        open_all=InThreads(3, slow_s=0),
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
    assert list(InThreads(2, slow_s=0)(work, range(100))) == expected


@pytest.mark.parametrize(("threads", "slow_s"), [(1, 0.0), (4, 60.0)])
def test_one_thread_does_what_is_quick(threads: int, slow_s: float) -> None:
    workers = InThreads(threads, slow_s=slow_s)(lambda _: threading.get_ident(), range(100))
    assert set(workers) == {threading.get_ident()}


def test_a_line_every_few_seconds(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 100.0
    progress = RecoveryProgress(lambda: now_s)
    with caplog.at_level(logging.INFO):
        for done in range(1, 11):
            now_s += 1
            progress("/data", done, 10)
    assert caplog.messages == [
        "/data: 3 of 10 logs are open, 7 to go",
        "/data: 6 of 10 logs are open, 4 to go",
        "/data: 9 of 10 logs are open, 1 to go",
        "/data: all 10 logs are open after 10.0 s",
    ]


def test_no_line_if_it_takes_no_time(caplog: pytest.LogCaptureFixture) -> None:
    progress = RecoveryProgress(lambda: 100.0)
    with caplog.at_level(logging.INFO):
        progress("/data", 10, 10)
    assert caplog.messages == []
