"""kill -9 of the driver at random moments, with tasks that fail at their first attempt: each input once, to a reader of committed data."""

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.pipelines.pipeline_process import kill, start
from tests.pipelines.queries import eventually
from tests.support.committed_records import committed_values
from tests.support.spark_topics import Topics

ROUNDS = int(os.environ.get("HEADRACE_ROUNDS", "3"))
EVENTS_A_ROUND = 600
PARTITIONS = 3

COPY = """
import random

from pyspark import TaskContext

from headrace.pipelines.pipeline import flow, source, topic

source("numbers", topic("numbers", valueFormat="string", startingOffsets="earliest", maxOffsetsPerTrigger=30,
                        minPartitions="3"))


@flow(into=topic("copies"))
def copy(numbers):
    def sometimes_failing(batches):
        for batch in batches:
            yield batch
        if TaskContext.get().attemptNumber() == 0 and random.random() < 0.05:
            raise RuntimeError("this attempt fails when its rows are written")

    return numbers.select("value").mapInArrow(sometimes_failing, "value string")
"""


@pytest.mark.timeout(60 * ROUNDS + 600)
def test_each_input_is_written_once_whenever_drivers_die(
    own_topics: Topics, tmp_path: Path
) -> None:
    path, state = tmp_path / "copy.py", tmp_path / "state"
    path.write_text(COPY)
    own_topics.create_named("numbers", PARTITIONS)
    own_topics.create_named("copies", PARTITIONS)
    chance = random.Random(int(os.environ.get("HEADRACE_SEED", "20261118")))
    sent = 0
    more = ("--master", "local[2,4]")  # four attempts of a task

    def copies() -> list[bytes | None]:
        return committed_values(own_topics.bootstrap_servers, "copies", PARTITIONS)

    process = start(path, own_topics, state, *more)
    try:
        for _ in range(ROUNDS):
            before = len(copies())
            values = [str(number) for number in range(sent, sent + EVENTS_A_ROUND)]
            sent += EVENTS_A_ROUND
            own_topics.send("numbers", values)
            eventually(lambda: len(copies()) > before, "nothing moves")  # noqa: B023 - called at once
            time.sleep(chance.random() * 2)
            kill(process)
            process = start(path, own_topics, state, *more)
        eventually(lambda: len(copies()) >= sent, "events are missing")
    finally:
        kill(process)
    found = Counter(copies())
    doubles = {value: count for value, count in found.items() if count > 1}
    assert not doubles
    assert set(found) == {b"%d" % number for number in range(sent)}
