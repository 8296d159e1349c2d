import fcntl
import mmap
import termios

import pytest

from bench.beside_kafka import steady_memory
from bench.beside_kafka.steady_memory import BLOCK_BYTES, SteadyMemory, available_memory_in


def test_available_memory_is_what_could_be_had() -> None:
    assert available_memory_in("MemTotal: 100 kB\nMemFree: 7 kB\nMemAvailable:  90 kB\n") == 92160


def hold(monkeypatch: pytest.MonkeyPatch) -> tuple[SteadyMemory, list[str]]:
    available = 8 * BLOCK_BYTES + steady_memory.LEFT_BYTES + 1
    monkeypatch.setattr(steady_memory, "available_memory_bytes", lambda: available)
    said: list[str] = []
    return SteadyMemory(said.append), said


def test_all_memory_but_some_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    monkeypatch.setattr(SteadyMemory, "_hold", lambda _, memory: held.append(len(memory)))
    memory, said = hold(monkeypatch)
    with memory:
        assert held == [8 * BLOCK_BYTES]
    assert len(said) == 1


def test_a_page_of_each_block_lies_in_pipes_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, _ = hold(monkeypatch)
    with memory:
        reader, *_ = memory._pipes
        waiting = bytearray(8)
        fcntl.ioctl(reader, termios.FIONREAD, waiting)
        assert int.from_bytes(waiting[:4], "little") == 8 * mmap.PAGESIZE
    assert not memory._pipes
