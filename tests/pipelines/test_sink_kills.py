"""kill -9 at random moments of a process that writes exactly once, many times: no Spark, so that a kill costs a second, not a minute."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.pipelines.sink_process import PARTITIONS, TASKS
from tests.support.committed_records import committed_values
from tests.support.spark_topics import Topics

KILLS = 5 * int(os.environ.get("HEADRACE_ROUNDS", "3"))
LAST = 1_000_000


def start(
    topics: Topics, topic: str, checkpoint: Path, run: int, last: int = LAST
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.pipelines.sink_process"),
            *(topics.bootstrap_servers, topic, str(checkpoint), f"{run:08}", str(last)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.timeout(60 + 20 * KILLS)
def test_each_row_is_written_once_whenever_the_process_dies(topics: Topics, tmp_path: Path) -> None:
    topic, checkpoint = topics.create("killed", PARTITIONS), tmp_path / "checkpoint"
    chance = random.Random(int(os.environ.get("HEADRACE_SEED", "1911")))
    for run in range(KILLS):
        process = start(topics, topic, checkpoint, run)
        assert process.stdout is not None
        assert process.stdout.readline(), process.communicate()[1]
        time.sleep(chance.random() * 0.1)  # a batch takes some ten milliseconds
        process.kill()
        process.communicate()
    last = int(checkpoint.read_text()) + 5
    _, errors = start(topics, topic, checkpoint, KILLS, last).communicate(timeout=120)
    expected = {f"{number}-{task}".encode() for number in range(last + 1) for task in range(TASKS)}
    deadline = time.monotonic() + 30
    found: Counter[bytes | None] = Counter()
    while found.keys() != expected:
        assert time.monotonic() < deadline, (sorted(expected - found.keys())[:9], errors)
        found = Counter(committed_values(topics.bootstrap_servers, topic, PARTITIONS))
    assert {value: count for value, count in found.items() if count > 1} == {}
