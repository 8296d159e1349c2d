"""What the operating system and the interpreter say about this process. A rim module.

Figures that a system does not offer are None. Must be read in the thread of the event loop, whose time it reports.
"""

import gc
import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc/self")
# Counted after the name of the command, which may hold blanks and parentheses.
_STAT_THREADS: Final = 17
_STAT_START_TICKS: Final = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStats:
    """One look at the process."""

    cpu_seconds: float
    loop_cpu_seconds: float
    gc_generations: tuple[dict[str, int], ...]
    start_time_seconds: float | None = None
    threads: int | None = None
    open_fds: int | None = None
    max_fds: int | None = None
    resident_bytes: int | None = None
    virtual_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None


def read_process_stats() -> ProcessStats:
    """The figures as of now."""
    memory = _words("statm")
    disk = _disk_io()
    stat = _stat()
    return ProcessStats(
        cpu_seconds=time.process_time(),
        loop_cpu_seconds=time.thread_time(),
        gc_generations=tuple(gc.get_stats()),
        start_time_seconds=_start_time_seconds(),
        threads=int(stat[_STAT_THREADS]) if stat else None,
        open_fds=_open_fds(),
        max_fds=_max_fds(),
        resident_bytes=int(memory[1]) * os.sysconf("SC_PAGE_SIZE") if memory else None,
        virtual_bytes=int(memory[0]) * os.sysconf("SC_PAGE_SIZE") if memory else None,
        disk_read_bytes=disk.get("read_bytes:"),
        disk_write_bytes=disk.get("write_bytes:"),
    )


def _words(name: str) -> list[str]:
    try:
        return (_PROC / name).read_text().split()
    except OSError:
        return []


def _stat() -> list[str]:
    try:
        return (_PROC / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _disk_io() -> dict[str, int]:
    words = _words("io")
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def _open_fds() -> int | None:
    directory = _PROC / "fd"
    try:
        # Linux 6.2 and later say the number here; to list tens of thousands would hold up the loop.
        return directory.stat().st_size or sum(1 for _ in directory.iterdir())
    except OSError:
        return None


def _max_fds() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@cache
def _start_time_seconds() -> float | None:
    """Fixed at the first look: it must not tremble with the clock."""
    stat = _stat()
    if not stat:
        return None
    since_boot_s = int(stat[_STAT_START_TICKS]) / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot_s)
