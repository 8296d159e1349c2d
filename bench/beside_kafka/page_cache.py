"""Memory as on a machine that has been up for a while: full of page cache, hardly any of it free.

A virtual machine gives memory that is free back to its host, and gets it again page by page, as it is touched: each costs
ten microseconds or more, several times what copying into it does. Who writes files into such memory pays for the
host, and whether that is one broker or the other is chance. So memory is filled before a broker is started, by reading the holes
of a sparse file: the kernel drops these pages again as soon as somebody needs room, and the host does not have to be asked.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

STEP_BYTES = 256 * 1024 * 1024
# A step that takes less than this from what is free took it from older pages of the cache: memory is full.
TAKEN_BYTES = STEP_BYTES // 4
HOLES_BYTES = 1 << 40
_MEMINFO = Path("/proc/meminfo")


class FullPageCache:
    """Fills memory again and again. What it took is free at the end."""

    def __init__(self, free_bytes: Callable[[], int] | None = None) -> None:
        self._free_bytes = free_bytes or free_memory_bytes
        self._holes = tempfile.TemporaryFile(prefix="headrace-bench-holes-")  # noqa: SIM115 - until __exit__
        self._holes.truncate(HOLES_BYTES)
        self._buffer = bytearray(1024 * 1024)
        self._position = 0

    def fill(self) -> int:
        """Until nothing more is free than the kernel keeps so. Returns how many bytes were read for that."""
        began = self._position
        before = self._free_bytes()
        while self._position + STEP_BYTES <= HOLES_BYTES:
            self._read_on()
            after = self._free_bytes()
            if before - after < TAKEN_BYTES:
                break
            before = after
        return self._position - began

    def _read_on(self) -> None:
        end = self._position + STEP_BYTES
        while self._position < end:
            self._position += os.preadv(self._holes.fileno(), [self._buffer], self._position)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._holes.close()


def free_memory_bytes() -> int:
    """What nobody uses, not even as a cache."""
    return free_memory_in(_MEMINFO.read_text())


def free_memory_in(meminfo: str) -> int:
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        if name == "MemFree":
            return int(value.removesuffix(" kB")) * 1024
    raise ValueError("no MemFree in /proc/meminfo")
