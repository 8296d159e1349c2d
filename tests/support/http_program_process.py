"""An HTTP program of Headrace as a process, and a small client for its API."""

import http.client
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.server_process import ServerProcess, free_port

READY_S = 120
STOP_S = 30

Json = Any


class HttpProgramProcess:
    """Start on entry, stop on exit; `kill` and `start` again keep the address."""

    def __init__(self, directory: Path, tool: str, settings: Mapping[str, str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process = ServerProcess(directory / f"{tool}-{self.port}.log")
        overrides = {"listeners": self.url, **settings}
        self.command: Sequence[str] = [
            sys.executable,
            "-m",
            "headrace.cli.main",
            tool,
            *(f"--override={name}={value}" for name, value in overrides.items()),
        ]

    def start(self) -> None:
        self._process.start(
            self.command, port=self.port, ready_s=READY_S, env=os.environ, serves=_serves
        )

    def stop(self) -> None:
        self._process.stop(STOP_S)

    def kill(self) -> None:
        self._process.kill()

    def pause(self) -> None:
        self._process.pause()

    def resume(self) -> None:
        self._process.resume()

    def is_running(self) -> bool:
        return self._process.is_running()

    @property
    def pid(self) -> int:
        return self._process.pid

    def log_tail(self, characters: int = 4000) -> str:
        return self._process.log_tail(characters)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.stop(STOP_S)

    # ---- requests

    def ask(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Json]:
        """The status and the decoded body of an answer; OSError where there is none."""
        status, _, text = self.ask_raw(
            method, path, None if body is None else json.dumps(body).encode(), headers=headers
        )
        return status, json.loads(text) if text else None

    def ask_raw(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()  # type: ignore[return-value]
        except http.client.HTTPException as broken:
            raise ConnectionError(str(broken)) from broken
        finally:
            connection.close()


def _serves(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return b" 200 " in connection.makefile("rb").readline()
    except OSError:
        return False
