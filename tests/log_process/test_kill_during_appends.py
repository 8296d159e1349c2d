"""kill -9 during appends, at random moments: everything that append returned for is there, byte for byte."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from headrace.records.batch_view import read_header, stamp
from tests.log_process.appender import batch_at, open_appended
from tests.support.log_samples import stored_batches

LOGS = 20
KILLS_PER_LOG = 10
LONGEST_LIFE_S = 0.03


class Appender:
    """The forking process; see its module."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run_and_kill(
        self, directory: Path, leader_epoch: int, recovery_point: int, life_s: float
    ) -> int:
        """Let a child append for a while, kill it; returns the last base offset it was answered with, or -1."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{directory} {leader_epoch} {recovery_point}\n")
        self._process.stdin.flush()
        child: int | None = None
        lines: list[str] = []
        while child is None:
            lines.append(self._line())
            if lines[-1].startswith("started "):
                child = int(lines.pop().split()[1])
        time.sleep(life_s)
        os.kill(child, signal.SIGKILL)
        while (line := self._line()) != "dead":
            lines.append(line)
        return max((int(line) for line in lines), default=-1)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the appender died"
        return line.strip()


@contextmanager
def running_appender() -> Iterator[Appender]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.log_process.appender"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)},
    ) as process:
        try:
            yield Appender(process)
        finally:
            process.kill()


def test_everything_that_append_returned_for_survives_200_kills(tmp_path: Path) -> None:
    chance = Random(20)
    appended = 0
    with running_appender() as appender:
        for number in range(LOGS):
            directory = tmp_path / f"t-{number}"
            acknowledged = -1
            recovery_point = 0
            for epoch in range(KILLS_PER_LOG):
                life_s = chance.uniform(0, LONGEST_LIFE_S)
                last = appender.run_and_kill(directory, epoch, recovery_point, life_s)
                acknowledged = max(acknowledged, last)
                recovery_point = check(directory, recovery_point, acknowledged)
            appended += recovery_point
    assert appended > 2000, "the appenders hardly got to write"


def check(directory: Path, recovery_point: int, acknowledged: int) -> int:
    """Open what a killed appender left, and flush it. Returns the recovery point that a checkpoint would hold now."""
    log = open_appended(str(directory), recovery_point)
    batches = stored_batches(log)
    offset = 0
    for batch in batches:
        header = read_header(batch)
        expected = batch_at(offset)
        stamp(expected, 0, offset, header.leader_epoch)
        assert batch == expected
        offset = header.next_offset
    assert offset == log.log_end_offset
    assert offset > acknowledged, f"{acknowledged} was acknowledged, the log ends at {offset}"
    entry = log.producers.entry(1)
    assert (entry.last_offset if entry else -1) == offset - 1
    log.flush(log.last_flush_ms)
    log.abandon()
    return log.recovery_point
