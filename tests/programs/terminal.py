"""A program in a terminal of its own, as a person has it: what it draws, what Ctrl-C does to it, what it leaves behind."""

import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fcntl import ioctl

ROWS, COLUMNS = 40, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalRun:
    """How it went."""

    written: str
    exit_code: int
    seconds_to_end: float


def run_in_terminal(
    words: Sequence[str], is_time: Callable[[str], bool], *, timeout_s: float = 60
) -> TerminalRun:
    """Run a program and press Ctrl-C once `is_time` says so of what it has written; wait for its end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
        os.execv(words[0], list(words))
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    deadline = time.monotonic() + timeout_s
    written, pressed_s = b"", 0.0
    try:
        while True:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    more = os.read(terminal, 1 << 16)
                except OSError:
                    break
                if not more:
                    break
                written += more
            if not pressed_s and is_time(written.decode(errors="replace")):
                pressed_s = time.monotonic()
                os.write(terminal, b"\x03")
            assert time.monotonic() < deadline, written.decode(errors="replace")
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    return TerminalRun(
        written=written.decode(errors="replace"),
        exit_code=os.waitstatus_to_exitcode(status),
        seconds_to_end=time.monotonic() - pressed_s,
    )


def descendants_of(directory: str) -> list[int]:
    """Processes whose command line names a directory: those that a tool started on its data."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if any(directory in word for word in process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
