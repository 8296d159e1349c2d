"""The exactly-once sink while brokers are killed: leaders, the coordinator and the decision topic's leader die at any moment.

The sink runs without Spark (`tests.pipelines.sink_process`) and is killed as well. In the end each row is there once.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.pipelines.sink_process import PARTITIONS, TASKS
from tests.support.cluster_process import ClusterProcess
from tests.support.committed_records import committed_values

KILLS: Final = int(os.environ.get("HEADRACE_ROUNDS", "4"))
TOPIC: Final = "rows"
PROPERTIES: Final = {
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
}


class Sink:
    """The sink's process, started again after its end."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self.checkpoint = directory / "checkpoint"
        self.log = directory / "sink.log"
        self._run = 0

    def start(self, last: int = 1_000_000) -> subprocess.Popen[bytes]:
        self._run += 1
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.pipelines.sink_process"),
                    *(self._bootstrap, TOPIC, str(self.checkpoint), f"{self._run:08}", str(last)),
                ],
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    @property
    def done(self) -> int:
        return int(self.checkpoint.read_text()) if self.checkpoint.exists() else -1


@pytest.mark.timeout(120 + 90 * KILLS)
def test_each_row_is_written_once_while_brokers_die(tmp_path: Path) -> None:
    chance = random.Random(int(os.environ.get("HEADRACE_SEED", "19")))
    with ClusterProcess(tmp_path / "cluster", properties=PROPERTIES) as cluster:
        cluster.create_topic(TOPIC, partitions=PARTITIONS)
        sink = Sink(cluster.bootstrap, tmp_path)
        process = sink.start()
        try:
            for _ in range(KILLS):
                before = sink.done
                deadline = time.monotonic() + 80
                while sink.done < before + 3:
                    assert time.monotonic() < deadline, sink.log.read_text()[-3000:]
                    if process.poll() is not None:
                        process = sink.start()
                    time.sleep(0.05)
                victim = cluster.brokers[chance.choice(list(cluster.brokers))]
                victim.kill()
                time.sleep(chance.random())
                if chance.random() < 0.5:
                    process.kill()
                    process.wait()
                victim.start()
                cluster.wait_for_all_brokers()
        finally:
            process.kill()
            process.wait()
        last = sink.done + 5
        deadline = time.monotonic() + 100
        while sink.done < last:
            assert time.monotonic() < deadline, sink.log.read_text()[-3000:]
            sink.start(last).wait(90)
        expected = {
            f"{batch}-{task}".encode() for batch in range(last + 1) for task in range(TASKS)
        }
        found: Counter[bytes | None] = Counter()
        deadline = time.monotonic() + 60
        while found.keys() != expected:
            assert time.monotonic() < deadline, sorted(expected - found.keys())[:9]
            found = Counter(committed_values(cluster.bootstrap, TOPIC, PARTITIONS))
        assert {value: count for value, count in found.items() if count > 1} == {}
