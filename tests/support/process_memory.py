"""How much memory a process holds, as the operating system counts it, once or over a stretch of time."""

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

MIB = 1024 * 1024
_SAMPLE_S = 0.05


def resident_bytes(pid: int) -> int:
    """Pages in memory that belong to the process alone; files that it maps are the page cache's."""
    words = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(words[1]) - int(words[2])) * os.sysconf("SC_PAGE_SIZE")


class MemoryWatch:
    """Samples a process while a block runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.before_bytes = resident_bytes(pid)
        self.peak_bytes = self.before_bytes

    @property
    def growth_bytes(self) -> int:
        """By how much it was larger, at its largest, than before."""
        return self.peak_bytes - self.before_bytes

    def _run(self) -> None:
        while not self._stop.wait(_SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, resident_bytes(self._pid))

    def __enter__(self) -> Self:
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
