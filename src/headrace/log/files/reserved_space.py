"""Reserves disk space behind the end of a growing file (Linux), so that appends need not allocate it one by one.

The kernel spends less on a large append then. The size of the file does not change; `ftruncate` to that size gives back
what was not used. A file that is small, or on a disk that is nearly full, takes no more than it needs.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Final

RESERVE_FROM_BYTES: Final = 1024 * 1024  # the size at which a file is expected to go on growing
_MOST_BYTES: Final = 32 * 1024 * 1024
_KEEP_FREE_BYTES: Final = 4 * 1024 * 1024 * 1024  # for others
_NOT_AGAIN: Final = 1 << 62
_FALLOC_FL_KEEP_SIZE: Final = 1


def reserve(descriptor: int, size: int) -> int:
    """Reserve space behind a file of `size` bytes. Returns the size beyond which to call again."""
    volume = os.fstatvfs(descriptor)
    if volume.f_bavail * volume.f_frsize < _KEEP_FREE_BYTES:
        return size + _MOST_BYTES
    ahead = min(size, _MOST_BYTES)
    return size + ahead if _fallocate()(descriptor, size, ahead) else _NOT_AGAIN


@cache
def _fallocate() -> Callable[[int, int, int], bool]:
    import ctypes  # slow to import, and not needed for small files

    library = ctypes.CDLL(None)
    if not hasattr(library, "fallocate"):
        return lambda descriptor, start, length: False
    call = library.fallocate
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return lambda descriptor, start, length: (
        call(descriptor, _FALLOC_FL_KEEP_SIZE, start, length) == 0
    )
