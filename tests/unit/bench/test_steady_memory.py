import fcntl
import mmap
import termios

import pytest

from bench.beside_kafka import steady_memory
from bench.beside_kafka.steady_memory import BLOCK_BYTES, SteadyMemory, available_memory_in


def test_available_memory_is_what_could_be_had() -> None:
    assert available_memory_in("MemTotal: 100 kB\nMemFree: 7 kB\nMemAvailable:  90 kB\n") == 92160


def hold(monkeypatch: pytest.MonkeyPatch, *, touch_s: float) -> tuple[SteadyMemory, list[str]]:
    available = 8 * BLOCK_BYTES + steady_memory.LEFT_BYTES + 1
    monkeypatch.setattr(steady_memory, "available_memory_bytes", lambda: available)
    monkeypatch.setattr(steady_memory, "seconds_to_touch", lambda _: touch_s)
    said: list[str] = []
    return SteadyMemory(said.append), said


def test_a_page_of_each_block_is_held_where_memory_costs_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[int] = []
    monkeypatch.setattr(SteadyMemory, "_hold", lambda _, memory: held.append(len(memory)))
    memory, said = hold(monkeypatch, touch_s=1.0)
    with memory:
        assert held == [8 * BLOCK_BYTES]
    assert len(said) == 1


def test_where_it_costs_nothing_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, said = hold(monkeypatch, touch_s=0.01)
    with memory:
        assert not memory._pipes
    assert not said


def test_what_is_held_lies_in_pipes_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, _ = hold(monkeypatch, touch_s=1.0)
    with memory:
        reader, *_ = memory._pipes
        waiting = bytearray(8)
        fcntl.ioctl(reader, termios.FIONREAD, waiting)
        assert int.from_bytes(waiting[:4], "little") == 8 * mmap.PAGESIZE
    assert not memory._pipes
