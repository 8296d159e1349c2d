"""What a pipeline leaves on disk: a directory per pipeline, with its checkpoints, its log, who runs it and how it goes.

    <state directory>/<name>/checkpoints/<flow>/   Spark's
                            /tables/<table>/       tables of the pipeline
                            /spark.log             what Spark said
                            /run.json              process, file, start
                            /progress.json         the newest progress of each flow

Files are written aside and renamed, so that a reader never sees half of one. A process that died without a word is noticed by
its id and its start time.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace.errors import HeadraceError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_POLL_S: Final = 0.1


class RunError(HeadraceError):
    """A pipeline runs already, or does not run, or is not known."""


def default_directory() -> Path:
    """Where pipelines keep what they keep: HEADRACE_STATE_DIR, else the user's directory for such things."""
    given = os.environ.get("HEADRACE_STATE_DIR")
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "headrace" / "pipelines"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The directory of one pipeline."""

    directory: Path

    @classmethod
    def of(cls, state_directory: Path, name: str) -> RunState:
        if not _NAME.fullmatch(name):
            raise RunError(f"'{name}' is no name for a pipeline: letters, digits, '.', '_' and '-'")
        return cls(directory=state_directory.resolve() / name)

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def log_file(self) -> Path:
        return self.directory / "spark.log"

    def begin(self, *, file: str = "", **about: Any) -> None:
        """Note that this process runs the pipeline of this file now.

        Raises RunError where another process runs it, or where the directory holds the checkpoints of another file.
        """
        self.make_directory()
        with self._locked():
            runs = self.running_pid()
            if runs is not None and runs != os.getpid():
                raise RunError(f"pipeline {self.name} is run by process {runs} already")
            owner = self.run().get("file")
            if owner and file and owner != file and Path(owner).exists():
                raise RunError(
                    f"pipeline {self.name} is that of {owner}, whose checkpoints are in {self.directory}:"
                    f" give {file} another name with --name, or another --state-dir"
                )
            pid = os.getpid()
            run = {"pid": pid, "born": _born(pid), "started_s": time.time(), "file": file}
            self._write("run.json", run | about)
            self._write("progress.json", {})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """No other process begins a run of this pipeline meanwhile. The operating system unlocks what a dead process locked."""
        with (self.directory / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def make_directory(self) -> None:
        """Raises RunError where it cannot be made."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"{self.directory} cannot be made, where the pipeline would keep its state: {error.strerror}"
            ) from error

    def end(self, outcome: str) -> None:
        """Note how the run ended."""
        self._write(
            "run.json", {**self.run(), "pid": None, "ended_s": time.time(), "outcome": outcome}
        )

    def run(self) -> dict[str, Any]:
        return self._read("run.json")

    def running_pid(self) -> int | None:
        """The process that runs the pipeline, or None."""
        about = self.run()
        pid = about.get("pid")
        return pid if isinstance(pid, int) and _born(pid) == about.get("born") else None

    def report(self, progress: dict[str, Any]) -> None:
        self._write("progress.json", progress)

    def progress(self) -> dict[str, Any]:
        return self._read("progress.json")

    def outcome(self) -> str:
        """running, stopped, finished, failed; died, where nobody came to say."""
        if self.running_pid() is not None:
            return "running"
        about = self.run()
        return str(about.get("outcome") or ("died" if about else "never run"))

    def stop(self, timeout_s: float) -> bool:
        """Ask the process to stop, and wait. False where it did not within the time. Raises RunError."""
        pid = self.running_pid()
        if pid is None:
            raise RunError(f"pipeline {self.name} does not run")
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        while self.running_pid() is not None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _write(self, name: str, value: dict[str, Any]) -> None:
        aside = self.directory / f".{name}.{os.getpid()}"
        aside.write_text(json.dumps(value, indent=1))
        aside.replace(self.directory / name)

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.directory / name).read_text())
        except (OSError, ValueError):
            return {}
        return found


def known(state_directory: Path) -> list[RunState]:
    """Every pipeline that was run with this state directory."""
    if not state_directory.is_dir():
        return []
    found = (RunState(directory=each.resolve()) for each in sorted(state_directory.iterdir()))
    return [each for each in found if (each.directory / "run.json").exists()]


def _born(pid: int) -> str | None:
    """When a process was started, as the system tells it; None where there is no such process."""
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return None
    try:
        # The name in parentheses may hold spaces; the fields behind it do not.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        return "alive"
