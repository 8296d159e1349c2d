"""kill -9 of the driver at random moments, at least once: no event is lost, and only a batch that was under way may come twice."""

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.pipelines.pipeline_process import call, kill, start
from tests.pipelines.queries import eventually
from tests.support.spark_topics import Topics

ROUNDS = int(os.environ.get("HEADRACE_ROUNDS", "3"))
EVENTS_A_ROUND = 400
PORTION = 40

COPY = f"""
from headrace.pipelines.pipeline import flow, source, topic
source("numbers", topic("numbers", valueFormat="string", maxOffsetsPerTrigger={PORTION}))

@flow(into=topic("copies", deliveryGuarantee="at-least-once"))
def copy(numbers):
    return numbers.select("key", "value")
"""


@pytest.mark.timeout(900)
def test_no_event_is_lost_when_drivers_die(own_topics: Topics, tmp_path: Path) -> None:
    """The source starts at `latest`: a starting point that moves with every restart would lose most of them."""
    path, state = tmp_path / "copy.py", tmp_path / "state"
    path.write_text(COPY)
    own_topics.create_named("numbers", 2)
    own_topics.create_named("copies", 2)
    own_topics.send("numbers", ["before"] * 10)
    chance = random.Random(20260301)
    sent = 0

    first_commit = state / "copy" / "checkpoints" / "copy" / "commits" / "0"
    process = start(path, own_topics, state)
    try:
        eventually(first_commit.exists, "no first batch")
        for _ in range(ROUNDS):
            values = [str(number) for number in range(sent, sent + EVENTS_A_ROUND)]
            sent += EVENTS_A_ROUND
            before = len(own_topics.read("copies"))
            own_topics.send("numbers", values)
            eventually(lambda: len(own_topics.read("copies")) > before, "nothing moves")  # noqa: B023 - called at once
            time.sleep(chance.random())
            kill(process)
            process = start(path, own_topics, state)
        eventually(lambda: len(set(own_topics.values("copies"))) >= sent, "events are missing")
    finally:
        kill(process)
    assert call("pipeline", "status", "copy", state=state).stdout.startswith("copy: died")
    copies = Counter(own_topics.values("copies"))
    assert set(copies) == {b"%d" % number for number in range(sent)}, (
        "all of them, and nothing from before the start"
    )
    doubles = sum(count - 1 for count in copies.values())
    assert doubles <= ROUNDS * PORTION, "only the batch under way may be repeated"
