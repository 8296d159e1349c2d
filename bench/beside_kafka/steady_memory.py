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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

BLOCK_BYTES = 2 * 1024 * 1024
LEFT_BYTES = 1536 * 1024 * 1024  # for whoever needs memory meanwhile
MOST_BYTES = 64 * 1024**3
_MADV_POPULATE_WRITE = 23
_PIPE_BYTES = 1024 * 1024


class _Piece(ctypes.Structure):
    """What writev(2) calls an iovec."""

    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


@contextmanager
def steady_memory(say: Callable[[str], None] = print) -> Iterator[None]:
    """Hold some pages while a block runs.

    On every machine: whether it makes a difference cannot be seen from a sample, which may be memory that was just in use.
    """
    count = min(available_memory_bytes() - LEFT_BYTES, MOST_BYTES) // BLOCK_BYTES * BLOCK_BYTES
    with ExitStack() as pipes:
        if count > 0:
            say(f"touching {count / 1e9:.0f} GB of memory, so that all of it costs the same")
            with _touched(count) as memory:
                hold(memory, pipes)
        yield


def hold(memory: mmap.mmap, pipes: ExitStack) -> int:
    """Put a page of each block into a pipe, until the pipes are closed. Returns how many; there is a limit for each user."""
    vmsplice = ctypes.CDLL(None, use_errno=True).vmsplice
    view = (ctypes.c_char * len(memory)).from_buffer(memory)
    start = ctypes.addressof(view)
    writer, room, held = -1, 0, 0
    for position in range(0, len(memory), BLOCK_BYTES):
        if room == 0:
            reader, writer = os.pipe()
            pipes.callback(os.close, reader)
            pipes.callback(os.close, writer)
            try:
                room = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES) // mmap.PAGESIZE
            except PermissionError:
                break
        page = _Piece(start + position, mmap.PAGESIZE)
        if vmsplice(writer, ctypes.byref(page), 1, 0) != mmap.PAGESIZE:
            break
        room -= 1
        held += 1
    del view  # or the memory could not be given back
    return held


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
