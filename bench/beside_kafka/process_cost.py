"""What a run costs the broker, read from /proc: seconds of CPU and memory at its largest.

Two memories are told apart. *Anonymous* memory (RssAnon + RssShmem) is what the process took for itself: a heap. The
whole resident set (VmHWM) also counts pages of files that happen to be mapped; those belong to the page cache, can be
dropped at any moment, and both systems have them in different shares, so the first is compared and the second shown.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

SAMPLE_S = 0.05
KIB = 1024
MIB = 1024 * 1024
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_RESET_PEAK = "5"  # proc(5): clear_refs with 5 sets VmHWM to what is resident now


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes of one process at one moment."""

    anonymous_bytes: int
    resident_bytes: int
    peak_resident_bytes: int


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads, to a hundredth of a second."""
    return cpu_seconds_in(Path(f"/proc/{pid}/stat").read_text())


def cpu_seconds_in(stat: str) -> float:
    fields = stat.rpartition(")")[2].split()  # the name before it may hold blanks
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


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
        return sum(cpu_seconds(pid) for pid in self._pids)

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
