"""Processes that a run of the tests left on the machine: those with its mark that nobody of the run owns any more.

Every process that a test starts, in whatever session and by whatever way, inherits the mark in its environment. What is still a
descendant of this process is not left behind: it ends with this process, or the test that started it is not over.
"""

import time
from typing import Final

import psutil

MARK: Final = "HEADRACE_TEST_RUN"
GRACE_S = 30.0  # a broker whose owner has gone hands over first; Spark's Java removes its files


def wait_for_end(mark: str) -> list[str]:
    """Wait until nothing is left behind; at the end of the time, what is."""
    deadline = time.monotonic() + GRACE_S
    while (found := left_behind(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def left_behind(mark: str) -> list[str]:
    """Number and command line of each process with this mark that is no relative of ours."""
    me = psutil.Process()
    family = {each.pid for each in (me, *me.parents(), *me.children(recursive=True))}
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid not in family and process.environ().get(MARK) == mark:
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
        except psutil.Error:  # gone meanwhile, or somebody else's
            continue
    return found
