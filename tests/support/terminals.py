"""The terminals of somebody who follows a tutorial: commands as they are printed, in a directory with `bin` and `config`.

Only ports and directories are other ones than printed, so that several runs can share a machine. Everything that was
started has ended when the terminals are closed.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.server_process import free_port, serves_kafka
from tools.pseudo_terminal import PseudoTerminal

REPOSITORY = Path(__file__).parents[2]
PATIENCE_S = 60
# Who dials before that may reach nobody, himself, or a server that takes the connection and never says a word.
_ZOOKEEPER_SERVES = "PrepRequestProcessor"
PRINTED_PORTS = ("2181", "8081", "8082", "9092", "9093", "9094", "9095")


class Terminal:
    """A command that goes on running; what it prints is in a file."""

    def __init__(self, process: subprocess.Popen[str], output: Path) -> None:
        self._process = process
        self._output = output

    @property
    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def type(self, *lines: str) -> None:
        assert self._process.stdin is not None
        for line in lines:
            self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """As `kill -9` does."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Press Control-C, and wait."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE_S)

    def close(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()


class TypedTerminal:
    """A program that prompts for lines, on a terminal of its own, with somebody at the keys."""

    def __init__(self, terminal: PseudoTerminal) -> None:
        self._terminal = terminal
        self._prompts = 0
        self._wait_for_prompt()

    def type(self, *lines: str) -> None:
        """Type lines, each when the program asks for it."""
        for line in lines:
            assert ">" not in line, "that is the prompt"
            self._terminal.type(f"{line}\n".encode())
            self._wait_for_prompt()

    def _wait_for_prompt(self) -> None:
        self._prompts += 1
        self._terminal.read_until(lambda text: text.count(">") >= self._prompts, PATIENCE_S)
        assert self._terminal.process.poll() is None, self._terminal.text

    def end(self) -> None:
        """Press Control-D, and wait: what was typed is written."""
        self._terminal.type(b"\x04")
        assert self._terminal.wait(PATIENCE_S) == 0, self._terminal.text

    def close(self) -> None:
        """End it, whatever it does."""
        self._terminal.__exit__(None, None, None)


class Terminals:
    """Use as a context."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ports = {printed: str(free_port()) for printed in PRINTED_PORTS}
        self._open: list[Terminal | TypedTerminal] = []
        for name in ("bin", "config"):
            shutil.copytree(REPOSITORY / name, directory / name)
        for file in (directory / "config").rglob("*.properties"):
            file.write_text(self._here(file.read_text()))
        # Without a word about it a broker listens on 9092, which here is another port.
        self.write(
            "config/server.properties", f"{printed('config/server.properties')}\nport=9092\n"
        )
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        # It would make `ps` cut its lines, as in no terminal of a person.
        self.environment.pop("COLUMNS", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for terminal in self._open:
            terminal.close()
        for process_id in self.daemon_ids():
            if is_alive(process_id):
                os.kill(process_id, signal.SIGKILL)
        if error is not None:
            error.add_note("\n".join(self._stories()))

    def _stories(self) -> list[str]:
        outputs = [
            *sorted(self.directory.glob("terminal-*.txt")),
            *sorted((self.directory / "logs").glob("*.out")),
        ]
        return [f"--- {path.name}\n{path.read_text()[-2000:]}" for path in outputs]

    def _here(self, text: str) -> str:
        """The printed text with this run's ports and directories."""
        ports = re.sub(r"\b(2181|808[12]|909[2-5])\b", lambda found: self._ports[found[0]], text)
        return re.sub(r"/tmp/(?=[a-z])", f"{self.directory}/data/", ports)

    def write(self, path: str, text: str) -> None:
        """Edit a file, as a tutorial tells."""
        (self.directory / path).write_text(self._here(text))

    def run(self, line: str, stdin: str = "") -> str:
        """A command that ends by itself, and well. Returns what it prints."""
        done = self._done(line, stdin)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def fail(self, line: str) -> str:
        """A command that ends by itself with 1. Returns everything that it says."""
        done = self._done(line, "")
        assert done.returncode == 1, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def _done(self, line: str, stdin: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["sh", "-c", self._here(line)],
            cwd=self.directory,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def start(self, line: str) -> Terminal:
        """A command in a terminal of its own."""
        output = self.directory / f"terminal-{len(self._open)}.txt"
        errors = self.directory / f"terminal-{len(self._open)}-errors.txt"
        with output.open("w") as stdout, errors.open("w") as stderr:
            process = subprocess.Popen(
                ["sh", "-c", f"exec {self._here(line)}"],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                text=True,
            )
        terminal = Terminal(process, output)
        self._open.append(terminal)
        return terminal

    def start_typing(self, line: str) -> TypedTerminal:
        """A command in a terminal of its own, in which lines are typed. It has prompted when this returns."""
        words = ["sh", "-c", f"cd '{self.directory}' && exec {self._here(line)}"]
        terminal = TypedTerminal(PseudoTerminal(words, environ=self.environment))
        self._open.append(terminal)
        return terminal

    def start_broker(self, line: str, port: str) -> Terminal:
        """A broker, which serves when this returns."""
        terminal = self.start(line)
        self.wait_for_broker(port)
        return terminal

    def wait_for_broker(self, port: str) -> None:
        wait_until(lambda: serves_kafka(int(self._ports[port])), f"a broker serves on {port}")

    def start_zookeeper(self, line: str) -> Terminal:
        """A ZooKeeper, which serves when this returns."""
        terminal = self.start(line)
        wait_until(lambda: _ZOOKEEPER_SERVES in "".join(terminal.lines), "ZooKeeper serves")
        return terminal

    def wait_for_zookeeper(self, log: str) -> None:
        """One that was started with `-daemon`."""
        path = self.directory / log
        wait_until(lambda: path.exists() and _ZOOKEEPER_SERVES in path.read_text(), "ZooKeeper")

    def daemon_ids(self) -> list[int]:
        """What was started here with `-daemon`."""
        return [int(file.read_text()) for file in (self.directory / "logs").glob("*.pid")]


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def printed(path: str) -> str:
    """A file as it comes with Headrace."""
    return (REPOSITORY / path).read_text()


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.1)
