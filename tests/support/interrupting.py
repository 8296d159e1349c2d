"""Ctrl-C on a program's own terminal, and what is left afterwards: of its processes, of the terminal's settings, of its screen.

Every process that the program starts, in whatever session and by whatever way, inherits a mark in its environment. By that mark the
program's leftovers are told from what others run on this machine.
"""

import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import psutil

from tools.pseudo_terminal import CTRL_C, PseudoTerminal

MARK = "HEADRACE_TEST_MARK"
INTERRUPTED = 130
_GRACE_S = 5.0  # for a Java whose parent has gone
_SCREEN_MODES = (("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h"))  # on, off

# Tells when the first module of the tool is looked for: what comes before is the interpreter's.
BEGUN = "<begun>"
_PROGRAM = f"""
import os, sys
from headrace.cli.main import main

def listen(event, details, told=[]):
    if event == "import" and details[0].startswith("headrace.cli.") and not told:
        told.append(os.write(1, {BEGUN.encode()!r}))

sys.addaudithook(listen)
sys.exit(main())
"""

Moment = Callable[[str], bool]


def headrace_that_tells(words: Sequence[str]) -> list[str]:
    """The command line of a tool that writes BEGUN when it begins."""
    return [sys.executable, "-c", _PROGRAM, *words]


class Later:
    """A moment: some seconds after something has been on the terminal."""

    def __init__(self, sight: str, seconds: float = 0.0) -> None:
        self._sight = sight
        self._seconds = seconds
        self._seen_s = 0.0

    def __str__(self) -> str:
        return f"{self._seconds:g} s after {self._sight!r}"

    def __call__(self, written: str) -> bool:
        if not self._seen_s and self._sight in written:
            self._seen_s = time.monotonic()
        return self._seen_s > 0 and time.monotonic() >= self._seen_s + self._seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """How a program ended that got a Ctrl-C."""

    story: str
    written: str
    exit_code: int
    seconds_to_end: float
    left_behind: list[str]
    is_terminal_as_before: bool

    def check(self, *exit_codes: int) -> None:
        """It ended with one of these, without a stack trace, and left nothing behind."""
        assert self.exit_code in (exit_codes or (INTERRUPTED,)), f"{self}"
        for word in ("Traceback", "KeyboardInterrupt", "Exception ignored", "Exception in thread"):
            assert word not in self.written, f"{self}"
        assert self.left_behind == [], f"{self}"
        assert self.is_terminal_as_before, f"{self}"
        for on, off in _SCREEN_MODES:
            assert self.written.rfind(on) <= self.written.rfind(off), f"{self}"


def interrupt(
    words: Sequence[str],
    is_time: Moment,
    *,
    environ: Mapping[str, str] | None = None,
    timeout_s: float = 60,
) -> Interrupted:
    """Run a program, press Ctrl-C once it is time, wait for its end."""
    mark = uuid.uuid4().hex
    with PseudoTerminal(words, environ={**(environ or {}), MARK: mark}) as terminal:
        terminal.read_until(is_time, timeout_s)
        pressed_s = time.monotonic()
        terminal.type(CTRL_C)
        code = terminal.wait(timeout_s)
        return Interrupted(
            story=f"{' '.join(words[-8:])}, {is_time}",
            written=terminal.text,
            exit_code=code if code >= 0 else 128 - code,  # as a shell tells it
            seconds_to_end=time.monotonic() - pressed_s,
            left_behind=left_behind(mark),
            is_terminal_as_before=terminal.settings == terminal.settings_before,
        )


def left_behind(mark: str, grace_s: float = _GRACE_S) -> list[str]:
    """The command lines of the processes with a mark that do not end within some seconds."""
    deadline = time.monotonic() + grace_s
    while (found := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def marked(mark: str) -> list[str]:
    """The command lines of the processes with a mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:  # gone meanwhile, or somebody else's
            continue
    return found
