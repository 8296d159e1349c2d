"""A hundred thousand inputs, good and bad: the broker lives, stays small, and serves a bystander.

HEADRACE_FUZZ_SEED and HEADRACE_FUZZ_COUNT change what is sent; a failure names the seed.
"""

import asyncio
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from headrace.broker.main import new_loop
from headrace.client.connection import Connection
from tests.robustness.attack import Attack, Fate
from tests.robustness.bystander import Bystander
from tests.robustness.fuzz_inputs import FuzzInputs, Input, Kind
from tests.robustness.fuzz_values import TOPICS
from tests.robustness.wire_calls import create_topic
from tests.support.headrace_process import HeadraceProcess
from tests.support.process_memory import MIB, MemoryWatch

COUNT = int(os.environ.get("HEADRACE_FUZZ_COUNT", "100000"))
SEED = int(os.environ.get("HEADRACE_FUZZ_SEED", str(random.SystemRandom().getrandbits(32))))
CONNECTIONS = 16
MOST_GROWTH_BYTES = 200 * MIB
SLOWEST_ROUND_S = 20.0  # the machine may be busy; a broker that hangs is what this finds
BUG = re.compile(r"Traceback|v\d+ failed| ERROR ")


def test_a_hundred_thousand_inputs(tmp_path: Path) -> None:
    settings = {"log.retention.check.interval.ms": "500"}  # so that deleting goes on meanwhile
    with HeadraceProcess(tmp_path / "broker", properties=settings) as broker:
        with Connection("127.0.0.1", broker.port) as connection:
            topic_ids = [create_topic(connection, name, partitions=2) for name in TOPICS]
        inputs = FuzzInputs(SEED, topic_ids)
        attack = Attack(broker.port, all_of(inputs), connections=CONNECTIONS)
        with (
            MemoryWatch(broker.pid) as memory,
            Bystander(broker.port, "bystander") as bystander,
            asyncio.Runner(loop_factory=new_loop()) as runner,
        ):
            toll = runner.run(attack.run())
    log = (tmp_path / "broker" / "headrace.log").read_text(errors="replace")
    bug = BUG.search(log)
    story = "\n".join(
        (
            f"HEADRACE_FUZZ_SEED={SEED} HEADRACE_FUZZ_COUNT={COUNT}",
            *(
                f"{kind.value:12} {', '.join(f'{toll.fates[kind, fate]} {fate.value}' for fate in Fate)}"
                for kind in Kind
            ),
            f"memory grew by {memory.growth_bytes / MIB:.0f} MiB",
            f"bystander: {bystander.rounds} rounds, the slowest {bystander.slowest_round_s:.2f} s",
            log[max(0, bug.start() - 500) : bug.start() + 3000] if bug else "no bug in the log",
            *toll.complaints[:20],
        )
    )
    sys.stdout.write(f"{story}\n")  # `pytest -s` shows it after a long run that passed
    assert not toll.complaints, story
    assert bug is None, story
    assert toll.judged == COUNT, story
    assert memory.growth_bytes < MOST_GROWTH_BYTES, story
    assert bystander.rounds > 0, story
    assert bystander.slowest_round_s < SLOWEST_ROUND_S, story
    # Or the inputs would not be what they are meant to be.
    assert toll.fates[Kind.WELL_FORMED, Fate.ANSWERED] > 0.4 * COUNT, story
    assert toll.of(Fate.CLOSED) > 0.2 * COUNT, story


def all_of(inputs: FuzzInputs) -> Iterator[Input]:
    return map(inputs.make, range(COUNT))
