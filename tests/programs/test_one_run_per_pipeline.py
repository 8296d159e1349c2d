"""Many processes that begin a run of one pipeline at the same moment: one of them runs it."""

import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from headrace.pipelines.runs.run_state import RunError, RunState

PROCESSES, ROUNDS = 6, 10


def begin(directory: Path, barrier: Barrier, found: Any) -> None:
    for number in range(ROUNDS):
        state = RunState.of(directory, f"pipeline-{number}")
        barrier.wait(60)
        try:
            state.begin(file="words.py")
        except RunError:
            found.put((number, "refused"))
        else:
            found.put((number, "begun"))
        barrier.wait(60)  # a process that has ended runs nothing


def test_one_of_them_wins(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier, found = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=begin, args=(tmp_path, barrier, found)) for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    outcomes = [found.get(timeout=60) for _ in range(PROCESSES * ROUNDS)]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    begun = sorted(number for number, outcome in outcomes if outcome == "begun")
    assert begun == list(range(ROUNDS))
