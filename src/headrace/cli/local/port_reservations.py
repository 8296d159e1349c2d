"""Reservations of TCP ports for servers that are about to be started. A rim module.

Between the moment at which a tool finds a port free and the moment at which its server listens there, another run of a tool could
find the same port. A reservation closes that gap for as long as the tool runs:

- A port that the operating system chooses stays bound, without being listened on. SO_REUSEADDR lets the server listen there all the
  same, and the operating system gives the port to nobody else.
- A well-known port, such as 9092, cannot be kept in that way: the test that would find it bound also finds connections of an earlier
  server that have not quite ended. It has a lock file instead, which other runs of this user's tools look at.
"""

import fcntl
import os
import socket
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

HOST: Final = "127.0.0.1"


def is_free(port: int) -> bool:
    """Could a server listen on this port?"""
    with socket.socket() as probe:
        try:
            _bind(probe, port)
        except OSError:
            return False
    return True


class PortReservations:
    """The ports of one run of a tool. Use it in a `with`: at its end they are anybody's."""

    def __init__(self, lock_directory: Path | None = None) -> None:
        default = Path(tempfile.gettempdir()) / f"headrace-ports-{os.getuid()}"
        self._lock_directory = lock_directory or default
        self._held: list[int] = []  # file descriptors

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def free(self) -> int:
        """Reserve any port."""
        with socket.socket() as holder:
            _bind(holder, 0)
            port: int = holder.getsockname()[1]
            self._held.append(holder.detach())
        return port

    def take(self, port: int) -> bool:
        """Reserve this port. False where somebody listens there, or another run has reserved it."""
        try:
            self._lock_directory.mkdir(mode=0o700, exist_ok=True)
            file = os.open(self._lock_directory / str(port), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            return is_free(port)  # without a place for lock files, only those who listen are seen
        if not _locked(file) or not is_free(port):
            os.close(file)
            return False
        self._held.append(file)
        return True

    def take_or_free(self, port: int) -> int:
        """Reserve this port, or any where it is taken."""
        return port if self.take(port) else self.free()

    def close(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)
        self._held.clear()


def _bind(holder: socket.socket, port: int) -> None:
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((HOST, port))


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
