"""Ending on a signal in good order: the work sees the wish to stop, finishes its step, and closes what it opened."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Has somebody asked this program to end?"""

    def __init__(self) -> None:
        self.signal_number = 0

    @property
    def is_made(self) -> bool:
        return self.signal_number != 0

    @property
    def exit_code(self) -> int:
        """What a shell shows for a program that a signal ended; 0 without one."""
        return 128 + self.signal_number if self.signal_number else 0


@contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """While this is open, SIGINT and SIGTERM make the request; a second one ends the program at once."""
    request = StopRequest()

    def note(number: int, _frame: FrameType | None) -> None:
        if request.is_made:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        request.signal_number = number

    old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """While this is open, Ctrl-C is a KeyboardInterrupt: for work with something to put in order at its end."""
    old = signal.getsignal(signal.SIGINT)
    if old is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
