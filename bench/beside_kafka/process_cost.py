"""What a run costs the broker: seconds of CPU from its clock, memory at its largest from /proc.

Two memories are told apart. *Anonymous* memory (RssAnon + RssShmem) is what the process took for itself: a heap. The
whole resident set (VmHWM) also counts pages of files that happen to be mapped; those belong to the page cache, can be
dropped at any moment, and both systems have them in different shares, so the first is compared and the second shown.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

SAMPLE_S = 0.05
REST_S = 0.1
RESTING_SHARE = 0.1  # of a core
REST_AT_MOST_S = 10.0
KIB = 1024
MIB = 1024 * 1024
# Linux: a process's clock is its inverted id, with the kind of clock in the last three bits.
_CPUCLOCK_SCHED = 2
_RESET_PEAK = "5"  # proc(5): clear_refs with 5 sets VmHWM to what is resident now


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes of one process at one moment."""

    anonymous_bytes: int
    resident_bytes: int
    peak_resident_bytes: int


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads, those that have ended too.

    From the process's own clock (clock_getcpuclockid(3)): /proc has hundredths of a second, as much as a short run takes.
    """
    return time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)


def memory(pid: int) -> Memory:
    return memory_in(Path(f"/proc/{pid}/status").read_text())


def memory_in(status: str) -> Memory:
    found = {}
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            found[name] = int(value.removesuffix(" kB")) * KIB
    return Memory(
        anonymous_bytes=found["RssAnon"] + found["RssShmem"],
        resident_bytes=found["VmRSS"],
        peak_resident_bytes=found["VmHWM"],
    )


def wait_for_rest(pids: Sequence[int]) -> None:
    """Until some processes do next to nothing; for a while at most.

    What is still being done of an earlier run, such as deleting its files or compiling, is not a cost of the next one.
    """
    deadline = time.monotonic() + REST_AT_MOST_S
    while time.monotonic() < deadline:
        before = sum(map(cpu_seconds, pids))
        time.sleep(REST_S)
        if sum(map(cpu_seconds, pids)) - before < REST_S * RESTING_SHARE:
            return


class Meter:
    """Measures some processes while a block runs; the figures are their sums."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = list(pids)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._cpu_before = 0.0
        self.cpu_s = 0.0
        self.peak_anonymous_bytes = 0
        self.peak_resident_bytes = 0

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        now = sum(memory(pid).anonymous_bytes for pid in self._pids)
        self.peak_anonymous_bytes = max(self.peak_anonymous_bytes, now)

    def _cpu(self) -> float:
        return sum(map(cpu_seconds, self._pids))

    def __enter__(self) -> Self:
        for pid in self._pids:
            Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK)
        self._cpu_before = self._cpu()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if error is None:
            self.cpu_s = self._cpu() - self._cpu_before
            self._sample()
            self.peak_resident_bytes = sum(memory(pid).peak_resident_bytes for pid in self._pids)
