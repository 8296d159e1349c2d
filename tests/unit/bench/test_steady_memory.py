import fcntl
import mmap
import os
import termios
from contextlib import ExitStack

import pytest

from bench.beside_kafka import steady_memory
from bench.beside_kafka.steady_memory import BLOCK_BYTES, LEFT_BYTES, available_memory_in


def test_available_memory_is_what_could_be_had() -> None:
    assert available_memory_in("MemTotal: 100 kB\nMemFree: 7 kB\nMemAvailable:  90 kB\n") == 92160


def test_all_memory_but_some_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    said: list[str] = []
    available = 8 * BLOCK_BYTES + LEFT_BYTES + 1
    monkeypatch.setattr(steady_memory, "available_memory_bytes", lambda: available)
    monkeypatch.setattr(steady_memory, "hold", lambda memory, _: held.append(len(memory)))
    with steady_memory.steady_memory(said.append):
        assert held == [8 * BLOCK_BYTES]
    assert len(said) == 1


def test_a_page_of_each_block_lies_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    pipes: list[tuple[int, int]] = []
    pipe = os.pipe

    def noted() -> tuple[int, int]:
        pipes.append(pipe())
        return pipes[-1]

    monkeypatch.setattr(os, "pipe", noted)
    with ExitStack() as lives, mmap.mmap(-1, 8 * BLOCK_BYTES) as memory:
        assert steady_memory.hold(memory, lives) == 8
        waiting = bytearray(4)
        fcntl.ioctl(pipes[0][0], termios.FIONREAD, waiting)
        assert int.from_bytes(waiting, "little") == 8 * mmap.PAGESIZE
    with pytest.raises(OSError, match="Bad file descriptor"):
        fcntl.ioctl(pipes[0][0], termios.FIONREAD, waiting)
