"""The wall clock, as a parameter: milliseconds since the epoch."""

from collections.abc import Callable
from time import time_ns
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]


def wall_clock() -> int:
    """Now."""
    return time_ns() // 1_000_000
