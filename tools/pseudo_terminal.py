"""A program on a terminal of its own, as a person has it: what it draws, what keys do to it, what it leaves of the terminal.

For the pictures of docs/ and for tests. Started without a fork of this process, which may have threads.
"""

import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from fcntl import ioctl
from types import TracebackType
from typing import Final, Self

CTRL_C: Final = b"\x03"
_LOOK_AGAIN_S: Final = 0.02

# Takes the terminal that is its standard input for its own, so that Ctrl-C goes to it, and becomes the program. Signals do what they
# do in a person's shell, also where this process runs in the background of a script, which ignores them.
_ON_ITS_TERMINAL: Final = (
    "import fcntl, os, signal, sys, termios\n"
    "for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):\n"
    "    signal.signal(number, signal.SIG_DFL)\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


class PseudoTerminal:
    """Use as a context: the program has ended at its end. `written` is everything that came so far."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        rows: int = 40,
        columns: int = 120,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._master, self._slave = pty.openpty()
        ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.set_blocking(self._master, False)
        self.settings_before = self.settings
        self.written = b""
        size = {"COLUMNS": str(columns), "LINES": str(rows)}
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", _ON_ITS_TERMINAL, *words],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={**os.environ, "TERM": "xterm-256color", **size, **(environ or {})},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    @property
    def text(self) -> str:
        return self.written.decode(errors="replace")

    @property
    def settings(self) -> list[object]:
        """What `stty -a` would tell."""
        return list(termios.tcgetattr(self._slave))

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def read_until(self, is_enough: Callable[[str], bool], timeout_s: float = 60) -> None:
        """Read until what was written is enough, or the program has ended. Raises TimeoutError with what there is."""
        deadline = time.monotonic() + timeout_s
        while not is_enough(self.text):
            has_ended = self.process.poll() is not None
            if not self._read_some(0 if has_ended else _LOOK_AGAIN_S) and has_ended:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {timeout_s:g} s there is: {self.text}")

    def wait(self, timeout_s: float = 60) -> int:
        """Read until the program ends. Returns its exit code."""
        self.read_until(lambda _: False, timeout_s)
        return self.process.wait()

    def _read_some(self, wait_s: float) -> bool:
        if not select.select([self._master], [], [], wait_s)[0]:
            return False
        try:
            more = os.read(self._master, 1 << 16)
        except OSError:  # nobody has the other end open
            return False
        self.written += more
        return bool(more)
