"""Memory that costs every broker the same, on a virtual machine that shares its memory with others.

Such a machine gives memory that is free back to its host, and gets it again page by page, as it is touched: each costs ten
microseconds or more, several times what copying into it does. Who writes files into such memory pays for the host, and
whether that is one broker or the other is chance. So all free memory is touched once, and then let go of but for a
page in every two megabytes: a machine gives nothing back but large blocks, and there are none. Pages that lie in a
pipe cannot be moved, so the kernel cannot make large blocks of small ones either.
"""

import ctypes
import fcntl
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

BLOCK_BYTES = 2 * 1024 * 1024
LEFT_BYTES = 1536 * 1024 * 1024  # for whoever needs memory meanwhile
MOST_BYTES = 64 * 1024**3
_MADV_POPULATE_WRITE = 23
_PIPE_BYTES = 1024 * 1024


class _Piece(ctypes.Structure):
    """What writev(2) calls an iovec."""

    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


class SteadyMemory:
    """Holds some pages from entry to exit.

    On every machine: whether it makes a difference cannot be seen from a sample, which may be memory that was just in use.
    """

    def __init__(self, say: Callable[[str], None] = print) -> None:
        self._say = say
        self._pipes: list[int] = []

    def __enter__(self) -> Self:
        count = min(available_memory_bytes() - LEFT_BYTES, MOST_BYTES) // BLOCK_BYTES * BLOCK_BYTES
        if count > 0:
            self._say(f"touching {count / 1e9:.0f} GB of memory, so that all of it costs the same")
            with _touched(count) as memory:
                self._hold(memory)
        return self

    def _hold(self, memory: mmap.mmap) -> None:
        """A page of each block."""
        vmsplice = ctypes.CDLL(None, use_errno=True).vmsplice
        view = (ctypes.c_char * len(memory)).from_buffer(memory)
        start = ctypes.addressof(view)
        room = 0
        for position in range(0, len(memory), BLOCK_BYTES):
            if room == 0:
                reader, writer = os.pipe()
                self._pipes += [reader, writer]
                room = _widened(writer) // mmap.PAGESIZE
            page = _Piece(start + position, mmap.PAGESIZE)
            if vmsplice(writer, ctypes.byref(page), 1, 0) != mmap.PAGESIZE:
                break  # what is held so far has to do
            room -= 1
        del view  # or the memory could not be given back

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for descriptor in self._pipes:
            os.close(descriptor)
        self._pipes.clear()


def _widened(pipe: int) -> int:
    """A pipe's room in bytes, as much as we may have."""
    try:
        return fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except PermissionError:
        return fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)


def _touched(count: int) -> mmap.mmap:
    memory = mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    memory.madvise(_MADV_POPULATE_WRITE)
    return memory


def available_memory_bytes() -> int:
    """What could be had, page cache included."""
    return available_memory_in(Path("/proc/meminfo").read_text())


def available_memory_in(meminfo: str) -> int:
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.removesuffix(" kB")) * 1024
    raise ValueError("no MemAvailable in /proc/meminfo")
