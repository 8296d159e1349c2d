"""Waits until a ZooKeeper serves, before kazoo dials it. Blocking.

A server that has opened its port a moment ago may take a connection and never answer it; kazoo waits for the answer as long as a
session lasts, which may be all the time there is. The four letters `srvr`, which every ZooKeeper answers in a line or more, cost
nothing, and can be asked again.
"""

import contextlib
import socket
import time
from typing import Final

_QUESTION: Final = b"srvr"
_NOT_SERVING: Final = b"not currently serving"
_ANSWER_S: Final = 2.0
_PAUSE_S: Final = 0.1
_DEFAULT_PORT: Final = 2181


def wait_until_served(connect: str, timeout_s: float) -> None:
    """Until one of the servers of a connect string serves. Raises TimeoutError."""
    deadline = time.monotonic() + timeout_s
    servers = [_address(each) for each in connect.partition("/")[0].split(",")]
    while not any(serves(*server, min(_ANSWER_S, timeout_s)) for server in servers):
        if time.monotonic() + _PAUSE_S > deadline:
            raise TimeoutError(f"no answer within {timeout_s:g} s")
        time.sleep(_PAUSE_S)


def serves(host: str, port: int, timeout_s: float) -> bool:
    """Whether the server says anything but that it does not serve: it may be told to keep the details to itself."""
    with contextlib.suppress(OSError):
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(_QUESTION)
            answer = connection.recv(1024)
        return bool(answer) and _NOT_SERVING not in answer
    return False


def _address(server: str) -> tuple[str, int]:
    host, colon, port = server.strip().rpartition(":")
    if not colon or not port.isdigit():
        return server.strip().strip("[]"), _DEFAULT_PORT
    return host.strip("[]"), int(port)
