"""One server as an operating-system process: start, wait until it serves, stop, kill.

Knows nothing of which server it is. Its output goes to a file that failure messages quote; it ends only the process
that it started, by its id.
"""

import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from headrace.tied_process import TiedProcess

METADATA_OF_NO_TOPIC = struct.pack(
    ">ihhihi", 14, 3, 1, 7, -1, 0
)  # Metadata v1, correlation 7, no client id


class ServerFailed(Exception):
    """The server did not start, or did not stop, in time."""


class ServerProcess:
    """A child process with its log file."""

    def __init__(self, log_path: Path) -> None:
        self.log_path = log_path
        self._process: TiedProcess | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(
        self,
        command: Sequence[str | Path],
        *,
        port: int,
        ready_s: float,
        env: Mapping[str, str],
        serves: Callable[[int], bool] | None = None,
    ) -> None:
        """Start, and wait until it serves on its port: Kafka's protocol, unless `serves` asks in another way."""
        self.launch(command, env)
        self.wait_until_ready(port, ready_s, serves or serves_kafka)

    def launch(self, command: Sequence[str | Path], env: Mapping[str, str]) -> None:
        """Start without waiting."""
        if self.is_running():
            raise ServerFailed("already running")
        with self.log_path.open("ab") as log:
            self._process = TiedProcess(command, stdout=log, stderr=log, env=dict(env))

    def wait_until_ready(self, port: int, ready_s: float, serves: Callable[[int], bool]) -> None:
        """Wait until it serves; one that ends before that, or takes too long, is killed and tells why."""
        deadline = time.monotonic() + ready_s
        while not serves(port):
            assert self._process is not None
            ended = self._process.poll()
            if ended is not None or time.monotonic() > deadline:
                self.kill()
                story = f"not ready after {ready_s} s" if ended is None else f"ended with {ended}"
                raise ServerFailed(f"port {port}: {story}; its log ends:\n{self.log_tail()}")
            time.sleep(0.02)

    def stop(self, timeout_s: float) -> None:
        """Ask it to end, and insist that it does."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(
                f"did not stop within {timeout_s} s; its log ends:\n{self.log_tail()}"
            ) from None

    def kill(self) -> None:
        """End it without a chance to tidy up, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Stop it in the middle of whatever it does; `resume` lets it go on as if nothing had happened."""
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGCONT)

    def log_tail(self, characters: int = 4000) -> str:
        return (
            self.log_path.read_text(errors="replace")[-characters:]
            if self.log_path.exists()
            else "(no log)"
        )


def serves_kafka(port: int) -> bool:
    """Does a broker answer Metadata on this port, and name at least one broker in it?"""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(METADATA_OF_NO_TOPIC)
            answer = connection.makefile("rb").read(12)
    except OSError:
        return False
    return len(answer) == 12 and struct.unpack_from(">i", answer, 8)[0] > 0


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
